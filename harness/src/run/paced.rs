//! The open loop: calls are due at times that were set beforehand, whether the engine is ready or
//! not, and their latency counts from then. So an engine that stalls is charged for everything
//! that had to wait, as its users would be.
//!
//! Call number N is due N / rate seconds after the start, or when the workload says, and thread N
//! modulo T makes it, or each thread its own part. The operation is made just before, while the
//! thread would wait anyway. All threads wait by the clock that latencies are taken with, from one
//! start that is the same for all: two clocks would differ by more than a call takes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use quanta::Clock;

/// The calls of a phase, each at its time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Calls in all.
    pub(crate) calls: u64,
    /// Threads that make them.
    pub(crate) threads: u32,
    /// Whether every thread goes through all calls, to make its own part of each; else each has
    /// calls of its own.
    pub(crate) each_sees_all: bool,
}

/// When a call is due, counted from the start; later calls are never due before earlier ones.
pub(super) type Due<'a> = dyn Fn(u64) -> Duration + Sync + 'a;

/// Of `calls` calls, those that are due before `limit`.
pub(super) fn calls_before(limit: Option<Duration>, calls: u64, due: &Due<'_>) -> u64 {
    let Some(limit) = limit else { return calls };
    let (mut before, mut end) = (0, calls);
    while before < end {
        let middle = before + (end - before) / 2;
        match due(middle) < limit {
            true => before = middle + 1,
            false => end = middle,
        }
    }
    before
}

/// One thread's part.
pub(super) trait PacedWorker: Send {
    /// The clock shows nothing when the processor's counter shows `start`.
    fn start(&mut self, start: u64);

    /// Makes the operations of call `call` ready; false if this thread has none in it.
    fn prepare(&mut self, call: u64) -> engines::Result<bool>;

    /// Makes the call, which was due when the clock showed `due_ns`.
    fn work(&mut self, due_ns: u64) -> engines::Result<()>;
}

impl Pace {
    /// Runs the calls when they are `due`, with the workers that `worker` makes, one for each
    /// thread, telling `progress` the calls done.
    ///
    /// # Errors
    /// The first error of a worker; the other threads end with their next call then.
    pub(super) fn run<W: PacedWorker>(
        self,
        due: &Due<'_>,
        clock: &Clock,
        worker: impl Fn(u32) -> W,
        progress: impl Fn(u64) + Sync,
    ) -> engines::Result<(Duration, Vec<W>)> {
        let mut workers: Vec<W> = (0..self.threads).map(worker).collect();
        let shared = Shared {
            clock,
            all_are_there: Barrier::new(workers.len()),
            start: OnceLock::new(),
            done: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            failure: Mutex::new(None),
        };
        std::thread::scope(|scope| {
            for (thread, worker) in (0u64..).zip(workers.iter_mut()) {
                let (shared, progress) = (&shared, &progress);
                scope.spawn(move || {
                    if let Err(error) = self.drive(thread, due, worker, shared, progress) {
                        shared.failed.store(true, Ordering::Release);
                        shared.failure.lock().get_or_insert(error);
                    }
                });
            }
        });
        let took = shared.elapsed();
        match shared.failure.into_inner() {
            Some(error) => Err(error),
            None => Ok((took, workers)),
        }
    }

    fn drive<W: PacedWorker>(
        self,
        thread: u64,
        due: &Due<'_>,
        worker: &mut W,
        shared: &Shared<'_>,
        progress: &(impl Fn(u64) + Sync),
    ) -> engines::Result<()> {
        // No call waits for a thread that is still being made.
        shared.all_are_there.wait();
        worker.start(shared.start());
        let (mut call, each) = match self.each_sees_all {
            true => (0, 1),
            false => (thread, u64::from(self.threads)),
        };
        while call < self.calls && !shared.failed.load(Ordering::Acquire) {
            if worker.prepare(call)? {
                let due = due(call);
                wait_until(due, || shared.elapsed());
                worker.work(u64::try_from(due.as_nanos()).unwrap_or(u64::MAX))?;
                let done = shared.done.fetch_add(1, Ordering::Relaxed) + 1;
                progress(done.min(self.calls));
            }
            call = call.saturating_add(each);
        }
        Ok(())
    }
}

struct Shared<'a> {
    clock: &'a Clock,
    all_are_there: Barrier,
    /// What the processor's counter showed when the first thread began.
    start: OnceLock<u64>,
    done: AtomicU64,
    failed: AtomicBool,
    failure: Mutex<Option<engines::Error>>,
}

impl Shared<'_> {
    fn start(&self) -> u64 {
        *self.start.get_or_init(|| self.clock.raw())
    }

    fn elapsed(&self) -> Duration {
        let start = self.start();
        Duration::from_nanos(self.clock.delta_as_nanos(start, self.clock.raw()))
    }
}

