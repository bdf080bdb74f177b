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
//!
//! A limit of time ends the phase after a whole round, so that what was done is a beginning of the
//! items, whatever the threads.

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
    /// No round begins when the clock has run so long.
    pub(crate) limit: Option<Duration>,
    /// Whether every thread is given all items of a round, to take its own of them; else each is
    /// given a part.
    pub(crate) each_sees_all: bool,
}

/// What the clock showed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Clocked {
    /// With the clock running.
    pub(crate) running: Duration,
    /// In all.
    pub(crate) wall: Duration,
    /// Items done: all of them, unless the time was up.
    pub(crate) items: u64,
}

/// A part of the work, one for each thread.
pub(crate) trait Worker: Send {
    /// Makes the items of `range` ready, while the clock stands. All items before `round_start`
    /// have been worked on.
    fn prepare(&mut self, range: Range<u64>, round_start: u64) -> engines::Result<()>;

    /// Does what was prepared, while the clock runs. It showed `clock_ns` when it began to.
    fn work(&mut self, clock_ns: u64) -> engines::Result<()>;
}

impl Rounds {
    /// Runs all rounds with the workers that `worker` makes, one for each thread, telling
    /// `progress` the items done. Returns the clock and the workers.
    ///
    /// # Errors
    /// The first error of a worker; no further round is begun then.
    pub(crate) fn run<W: Worker>(
        self,
        worker: impl Fn(u32) -> W,
        progress: impl Fn(u64) + Sync,
    ) -> engines::Result<(Clocked, Vec<W>)> {
        let began = Instant::now();
        let clock = Clock::new(self.threads, self.limit);
        let mut workers: Vec<W> = (0..self.threads).map(worker).collect();
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
        let items = self.items.min(clock.rounds.into_inner().saturating_mul(self.per_round()));
        Ok((Clocked { running, wall: began.elapsed(), items }, workers))
    }

    fn per_round(self) -> u64 {
        self.share.saturating_mul(self.threads.into())
    }

    /// What `thread` is given in the round that begins with item `round_start`.
    pub(crate) fn part(self, round_start: u64, thread: u64) -> Range<u64> {
        if self.each_sees_all {
            return round_start..self.items.min(round_start.saturating_add(self.per_round()));
        }
        let start = self.items.min(round_start.saturating_add(thread.saturating_mul(self.share)));
        start..self.items.min(start.saturating_add(self.share))
    }

    /// Where the rounds begin.
    pub(crate) fn starts(self) -> impl Iterator<Item = u64> {
        let next = move |start: &u64| start.checked_add(self.per_round());
        std::iter::successors(Some(0), next).take_while(move |&start| start < self.items)
    }

