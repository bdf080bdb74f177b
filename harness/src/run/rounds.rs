//! The clock of a phase: rounds in which every thread first prepares its share of the records with
//! the clock stopped, and then all of them work with the clock running.
//!
//! ```text
//! thread 1   prepare ........|work work work     |prepare ....|work …
//! thread 2   prepare ..      |work work work work|prepare ..  |work …
//! clock                      |===================|            |=====…
//! ```
//! So the time of a phase is the engine's alone, from the moment the first thread calls it to the
//! moment the last one is done, round by round. Background work of the engine goes on while the
//! clock stands; the quiesce phase charges what is left of it.

use std::ops::Range;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How the items are shared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rounds {
    /// Items in all.
    pub(crate) items: u64,
    /// Threads that share them.
    pub(crate) threads: u32,
    /// Items of one thread in one round.
    pub(crate) share: u64,
}

/// What the clock showed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Clocked {
    /// With the clock running.
    pub(crate) running: Duration,
    /// In all.
    pub(crate) wall: Duration,
}

/// A part of the work, one for each thread.
pub(crate) trait Worker: Send {
    /// Makes the items of `range` ready, while the clock stands.
    fn prepare(&mut self, range: Range<u64>) -> engines::Result<()>;

    /// Does what was prepared, while the clock runs.
    fn work(&mut self) -> engines::Result<()>;
}

impl Rounds {
    /// Runs all rounds with the workers that `worker` makes, telling `progress` the items done.
    /// Returns the clock and the workers.
    ///
    /// # Errors
    /// The first error of a worker; no further round is begun then.
    pub(crate) fn run<W: Worker>(
        self,
        worker: impl Fn() -> W,
        progress: impl Fn(u64) + Sync,
    ) -> engines::Result<(Clocked, Vec<W>)> {
        let began = Instant::now();
        let clock = Clock::new(self.threads);
        let mut workers: Vec<W> = (0..self.threads).map(|_| worker()).collect();
        std::thread::scope(|scope| {
            for (thread, worker) in workers.iter_mut().enumerate() {
                let (clock, progress) = (&clock, &progress);
                scope.spawn(move || self.drive(thread as u64, worker, clock, progress));
            }
        });
        if let Some(error) = clock.failure.into_inner() {
            return Err(error);
        }
        let running = Duration::from_nanos(clock.running_ns.into_inner());
        Ok((Clocked { running, wall: began.elapsed() }, workers))
    }

    fn drive<W: Worker>(
        self,
        thread: u64,
        worker: &mut W,
        clock: &Clock,
        progress: &(impl Fn(u64) + Sync),
    ) {
        let per_round = self.share.saturating_mul(self.threads.into());
        let mut round_start = 0u64;
        while round_start < self.items && !clock.failed.load(Ordering::Acquire) {
            let start = self.items.min(round_start.saturating_add(thread * self.share));
            let end = self.items.min(start.saturating_add(self.share));
            let prepared = worker.prepare(start..end);
            clock.measure(|| prepared.and_then(|()| worker.work()));
            round_start = round_start.saturating_add(per_round);
            if thread == 0 {
                progress(self.items.min(round_start));
            }
        }
    }
}

struct Clock {
    barrier: Barrier,
    epoch: Instant,
    /// When the first thread of this round began, and when the last one was done.
    first_start_ns: AtomicU64,
    last_end_ns: AtomicU64,
    running_ns: AtomicU64,
    failed: AtomicBool,
    failure: Mutex<Option<engines::Error>>,
}

impl Clock {
    fn new(threads: u32) -> Self {
        Self {
            barrier: Barrier::new(threads as usize),
            epoch: Instant::now(),
            first_start_ns: AtomicU64::new(u64::MAX),
            last_end_ns: AtomicU64::new(0),
            running_ns: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            failure: Mutex::new(None),
        }
    }