/// A sleeping thread wakes up about so much too late.
const SLEEP_OVERSHOOT: Duration = Duration::from_micros(80);

/// Waits until `elapsed` is `due`: sleeps for most of the time and looks at the clock for the rest
/// of it, which leaves the processor to others in between.
fn wait_until(due: Duration, elapsed: impl Fn() -> Duration) {
    loop {
        let left = due.saturating_sub(elapsed());
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
    use std::time::Instant;

    use super::*;

    #[derive(Default)]
    struct Noting {
        prepared: u64,
        calls: Vec<(u64, u64)>,
        stall_at: Option<u64>,
        takes: Option<u64>,
        fail_at: Option<u64>,
    }

    impl PacedWorker for Noting {
        fn start(&mut self, _: u64) {}

        fn prepare(&mut self, call: u64) -> engines::Result<bool> {
            self.prepared = call;
            Ok(self.takes.is_none_or(|takes| call % 3 == takes))
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

    fn pace(calls: u64, threads: u32) -> Pace {
        Pace { calls, threads, each_sees_all: false }
    }

    fn at_rate(rate: f64) -> impl Fn(u64) -> Duration {
        move |call| Duration::from_secs_f64(call as f64 / rate)
    }

    #[test]
    fn every_call_is_made_once_and_none_before_it_is_due() {
        let began = Instant::now();
        let (took, workers) = pace(50, 3)
            .run(&at_rate(2_000.0), &Clock::new(), |_| Noting::default(), |_| ())
            .unwrap();
        assert!(began.elapsed() >= Duration::from_nanos(49 * 500_000));
        assert!(took >= Duration::from_nanos(49 * 500_000));
        let mut calls: Vec<_> = workers.into_iter().flat_map(|worker| worker.calls).collect();
        calls.sort_unstable();
        let expected: Vec<_> = (0..50).map(|call| (call, call * 500_000)).collect();
        assert_eq!(calls, expected);
    }

    /// Every third call is one thread's, whatever of the others have.
    #[test]
    fn threads_that_see_all_calls_make_their_own() {
        let taking = |thread| Noting { takes: Some(u64::from(thread)), ..Noting::default() };
        let pace = Pace { each_sees_all: true, ..pace(50, 3) };
        let (_, workers) = pace.run(&at_rate(100_000.0), &Clock::new(), taking, |_| ()).unwrap();
        for (thread, worker) in (0..).zip(workers) {
            let calls: Vec<u64> = worker.calls.iter().map(|call| call.0).collect();
            assert_eq!(calls, (thread..50).step_by(3).collect::<Vec<_>>());
        }
    }

    /// No thread comes to a call that is due beyond all time, and the failure of another ends it.
    #[test]
    fn a_call_may_be_due_later_than_any_instant() {
        let began = Instant::now();
        wait_until(Duration::ZERO, || Duration::ZERO);
        let due = |call| if call == 0 { Duration::ZERO } else { Duration::MAX };
        assert_eq!(calls_before(Some(Duration::MAX), 1_000, &due), 1);
        assert!(began.checked_add(Duration::MAX).is_none());
        assert!(Duration::MAX.saturating_sub(began.elapsed()) > Duration::from_secs(1 << 60));
    }

    #[test]
    fn a_stall_moves_no_due_time() {
        let stalling = |_| Noting { stall_at: Some(3), ..Noting::default() };
        let (_, workers) =
            pace(20, 1).run(&at_rate(1_000.0), &Clock::new(), stalling, |_| ()).unwrap();
        let dues: Vec<u64> = workers[0].calls.iter().map(|call| call.1).collect();
        assert_eq!(dues, (0..20).map(|call| call * 1_000_000).collect::<Vec<_>>());
    }

    #[test]
    fn a_limit_leaves_the_calls_that_are_due_before_it() {
        let limited = |milliseconds, rate| {
            let limit = Some(Duration::from_millis(milliseconds));
            calls_before(limit, 1_000, &at_rate(rate))
        };
        assert_eq!(calls_before(None, 1_000, &at_rate(100.0)), 1_000);
        assert_eq!(limited(10, 100.0), 1);
        assert_eq!(limited(11, 100.0), 2);
        assert_eq!(limited(0, 100.0), 0);
        assert_eq!(limited(60_000, 100.0), 1_000);
    }

    #[test]
    fn the_first_failure_ends_all_threads() {
        let failing = |_| Noting { fail_at: Some(7), ..Noting::default() };
        let error = pace(1_000_000, 3)
            .run(&at_rate(10_000.0), &Clock::new(), failing, |_| ())
            .err()
            .unwrap();
        assert_eq!(error.to_string(), "here");
    }
}
