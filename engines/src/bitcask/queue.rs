//! What waits to be done in the background, and when.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::names::FileId;
use crate::{Durability, Result};

/// How long nothing must have been appended before sealed files are finished.
const QUIET: Duration = Duration::from_millis(200);
/// How many sealed files wait for that at most.
const WAITING_FILES_MAX: usize = 8;

/// The queue of the background thread.
///
/// Finishing a sealed file is no hurry: it makes the next opening fast, and syncs what need not be
/// synced yet, which slows the writer down (500,000 records of 2,702 bytes on two cores: 3.4 s, and
/// 2.1 s without). So it is done when the writer rests, when too many files wait, and when somebody
/// waits for the background to be quiet.
#[derive(Debug)]
pub(super) struct Queue {
    /// How many sealed files may wait.
    patience: usize,
    /// How often to see whether to merge though nothing was written.
    look_every: Option<Duration>,
    /// Counts appends.
    appends: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    sealed: VecDeque<FileId>,
    check_merges: bool,
    /// When that was done last.
    looked: Option<Instant>,
    /// A job is being done.
    busy: bool,
    /// How many threads wait until nothing is left to do.
    waiting: usize,
    /// How many threads wait for a merge to let them merge.
    hurrying: usize,
    stop: bool,
    last_error: Option<String>,
}

/// See [`Queue::hurry`].
pub(super) struct Hurry<'a>(&'a Queue);

impl Drop for Hurry<'_> {
    fn drop(&mut self) {
        self.0.state.lock().hurrying -= 1;
    }
}

/// One piece of background work.
#[derive(Debug, Clone, Copy)]
pub(super) enum Job {
    /// Sync a sealed file and write its hint file.
    Finish(FileId),
    /// Merge if the policy says so.
    Merge,
}

impl Queue {
    pub(super) fn new(durability: Durability, look_every: Option<Duration>) -> Self {
        // At level `power` the files are synced as they are written: nothing is won by waiting.
        let patience = if durability == Durability::Power { 0 } else { WAITING_FILES_MAX };
        Self {
            patience,
            look_every,
            appends: AtomicU64::new(0),
            state: Mutex::default(),
            changed: Condvar::default(),
        }
    }

    /// Something was appended.
    pub(super) fn note_append(&self) {
        self.appends.fetch_add(1, Ordering::Relaxed);
    }

    /// A file was sealed: sync it, write its hint file, and see whether to merge.
    pub(super) fn seal(&self, id: FileId) {
        let mut state = self.state.lock();
        state.sealed.push_back(id);
        state.check_merges = true;
        self.changed.notify_all();
    }

    /// More is dead than before: see whether to merge.
    pub(super) fn check_merges(&self) {
        self.state.lock().check_merges = true;
        self.changed.notify_all();
    }

    /// Returns when nothing waits and nothing runs.
    pub(super) fn wait_until_idle(&self) {
        let mut state = self.state.lock();
        state.waiting += 1;
        self.changed.notify_all();
        while (state.busy || !state.sealed.is_empty() || state.check_merges) && !state.stop {
            self.changed.wait(&mut state);
        }
        state.waiting -= 1;
    }

    pub(super) fn stop(&self) {
        self.state.lock().stop = true;
        self.changed.notify_all();
    }

    /// Waits so long, or until the engine is closed or somebody is in a hurry.
    pub(super) fn pause(&self, time: Duration) {
        let deadline = Instant::now().checked_add(time);
        let mut state = self.state.lock();
        while !state.stop && state.hurrying == 0 {
            match deadline {
                Some(deadline) => {
                    if self.changed.wait_until(&mut state, deadline).timed_out() {
                        return;
                    }
                }
                None => self.changed.wait(&mut state),
            }
        }
    }

    /// Until the guard is dropped nobody pauses.
    pub(super) fn hurry(&self) -> Hurry<'_> {
        self.state.lock().hurrying += 1;
        self.changed.notify_all();
        Hurry(self)
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.state.lock().stop
    }

    /// The last failure of background work.
    pub(super) fn last_error(&self) -> Option<String> {
        self.state.lock().last_error.clone()
    }

    /// Waits for the next job. At the end sealed files are finished all the same, merges not begun.
    pub(super) fn next(&self) -> Option<Job> {
        let mut state = self.state.lock();
        let mut quiet = false;
        loop {
            let soon =
                quiet || state.stop || state.waiting > 0 || state.sealed.len() > self.patience;
            if soon && let Some(id) = state.sealed.pop_front() {
                state.busy = true;
                return Some(Job::Finish(id));
            }
            if state.stop {
                return None;
            }
            if state.check_merges || self.is_time(&state) {
                state.check_merges = false;
                state.looked = Some(Instant::now());
                state.busy = true;
                return Some(Job::Merge);
            }
            if state.sealed.is_empty() {
                self.wait(&mut state);
            } else {
                let before = self.appends.load(Ordering::Relaxed);
                let timed_out = self.changed.wait_for(&mut state, QUIET).timed_out();
                quiet = timed_out && self.appends.load(Ordering::Relaxed) == before;
            }
        }
    }

    /// Whether to see whether to merge though nothing was written.
    fn is_time(&self, state: &State) -> bool {
        let since = state.looked.map(|looked| looked.elapsed());
        self.look_every.is_some_and(|time| since.is_none_or(|since| since >= time))
    }

    /// Waits for a change, or until it is time.
    fn wait(&self, state: &mut MutexGuard<'_, State>) {
        match self.look_every {
            Some(time) => {
                let since = state.looked.map_or(time, |looked| looked.elapsed());
                self.changed.wait_for(state, time.saturating_sub(since));
            }
            None => self.changed.wait(state),
        }
    }

    pub(super) fn done(&self, result: Result<()>) {
        let mut state = self.state.lock();
        state.busy = false;
        if let Err(error) = result {
            state.last_error = Some(error.to_string());
        }
        self.changed.notify_all();
    }
}
