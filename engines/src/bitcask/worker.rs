//! The background thread: it syncs sealed files, writes their hint files, and merges.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::data_file::{DataFile, Next};
use super::hint::HintWriter;
use super::merge;
use super::names::FileId;
use super::shared::Shared;
use crate::{Error, Result};

/// What waits to be done in the background.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    sealed: VecDeque<FileId>,
    check_merges: bool,
    busy: bool,
    stop: bool,
    last_error: Option<String>,
}

/// One piece of background work.
#[derive(Debug, Clone, Copy)]
enum Job {
    Finish(FileId),
    Merge,
}

impl Queue {
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
        while (state.busy || !state.sealed.is_empty() || state.check_merges) && !state.stop {
            self.changed.wait(&mut state);
        }
    }

    pub(super) fn stop(&self) {
        self.state.lock().stop = true;
        self.changed.notify_all();
    }

    /// Waits so long, or until the engine is closed.
    pub(super) fn wait_or_stop(&self, time: Duration) {
        let deadline = Instant::now() + time;
        let mut state = self.state.lock();
        while !state.stop && !self.changed.wait_until(&mut state, deadline).timed_out() {}
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.state.lock().stop
    }

    /// The last failure of background work.
    pub(super) fn last_error(&self) -> Option<String> {
        self.state.lock().last_error.clone()
    }

    /// Waits for the next job; files that are sealed are finished even when stopping, merges not
    /// begun.
    fn next(&self) -> Option<Job> {
        let mut state = self.state.lock();
        loop {
            let job = match state.sealed.pop_front() {
                Some(id) => Some(Job::Finish(id)),
                None if state.stop => return None,
                None if state.check_merges => {
                    state.check_merges = false;
                    Some(Job::Merge)
                }
                None => None,
            };
            if job.is_some() {
                state.busy = true;
                return job;
            }
            self.changed.wait(&mut state);
        }
    }

    fn done(&self, result: Result<()>) {
        let mut state = self.state.lock();
        state.busy = false;
        if let Err(error) = result {
            state.last_error = Some(error.to_string());
        }
        self.changed.notify_all();
    }
}

/// Starts the thread.
pub(super) fn start(shared: Arc<Shared>) -> Result<JoinHandle<()>> {
    let directory = shared.directory.clone();
    thread::Builder::new()
        .name("bitcask".to_owned())
        .spawn(move || {
            while let Some(job) = shared.queue.next() {
                let result = match job {
                    Job::Finish(id) => finish_file(&shared, id),
                    Job::Merge => merge::in_background(&shared),
                };
                shared.queue.done(result);
            }
        })
        .map_err(Error::io("start the background thread for", directory))
}

/// Syncs a sealed file and writes its hint file. A hint that reaches the disk before what it
/// describes would be believed after a crash; so the data is synced first, whatever the level of
/// durability.
pub(super) fn finish_file(shared: &Shared, id: FileId) -> Result<()> {
    shared.check_poison()?;
    {
        // Files are synced in the order they were written, so that power loss leaves no later
        // write without an earlier one: not while another thread is at an older file.
        let _in_order = shared.synced.lock();
        let unsynced = shared.writer.lock().unsynced_file(id);
        if let Some(file) = unsynced {
            file.sync().map_err(|error| shared.poison(error))?;
            shared.writer.lock().mark_synced(id);
        }
    }
    let Some(file) = shared.file(id).filter(|file| !file.usage.is_damaged()) else {
        // It was merged away meanwhile, or is damaged: nothing may vouch for it.
        return Ok(());
    };
    let mut hint = HintWriter::create(shared.fs.as_ref(), &shared.directory, id)?;
    if let Err(error) = fill_hint(&file, &mut hint) {
        hint.abandon();
        return Err(error);
    }
    hint.finish()?;
    shared.fs.sync_directory(&shared.directory).map_err(|error| shared.poison(error))
}

fn fill_hint(file: &DataFile, hint: &mut HintWriter<'_>) -> Result<()> {
    let mut records = file.records(file.usage.length());
    loop {
        match records.next()? {
            Next::Record { offset, header, record } => {
                hint.add(header, offset, record.key, record.is_tombstone())?;
            }
            Next::End => return Ok(()),
            Next::Damage { offset, problem } | Next::Torn { offset, problem } => {
                return Err(file.damage(offset, problem));
            }
        }
    }
}
