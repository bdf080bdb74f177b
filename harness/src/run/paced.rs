//! The open loop: calls are due at times that were set beforehand, whether the engine is ready or
//! not, and their latency counts from then. So an engine that stalls is charged for everything
//! that had to wait, as its users would be.
//!
//! Call number N is due N / rate seconds after the start, and thread N modulo T makes it. The
//! operation is made just before, while the thread would wait anyway.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The calls of a phase at a rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Calls in all.
    pub(crate) calls: u64,
    /// Threads that make them.
    pub(crate) threads: u32,
    /// Calls a second, of all threads together.
    pub(crate) rate: f64,
    /// No call is due at this time or later.
    pub(crate) limit: Option<Duration>,
}

/// One thread's part.
pub(super) trait PacedWorker: Send {
    /// The clock starts.
    fn start(&mut self);

    /// Makes the operation of call `call` ready.
    fn prepare(&mut self, call: u64) -> engines::Result<()>;

    /// Makes the call, which was due when the clock showed `due_ns`.
    fn work(&mut self, due_ns: u64) -> engines::Result<()>;
}

impl Pace {
    /// The calls that are due before the limit.
    pub(super) fn calls_in_time(self) -> u64 {
        let Some(limit) = self.limit else { return self.calls };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let due = (limit.as_secs_f64() * self.rate).ceil() as u64;
        self.calls.min(due)
    }

    /// Runs the calls with the workers that `worker` makes, telling `progress` the calls done.
    ///
    /// # Errors
    /// The first error of a worker; the other threads end with their next call then.
    pub(super) fn run<W: PacedWorker>(
        self,
        worker: impl Fn() -> W,
        progress: impl Fn(u64) + Sync,
    ) -> engines::Result<(Duration, Vec<W>)> {
        let mut workers: Vec<W> = (0..self.threads).map(|_| worker()).collect();
        let shared = Shared {
            began: Instant::now(),
            done: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            failure: Mutex::new(None),
        };
        std::thread::scope(|scope| {
            for (thread, worker) in (0u64..).zip(workers.iter_mut()) {
                let (shared, progress) = (&shared, &progress);
                scope.spawn(move || {
                    if let Err(error) = self.drive(thread, worker, shared, progress) {
                        shared.failed.store(true, Ordering::Release);
                        shared.failure.lock().get_or_insert(error);
                    }
                });
            }
        });
        match shared.failure.into_inner() {
            Some(error) => Err(error),
            None => Ok((shared.began.elapsed(), workers)),
        }
    }

    fn drive<W: PacedWorker>(
        self,
        thread: u64,
        worker: &mut W,
        shared: &Shared,
        progress: &(impl Fn(u64) + Sync),
    ) -> engines::Result<()> {
        worker.start();
        let calls = self.calls_in_time();
        let mut call = thread;
        while call < calls && !shared.failed.load(Ordering::Acquire) {
            worker.prepare(call)?;
            let due = Duration::from_secs_f64(call as f64 / self.rate);
            wait_until(shared.began + due);
            worker.work(u64::try_from(due.as_nanos()).unwrap_or(u64::MAX))?;
            progress(shared.done.fetch_add(1, Ordering::Relaxed) + 1);
            call += u64::from(self.threads);
        }
        Ok(())
    }
}

struct Shared {
    began: Instant,
    done: AtomicU64,
    failed: AtomicBool,
    failure: Mutex<Option<engines::Error>>,
}

/// A sleeping thread wakes up about so much too late.
const SLEEP_OVERSHOOT: Duration = Duration::from_micros(80);

/// Sleeps for most of the time and looks at the clock for the rest of it, which leaves the
/// processor to others in between.
fn wait_until(due: Instant) {
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        match left.checked_sub(SLEEP_OVERSHOOT) {
            Some(most) if !most.is_zero() => std::thread::sleep(most),
            _ => std::thread::yield_now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Noting {
        prepared: u64,
        calls: Vec<(u64, u64)>,
        stall_at: Option<u64>,
        fail_at: Option<u64>,
    }

    impl PacedWorker for Noting {
        fn start(&mut self) {}

        fn prepare(&mut self, call: u64) -> engines::Result<()> {
            self.prepared = call;
            Ok(())
        }

        fn work(&mut self, due_ns: u64) -> engines::Result<()> {
            if self.fail_at == Some(self.prepared) {
                return Err(engines::Error::InvalidArgument("here".into()));
            }
            if self.stall_at == Some(self.prepared) {
                std::thread::sleep(Duration::from_millis(20));
            }
            self.calls.push((self.prepared, due_ns));
            Ok(())
        }
    }

    fn pace(calls: u64, threads: u32, rate: f64) -> Pace {
        Pace { calls, threads, rate, limit: None }
    }

    #[test]
    fn every_call_is_made_once_and_none_before_it_is_due() {
        let began = Instant::now();
        let (took, workers) = pace(50, 3, 2_000.0).run(Noting::default, |_| ()).unwrap();
        assert!(began.elapsed() >= Duration::from_nanos(49 * 500_000));
        assert!(took >= Duration::from_nanos(49 * 500_000));
        let mut calls: Vec<_> = workers.into_iter().flat_map(|worker| worker.calls).collect();
        calls.sort_unstable();
        let expected: Vec<_> = (0..50).map(|call| (call, call * 500_000)).collect();
        assert_eq!(calls, expected);
    }

    #[test]
    fn a_stall_moves_no_due_time() {
        let stalling = || Noting { stall_at: Some(3), ..Noting::default() };
        let (_, workers) = pace(20, 1, 1_000.0).run(stalling, |_| ()).unwrap();
        let dues: Vec<u64> = workers[0].calls.iter().map(|call| call.1).collect();
        assert_eq!(dues, (0..20).map(|call| call * 1_000_000).collect::<Vec<_>>());
    }

    #[test]
    fn a_limit_leaves_the_calls_that_are_due_before_it() {
        let limited = |milliseconds, rate| {
            let limit = Some(Duration::from_millis(milliseconds));
            Pace { limit, ..pace(1_000, 1, rate) }.calls_in_time()
        };
        assert_eq!(limited(10, 100.0), 1);
        assert_eq!(limited(11, 100.0), 2);
        assert_eq!(limited(0, 100.0), 0);
        assert_eq!(limited(60_000, 100.0), 1_000);
    }

    #[test]
    fn the_first_failure_ends_all_threads() {
        let failing = || Noting { fail_at: Some(7), ..Noting::default() };
        let error = pace(1_000_000, 3, 10_000.0).run(failing, |_| ()).err().unwrap();
        assert_eq!(error.to_string(), "here");
    }
}