    fn drive<W: Worker>(
        self,
        thread: u64,
        worker: &mut W,
        clock: &Clock,
        progress: &(impl Fn(u64) + Sync),
    ) {
        for round_start in self.starts() {
            if clock.stopped.load(Ordering::Acquire) {
                break;
            }
            let prepared = worker.prepare(self.part(round_start, thread), round_start);
            clock.measure(|clock_ns| prepared.and_then(|()| worker.work(clock_ns)));
            if thread == 0 {
                progress(self.items.min(round_start.saturating_add(self.per_round())));
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
    limit_ns: u64,
    /// Rounds that are over.
    rounds: AtomicU64,
    /// A thread failed, or the time is up.
    stopped: AtomicBool,
    failure: Mutex<Option<engines::Error>>,
}

impl Clock {
    fn new(threads: u32, limit: Option<Duration>) -> Self {
        Self {
            limit_ns: limit.map_or(u64::MAX, nanoseconds),
            rounds: AtomicU64::new(0),
            barrier: Barrier::new(threads as usize),
            epoch: Instant::now(),
            first_start_ns: AtomicU64::new(u64::MAX),
            last_end_ns: AtomicU64::new(0),
            running_ns: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            failure: Mutex::new(None),
        }
    }

    /// Waits for all threads, works, waits for all threads. That it is time to stop is seen by
    /// every thread before its next round, so none waits for one that has left.
    fn measure(&self, work: impl FnOnce(u64) -> engines::Result<()>) {
        self.barrier.wait();
        let clock_ns = self.running_ns.load(Ordering::Acquire);
        let start = self.now_ns();
        self.first_start_ns.fetch_min(start, Ordering::AcqRel);
        let outcome = work(clock_ns);
        let end = self.now_ns();
        self.last_end_ns.fetch_max(end, Ordering::AcqRel);
        if let Err(error) = outcome {
            self.stopped.store(true, Ordering::Release);
            self.failure.lock().get_or_insert(error);
        }
        if clock_ns.saturating_add(end.saturating_sub(start)) >= self.limit_ns {
            self.stopped.store(true, Ordering::Release);
        }
        if self.barrier.wait().is_leader() {
            // The others are preparing, or wait at the next round's first barrier for this thread.
            let start = self.first_start_ns.swap(u64::MAX, Ordering::AcqRel);
            let end = self.last_end_ns.swap(0, Ordering::AcqRel);
            self.running_ns.fetch_add(end.saturating_sub(start), Ordering::AcqRel);
            self.rounds.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn now_ns(&self) -> u64 {
        nanoseconds(self.epoch.elapsed())
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
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
        fn prepare(&mut self, range: Range<u64>, _: u64) -> engines::Result<()> {
            self.prepared = range;
            Ok(())
        }

        fn work(&mut self, _: u64) -> engines::Result<()> {
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
            let rounds = Rounds { items, threads, share, limit: None, each_sees_all: false };
            let seen = Mutex::new(0);
            let (clocked, workers) =
                rounds.run(|_| Sleeper::default(), |done| *seen.lock() = done).unwrap();
            let mut done: Vec<u64> = workers.into_iter().flat_map(|worker| worker.done).collect();
            done.sort_unstable();
            assert_eq!(done, (0..items).collect::<Vec<_>>(), "{rounds:?}");
            assert_eq!((*seen.lock(), clocked.items), (items, items));
        }
    }

    /// Counts who is preparing, and who finds somebody preparing while working.
    struct Watcher<'a> {
        preparing: &'a AtomicU64,
        overlaps: &'a AtomicU64,
    }

    impl Worker for Watcher<'_> {
        fn prepare(&mut self, range: Range<u64>, _: u64) -> engines::Result<()> {
            self.preparing.fetch_add(1, Ordering::SeqCst);
            // Threads that take unequal time: the last one sleeps longest.
            sleep(Duration::from_millis(range.start % 7));
            self.preparing.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        }

        fn work(&mut self, _: u64) -> engines::Result<()> {
            sleep(Duration::from_millis(1));
            self.overlaps.fetch_add(self.preparing.load(Ordering::SeqCst), Ordering::SeqCst);
            Ok(())
        }
    }

    #[test]
    fn nobody_prepares_while_the_clock_runs() {
        let (preparing, overlaps) = (AtomicU64::new(0), AtomicU64::new(0));
        let rounds = Rounds { items: 120, threads: 4, share: 3, limit: None, each_sees_all: false };
        let watcher = |_| Watcher { preparing: &preparing, overlaps: &overlaps };
        let (clocked, _) = rounds.run(watcher, |_| ()).unwrap();
        assert_eq!(overlaps.into_inner(), 0);
        assert!(clocked.running > Duration::ZERO && clocked.running < clocked.wall, "{clocked:?}");
    }

    #[test]
    fn the_first_failure_ends_all_threads() {
        let rounds = Rounds { items: 100, threads: 3, share: 2, limit: None, each_sees_all: false };
        let failing = |_| Sleeper { fail_at: Some(15), ..Sleeper::default() };
        let error = rounds.run(failing, |_| ()).err().unwrap();
        assert_eq!(error.to_string(), "here");
    }

    #[test]
    fn when_the_time_is_up_whole_rounds_have_been_done() {
        let limit = Some(Duration::from_millis(20));
        let items = u64::MAX;
        let rounds = Rounds { items, threads: 3, share: 2, limit, each_sees_all: false };
        let (preparing, overlaps) = (AtomicU64::new(0), AtomicU64::new(0));
        let watcher = |_| Watcher { preparing: &preparing, overlaps: &overlaps };
        let (clocked, _) = rounds.run(watcher, |_| ()).unwrap();
        assert!(clocked.running >= Duration::from_millis(20), "{clocked:?}");
        assert!(clocked.items >= 6 && clocked.items.is_multiple_of(6), "{clocked:?}");
        let none = Rounds { limit: Some(Duration::ZERO), ..rounds };
        assert_eq!(none.run(watcher, |_| ()).unwrap().0.items, 6);
    }
}
