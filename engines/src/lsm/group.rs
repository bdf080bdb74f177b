//! Group commit: who writes the log for whom.
//!
//! A writer that finds nobody writing leads: it writes its own batch and everything that queued up
//! meanwhile, with one append and one sync, and then hands the lead to the first that came too late
//! for that. Writers behind a leader sleep until their batch is written or it is their turn.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};

use crate::Result;

/// How long a writer that waits for others offers them its processor before it sleeps. A sync of a
/// fast disk takes less, and to wake seven sleepers after it takes the leader as long as the sync.
const PATIENCE: Duration = Duration::from_micros(100);

/// A batch on its way into the log.
#[derive(Debug)]
pub(crate) struct Write {
    /// The operations in the layout of a write batch, without its header.
    pub(crate) records: Bytes,
    pub(crate) count: u32,
}

/// The writers that wait.
#[derive(Debug, Default)]
pub(crate) struct Queue(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    has_leader: bool,
    followers: VecDeque<Arc<Follower>>,
}

/// What the last group tells of the next one.
#[derive(Debug, Default)]
pub(crate) struct LastGroup {
    /// Those whom the leader wrote for.
    pub(crate) followers: usize,
    /// What its sync took; nothing at levels that do not wait for one.
    pub(crate) sync: Duration,
}

/// What becomes of a writer.
pub(crate) enum Turn {
    /// It writes for itself and others, and must end with [`Queue::pass_on`].
    Lead(Write),
    /// Its batch was written, or not, by somebody else.
    Done(Result<()>),
}

/// A writer behind a leader.
#[derive(Debug)]
pub(crate) struct Follower {
    /// Taken by whoever writes it.
    write: Mutex<Option<Write>>,
    state: Mutex<State>,
    changed: Condvar,
    /// That `state` has changed, for those that do not sleep.
    has_changed: AtomicBool,
}

#[derive(Debug)]
enum State {
    Waiting,
    Leading,
    Done(Result<()>),
}

impl Queue {
    /// Waits for the lead or for the end of the write.
    pub(crate) fn enter(&self, write: Write) -> Turn {
        let follower = {
            let mut waiting = self.0.lock();
            if !waiting.has_leader {
                waiting.has_leader = true;
                return Turn::Lead(write);
            }
            let follower = Arc::new(Follower {
                write: Mutex::new(Some(write)),
                state: Mutex::new(State::Waiting),
                changed: Condvar::new(),
                has_changed: AtomicBool::new(false),
            });
            waiting.followers.push_back(Arc::clone(&follower));
            follower
        };
        follower.wait()
    }

    /// Takes followers off the queue, in order, while `fits` agrees to their batch.
    pub(crate) fn take(&self, mut fits: impl FnMut(&Write) -> bool) -> Vec<(Arc<Follower>, Write)> {
        let mut waiting = self.0.lock();
        let mut taken = Vec::new();
        while let Some(first) = waiting.followers.front() {
            let mut write = first.write.lock();
            if !write.as_ref().is_some_and(&mut fits) {
                break;
            }
            let write_taken = write.take();
            drop(write);
            if let (Some(follower), Some(write)) = (waiting.followers.pop_front(), write_taken) {
                taken.push((follower, write));
            }
        }
        taken
    }

    /// Gives those whom the last leader wrote for the time to come back: without them a leader
    /// would sync for itself alone, and every other sync would be shared by nobody. To wait longer
    /// than part of a sync would cost more than it saves.
    pub(crate) fn gather(&self, last: &LastGroup) {
        if last.followers == 0 || last.sync.is_zero() {
            return;
        }
        let are_back = || self.0.lock().followers.len() >= last.followers;
        yield_until(are_back, PATIENCE.min(last.sync / 2));
    }

    /// Ends a lead: the first that waits goes on.
    pub(crate) fn pass_on(&self) {
        let mut waiting = self.0.lock();
        match waiting.followers.pop_front() {
            Some(next) => next.change(State::Leading),
            None => waiting.has_leader = false,
        }
    }
}

impl Follower {
    /// Tells the writer how its batch fared.
    pub(crate) fn finish(&self, outcome: Result<()>) {
        self.change(State::Done(outcome));
    }

    fn change(&self, state: State) {
        *self.state.lock() = state;
        self.has_changed.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    fn wait(&self) -> Turn {
        yield_until(|| self.has_changed.load(Ordering::Acquire), PATIENCE);
        let mut state = self.state.lock();
        loop {
            match std::mem::replace(&mut *state, State::Waiting) {
                State::Waiting => self.changed.wait(&mut state),
                State::Done(outcome) => return Turn::Done(outcome),
                State::Leading => match self.write.lock().take() {
                    Some(write) => return Turn::Lead(write),
                    // Whoever took the batch finishes it.
                    None => continue,
                },
            }
        }
    }
}

/// Offers the processor to others until `is_over`, or so long.
fn yield_until(is_over: impl Fn() -> bool, patience: Duration) {
    let start = Instant::now();
    while !is_over() && start.elapsed() < patience {
        thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use super::*;

    #[test]
    fn every_batch_is_written_once_by_one_leader_at_a_time() {
        let queue = Queue::default();
        let (leaders, written) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let write = Write { records: Bytes::new(), count: 1 };
                        match queue.enter(write) {
                            Turn::Done(outcome) => outcome.unwrap(),
                            Turn::Lead(own) => {
                                assert_eq!(leaders.fetch_add(1, Relaxed), 0);
                                let mut room = 3;
                                let group = queue.take(|_| {
                                    room -= 1;
                                    room >= 0
                                });
                                written.fetch_add(own.count, Relaxed);
                                for (follower, write) in group {
                                    written.fetch_add(write.count, Relaxed);
                                    follower.finish(Ok(()));
                                }
                                leaders.fetch_sub(1, Relaxed);
                                queue.pass_on();
                            }
                        }
                    }
                });
            }
        });
        assert_eq!(written.into_inner(), 4000);
        assert!(!queue.0.lock().has_leader);
    }
}
