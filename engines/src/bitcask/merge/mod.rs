//! Merging: copying what is live out of files that are mostly dead, and removing those.
//!
//! 1. The active file is sealed, and ids are set aside for the outputs: above every file there is,
//!    below every file that will be written to from now on. So whatever is written during the merge
//!    wins over the copies, in memory and after a crash. Everything written so far is synced: a copy
//!    must not survive power loss where an earlier write does not.
//! 2. The inputs are read, the oldest first. A record is copied if the keydir points at it; a
//!    tombstone if its key is not there and an older file stays that may hold the key. A record that
//!    has expired is dropped, or, if an older file stays that may hold the key, a tombstone is
//!    written in its place: an older copy may have a later timestamp, if the clock was set back in
//!    between, or the directory be opened without expiry the next time.
//! 3. When an output is full, or the inputs are at their end, it is made durable: data synced, hint
//!    file synced, both under their names, directory synced. If there are tombstones in it,
//!    everything written meanwhile is synced before: a tombstone was copied because its key was not
//!    there, perhaps only since a deletion that power loss would take. Until then it has a temporary
//!    name, nothing points at it, and a crash or an error makes it as if it had never been.
//! 4. The keydir entries move, each only if it still points at the record that was copied.
//! 5. Everything written meanwhile is synced: it may be what made a record of the inputs dead.
//! 6. The inputs that were read to their end are removed one by one, the oldest first, the
//!    directory synced in between: a tombstone goes only after everything that it hides. Behind the
//!    sync the entries of dropped records leave the keydir: until then they can be deleted.
//!
//! A damaged file is never merged: what is in it may be wanted by somebody who knows more of it.
//! Its dead bytes stay, `compact` included, and so do the tombstones in later files.
//!
//! # Basho's Bitcask
//! It takes `bitcask.merge.lock` while it merges, and while it loads a directory waits for somebody
//! else's up to two seconds. So we take it too: another process that only reads finds the files
//! settled, and a merge of Basho's does not begin beside ours. It names no file, as Basho's does,
//! for our outputs appear whole: nobody has to pass over one. `bitcask.create.lock`, which
//! Basho's Bitcask takes to create a file, guards the choice of an id among its own writer and
//! merges. Ours happens behind the write lock; the lock is neither taken nor heeded.
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
    let policy = &shared.options.policy();
    let now = shared.time.now();
    if !policy.enabled || !policy.window.is_open(now) {
        return Ok(());
    }
    let _one_at_a_time = shared.merging.lock();
    let candidates = candidates(shared);
    let inputs = policy::choose(&candidates, policy, now);
    if inputs.is_empty() {
        return Ok(());
    }
    if candidates.iter().any(|file| file.active && inputs.contains(&file.id)) {
        shared.lock_writer()?.seal(shared)?;
    }
    let limits = Limits { bytes_per_second: policy.bytes_per_second, ends_at_close: true };
    run::run(shared, &inputs, limits)
}

/// Merges every file that has a dead byte or a record that may be dropped, the active file
/// included; not damaged ones, see [`Candidate::damaged`].
pub(super) fn all(shared: &Shared) -> Result<()> {
    // A background merge that is held back is not held back any more.
    let _no_pause = shared.queue.hurry();
    let _one_at_a_time = shared.merging.lock();
    let dropped_before = shared.dropped_before();
    let is_wanted = |file: &DataFile| {
        let expires = file.usage.ages.range().is_some_and(|(oldest, _)| oldest < dropped_before);
        (file.usage.dead_bytes() > 0 || expires) && !file.usage.is_damaged()
    };
    let wanted = || -> Vec<FileId> {
        let files = shared.files.load();
        files.iter().filter(|file| is_wanted(file)).map(|file| file.id).collect()
    };
    if wanted().is_empty() {
        return Ok(());
    }
    let inputs = {
        let mut writer = shared.lock_writer()?;
        writer.seal(shared)?;
        // Nothing is appended in between: no file that is written to is among them.
        wanted()
    };
    let limits = Limits { bytes_per_second: None, ends_at_close: false };
    run::run(shared, &inputs, limits)
}

/// All files. Under the writer's lock none is opened or sealed meanwhile.
fn candidates(shared: &Shared) -> Vec<Candidate> {
    let dropped_before = shared.dropped_before();
    let writer = shared.writer.lock();
    let files = shared.files.load();
    let candidate = |file: &DataFile| {
        let (usage, active) = (&file.usage, writer.is_active(file.id));
        let newest_so_far = |(oldest, newest)| {
            (oldest, if active { shared.time.now().max(newest) } else { newest })
        };
        let ages = usage.ages.range().map(newest_so_far);
        let live_bytes = usage.live_bytes();
        Candidate {
            id: file.id,
            length: usage.length(),
            live_bytes,
            tombstone_bytes: usage.tombstone_bytes(),
            expired_bytes: policy::expired_bytes(live_bytes, ages, dropped_before),
            dead_since: usage.dead_since(),
            damaged: usage.is_damaged(),
            active,
        }
    };
    files.iter().map(|file| candidate(file)).collect()
}