    /// Waits for all threads, works, waits for all threads. A failure is seen by every thread
    /// before its next round, so none waits for one that has left.
    fn measure(&self, work: impl FnOnce() -> engines::Result<()>) {
        self.barrier.wait();
        self.first_start_ns.fetch_min(self.now_ns(), Ordering::AcqRel);
        let outcome = work();
        self.last_end_ns.fetch_max(self.now_ns(), Ordering::AcqRel);
        if let Err(error) = outcome {
            self.failed.store(true, Ordering::Release);
            self.failure.lock().get_or_insert(error);
        }
        if self.barrier.wait().is_leader() {
            // The others are preparing, or wait at the next round's first barrier for this thread.
            let start = self.first_start_ns.swap(u64::MAX, Ordering::AcqRel);
            let end = self.last_end_ns.swap(0, Ordering::AcqRel);
            self.running_ns.fetch_add(end.saturating_sub(start), Ordering::AcqRel);
        }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    #[derive(Default)]
    struct Sleeper {
        prepared: Range<u64>,
        done: Vec<u64>,
        fail_at: Option<u64>,
    }

    impl Worker for Sleeper {
        fn prepare(&mut self, range: Range<u64>) -> engines::Result<()> {
            self.prepared = range;
            Ok(())
        }

        fn work(&mut self) -> engines::Result<()> {
            if self.fail_at.is_some_and(|at| self.prepared.contains(&at)) {
                return Err(engines::Error::InvalidArgument("here".into()));
            }
            self.done.extend(self.prepared.clone());
            Ok(())
        }
    }

    #[test]
    fn every_item_is_worked_on_once_whatever_the_shares() {
        for (items, threads, share) in [(10, 1, 3), (10, 3, 2), (1, 4, 5), (12, 3, 4), (7, 7, 1)] {
            let rounds = Rounds { items, threads, share };
            let seen = Mutex::new(0);
            let (_, workers) = rounds.run(Sleeper::default, |done| *seen.lock() = done).unwrap();
            let mut done: Vec<u64> = workers.into_iter().flat_map(|worker| worker.done).collect();
            done.sort_unstable();
            assert_eq!(done, (0..items).collect::<Vec<_>>(), "{rounds:?}");
            assert_eq!(*seen.lock(), items);
        }
    }

    /// Counts who is preparing, and who finds somebody preparing while working.
    struct Watcher<'a> {
        preparing: &'a AtomicU64,
        overlaps: &'a AtomicU64,
    }

    impl Worker for Watcher<'_> {
        fn prepare(&mut self, range: Range<u64>) -> engines::Result<()> {
            self.preparing.fetch_add(1, Ordering::SeqCst);
            // Threads that take unequal time: the last one sleeps longest.
            sleep(Duration::from_millis(range.start % 7));
            self.preparing.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        }

        fn work(&mut self) -> engines::Result<()> {
            sleep(Duration::from_millis(1));
            self.overlaps.fetch_add(self.preparing.load(Ordering::SeqCst), Ordering::SeqCst);
            Ok(())
        }
    }

    #[test]
    fn nobody_prepares_while_the_clock_runs() {
        let (preparing, overlaps) = (AtomicU64::new(0), AtomicU64::new(0));
        let rounds = Rounds { items: 120, threads: 4, share: 3 };
        let watcher = || Watcher { preparing: &preparing, overlaps: &overlaps };
        let (clocked, _) = rounds.run(watcher, |_| ()).unwrap();
        assert_eq!(overlaps.into_inner(), 0);
        assert!(clocked.running > Duration::ZERO && clocked.running < clocked.wall, "{clocked:?}");
    }

    #[test]
    fn the_first_failure_ends_all_threads() {
        let rounds = Rounds { items: 100, threads: 3, share: 2 };
        let failing = || Sleeper { fail_at: Some(15), ..Sleeper::default() };
        let error = rounds.run(failing, |_| ()).err().unwrap();
        assert_eq!(error.to_string(), "here");
    }
}
