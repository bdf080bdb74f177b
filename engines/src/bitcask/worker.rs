//! The background thread: it syncs sealed files, writes their hint files, and merges.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::data_file::{DataFile, Next};
use super::hint::HintWriter;
use super::merge;
use super::names::FileId;
use super::queue::Job;
use super::shared::Shared;
use crate::{Error, Result};

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
