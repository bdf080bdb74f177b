//! Merging: copying what is live out of files that are mostly dead, and removing those.
//!
//! 1. The active file is sealed, and ids are set aside for the outputs: above every file there is,
//!    below every file that will be written to from now on. So whatever is written during the merge
//!    wins over the copies, in memory and after a crash. Everything written so far is synced: a copy
//!    must not survive power loss where an earlier write does not.
//! 2. The inputs are read, the oldest first. A record is copied if the keydir points at it; a
//!    tombstone if its key is not there and an older file stays that may hold the key.
//! 3. When an output is full, or the inputs are at their end, it is made durable: data synced, hint
//!    file synced, both under their names, directory synced. Until then it has a temporary name,
//!    nothing points at it, and a crash or an error makes it as if it had never been.
//! 4. The keydir entries move, each only if it still points at the record that was copied.
//! 5. Everything written meanwhile is synced: it may be what made a record of the inputs dead.
//! 6. The inputs that were read to their end are removed one by one, the oldest first, the
//!    directory synced in between: a tombstone goes only after everything that it hides.
//!
//! Readers and scans that hold an input go on reading it; it takes space until they are done.

mod policy;
mod run;

mod output;

use super::data_file::DataFile;
use super::names::FileId;
use super::shared::Shared;
use crate::Result;
use policy::Candidate;

/// What a merge is held to.
#[derive(Debug, Clone, Copy)]
struct Limits {
    bytes_per_second: Option<u64>,
    /// Whether it ends, in order, when the engine is closed.
    ends_at_close: bool,
}

/// Merges what the policy chooses.
pub(super) fn in_background(shared: &Shared) -> Result<()> {
    let policy = &shared.options.merge;
    if !policy.enabled {
        return Ok(());
    }
    let _one_at_a_time = shared.merging.lock();
    let inputs = policy::choose(&candidates(shared), policy);
    if inputs.is_empty() {
        return Ok(());
    }
    let limits = Limits { bytes_per_second: policy.bytes_per_second, ends_at_close: true };
    run::run(shared, &inputs, limits)
}

/// Merges every file that has a dead byte, the active file included; not damaged ones, see
/// [`Candidate::damaged`].
pub(super) fn all(shared: &Shared) -> Result<()> {
    let _one_at_a_time = shared.merging.lock();
    let has_dead_bytes = |files: Vec<Candidate>| -> Vec<FileId> {
        let wanted = |file: &Candidate| file.live_bytes < file.length && !file.damaged;
        files.into_iter().filter(wanted).map(|file| file.id).collect()
    };
    if has_dead_bytes(shared.files.load().iter().map(|file| candidate(file)).collect()).is_empty() {
        return Ok(());
    }
    shared.lock_writer()?.seal(shared)?;
    let limits = Limits { bytes_per_second: None, ends_at_close: false };
    run::run(shared, &has_dead_bytes(candidates(shared)), limits)
}

/// The sealed files. Under the writer's lock none is opened or sealed meanwhile.
fn candidates(shared: &Shared) -> Vec<Candidate> {
    let writer = shared.writer.lock();
    let files = shared.files.load();
    let sealed = files.iter().filter(|file| !writer.is_active(file.id));
    sealed.map(|file| candidate(file)).collect()
}

fn candidate(file: &DataFile) -> Candidate {
    Candidate {
        id: file.id,
        length: file.usage.length(),
        live_bytes: file.usage.live_bytes(),
        tombstone_bytes: file.usage.tombstone_bytes(),
        damaged: file.usage.is_damaged(),
    }
}
