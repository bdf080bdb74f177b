//! Carrying out a merge; the steps are numbered in the module above.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Limits;
use super::output::Output;
use crate::Result;
use crate::bitcask::clock::Timestamp;
use crate::bitcask::data_file::{DataFile, Next};
use crate::bitcask::keydir::Location;
use crate::bitcask::lock::{LockFile, Purpose};
use crate::bitcask::names::{self, FileId};
use crate::bitcask::record::Record;
use crate::bitcask::shared::Shared;
use crate::bitcask::writer::out_of_ids;

/// After how many bytes read a merge looks whether it should wait or end.
const STEP_BYTES: u64 = 1 << 20;

/// By how much a merge can make records larger at most: an empty one becomes a tombstone.
const GROWTH_MAX: u64 = 3;

/// Merges `inputs`, which are sealed and ascending.
pub(super) fn run(shared: &Shared, inputs: &[FileId], limits: Limits) -> Result<()> {
    let _originals_keep_away = LockFile::take(&shared.fs, &shared.directory, Purpose::Merge)?;
    let inputs: Vec<_> = inputs.iter().filter_map(|id| shared.file(*id)).collect();
    let input_bytes: u64 = inputs.iter().map(|file| file.usage.length()).sum();
    // Of two outputs that follow one another, the first left no place for the second's first
    // record: together they hold more than one full file.
    let output_count = 2 * (GROWTH_MAX * input_bytes / shared.options.max_file_bytes) + 2;
    let output_ids = shared.lock_writer()?.reserve_ids(shared, output_count)?;
    // A copy must not survive power loss where an earlier write does not.
    shared.sync_to(None)?;
    let mut merge = Merge {
        shared,
        input_ids: inputs.iter().map(|file| file.id).collect(),
        dropped_before: shared.dropped_before(),
        output_ids,
        output: None,
        read_to_end: Vec::new(),
        pace: Pace { limits, started: Instant::now(), read_bytes: 0, checked_bytes: 0 },
    };
    let result = merge.copy_all(inputs);
    if let Some(output) = merge.output.take() {
        output.abandon(shared);
    }
    result
}

struct Merge<'a> {
    shared: &'a Shared,
    input_ids: BTreeSet<FileId>,
    /// Older records are not copied.
    dropped_before: Timestamp,
    output_ids: Range<FileId>,
    output: Option<Output<'a>>,
    /// Inputs whose live records are all in outputs, published ones and the present one.
    read_to_end: Vec<ReadInput>,
    pace: Pace,
}

/// An input that was read to its end.
struct ReadInput {
    file: Arc<DataFile>,
    /// Where the records lie that have expired, and are gone with the file.
    dropped: Vec<Location>,
    /// Not all of it could be read.
    damaged: bool,
}

/// What a merge does with a record.
enum Fate {
    Dead,
    Copied,
    /// It has expired, and nothing older is left that would come back without it.
    Dropped,
    /// It has expired, and a tombstone takes its place.
    Deleted,
}

impl<'a> Merge<'a> {
    fn copy_all(&mut self, inputs: Vec<Arc<DataFile>>) -> Result<()> {
        for file in inputs {
            let mut input = ReadInput { file, dropped: Vec::new(), damaged: false };
            if self.copy_live(&mut input)? == Ended::Early {
                return Ok(());
            }
            self.read_to_end.push(input);
            // Without an output nothing of what was read is still needed.
            if self.output.is_none() {
                self.remove_inputs()?;
            }
        }
        self.publish()?;
        self.remove_inputs()?;
        self.shared.add_merge();
        Ok(())
    }

    /// Step 2 for one input.
    fn copy_live(&mut self, input: &mut ReadInput) -> Result<Ended> {
        let file = input.file.clone();
        let keep_tombstones = self.older_file_hides_something(file.id);
        let mut records = file.records(file.usage.length());
        loop {
            match records.next()? {
                Next::Record { offset, header, record } => {
                    let size = u32::try_from(header.record_bytes()).unwrap_or(u32::MAX);
                    let from = Location { file: file.id, offset, size };
                    match self.fate(from, &record, keep_tombstones) {
                        Fate::Dead => {}
                        Fate::Copied => self.output(size)?.copy(from, header, &record)?,
                        Fate::Deleted => self.output(size)?.delete(from, &record)?,
                        Fate::Dropped => input.dropped.push(from),
                    }
                    if self.pace.step(self.shared, size) == Ended::Early {
                        return Ok(Ended::Early);
                    }
                }
                Next::End => return Ok(Ended::AtEnd),
                // If something live was in there, the input is not removed.
                Next::Torn { .. } => {
                    input.damaged = true;
                    return Ok(Ended::AtEnd);
                }
                Next::Damage { .. } => input.damaged = true,
            }
        }
    }

    /// Whether a file that is older than `id`, and is not merged too, holds a record that was
    /// overwritten or deleted: perhaps one that a tombstone in `id` hides.
    fn older_file_hides_something(&self, id: FileId) -> bool {
        self.shared.files.load().iter().any(|file| {
            file.id < id && !self.input_ids.contains(&file.id) && file.usage.shadowed_bytes() > 0
        })
    }

    fn fate(&self, from: Location, record: &Record<'_>, keep_tombstones: bool) -> Fate {
        let newest = self.shared.keydir.get(record.key);
        if record.is_tombstone() {
            if keep_tombstones && newest.is_none() { Fate::Copied } else { Fate::Dead }
        } else if newest != Some(from) {
            Fate::Dead
        } else if record.timestamp >= self.dropped_before
            // The clock may have been set back meanwhile.
            || record.timestamp >= self.shared.dropped_before()
        {
            Fate::Copied
        } else if keep_tombstones {
            Fate::Deleted
        } else {
            Fate::Dropped
        }
    }

    /// The output that has room for a record of `size` bytes.
    fn output(&mut self, size: u32) -> Result<&mut Output<'a>> {
        let limit = self.shared.options.max_file_bytes;
        if self.output.as_ref().is_some_and(|output| output.is_full(size, limit)) {
            self.publish()?;
            self.remove_inputs()?;
        }
        match &mut self.output {
            Some(output) => Ok(output),
            none => {
                let id = self.output_ids.next().ok_or_else(out_of_ids)?;
                Ok(none.insert(Output::create(self.shared, id)?))
            }
        }
    }

    /// Steps 3 and 4.
    fn publish(&mut self) -> Result<()> {
        let Some(mut output) = self.output.take() else { return Ok(()) };
        // A copied tombstone lies behind records that it does not hide, and that a later deletion,
        // perhaps not synced yet, was to hide.
        let synced = if output.has_tombstones() { self.shared.sync_to(None) } else { Ok(()) };
        let published = match synced.and_then(|()| output.make_durable(self.shared)) {
            Ok(file) => file,
            Err(error) => {
                output.abandon(self.shared);
                return Err(error);
            }
        };
        self.shared.change_files(|files| files.insert(published.clone()));
        let sources = output.into_sources();
        self.shared.add_merged(published.usage.length());
        move_entries(self.shared, &published, &sources)
    }

    /// Steps 5 and 6.
    fn remove_inputs(&mut self) -> Result<()> {
        if self.read_to_end.is_empty() {
            return Ok(());
        }
        self.shared.sync_to(None)?;
        for input in self.read_to_end.drain(..) {
            input.remove(self.shared)?;
        }
        Ok(())
    }
}

/// Points the keydir at the copies, where it still points at what was copied. Where a tombstone took
/// the place of a record that has expired, the key goes.
fn move_entries(shared: &Shared, output: &DataFile, sources: &[Location]) -> Result<()> {
    let mut sources = sources.iter();
    let mut records = output.records(output.usage.length());
    loop {
        let (offset, record) = match records.next()? {
            Next::Record { offset, record, .. } => (offset, record),
            Next::End => return Ok(()),
            Next::Damage { offset, problem } | Next::Torn { offset, problem } => {
                return Err(output.damage(offset, problem));
            }
        };
        let Some(&from) = sources.next() else { return Ok(()) };
        if record.is_tombstone() {
            drop_entry(shared, record.key, from);
            continue;
        }
        let to = Location { file: output.id, offset, size: from.size };
        // Counted before it can be overwritten there.
        output.usage.add_live(to.size);
        if shared.keydir.relocate(record.key, from, to)? {
            if let Some(input) = shared.file(from.file) {
                input.usage.remove_live(from.size);
            }
        } else {
            output.usage.remove_live(to.size);
            output.usage.note_death(|| shared.time.now());
        }
    }
}

/// Removes `key` from the keydir if it still lies at `from`.
fn drop_entry(shared: &Shared, key: &[u8], from: Location) {
    if shared.keydir.remove_at(key, from)
        && let Some(input) = shared.file(from.file)
    {
        input.usage.remove_live(from.size);
        shared.counters.expired_records.fetch_add(1, Ordering::Relaxed);
    }
}

impl ReadInput {
    /// Removes an input of which nothing is live any more but what has expired.
    ///
    /// If something else is, it could not be read: the input stays, and with it every later one,
    /// whose tombstones it may need.
    fn remove(&self, shared: &Shared) -> Result<()> {
        let Self { file, dropped, damaged } = self;
        {
            // Whoever overwrites a record counts it as dead before he lets go of this lock.
            let _counts_are_settled = shared.writer.lock();
            let may_live: u64 = dropped.iter().map(|from| u64::from(from.size)).sum();
            if file.usage.live_bytes() > if *damaged { 0 } else { may_live } {
                file.usage.damaged.store(true, Ordering::Release);
                return Err(file.damage(0, "a merge could not read all live records of the file"));
            }
        }
        // The hint file first: if it cannot be removed, the next merge finds all as it was.
        let hint = names::hint(&shared.directory, file.id);
        if shared.fs.entry(&hint)?.is_some_and(|entry| !entry.is_directory) {
            shared.fs.remove(&hint)?;
        }
        shared.fs.remove(&file.path)?;
        // Later removals depend on this one.
        shared.fs.sync_directory(&shared.directory).map_err(|error| shared.poison(error))?;
        // Only now: a deletion of a key that is not there writes no tombstone, so as long as the
        // file may come back after a crash its keys are there to be deleted.
        self.drop_entries(shared)?;
        {
            let _no_scan_begins = shared.pinning.write();
            shared.change_files(|files| files.remove(file.id));
        }
        shared.add_reclaimed(file.usage.length());
        Ok(())
    }

    /// If one cannot be read again its key is not known: then the file goes on being read from.
    fn drop_entries(&self, shared: &Shared) -> Result<()> {
        let mut scratch = Vec::new();
        for &from in &self.dropped {
            match self.file.read_any(from, &mut scratch) {
                Ok(record) => drop_entry(shared, record.key, from),
                Err(error) => {
                    self.file.usage.damaged.store(true, Ordering::Release);
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    AtEnd,
    /// The engine is closing.
    Early,
}

/// Keeps a merge within its limits.
struct Pace {
    limits: Limits,
    started: Instant,
    read_bytes: u64,
    checked_bytes: u64,
}

impl Pace {
    /// Counts bytes; every now and then waits, and says whether to end.
    fn step(&mut self, shared: &Shared, bytes: u32) -> Ended {
        self.read_bytes += u64::from(bytes);
        if self.read_bytes - self.checked_bytes < STEP_BYTES {
            return Ended::AtEnd;
        }
        self.checked_bytes = self.read_bytes;
        if let Some(bytes_per_second) = self.limits.bytes_per_second {
            let wait = pause(self.read_bytes, bytes_per_second, self.started.elapsed());
            shared.queue.pause(wait);
        }
        if self.limits.ends_at_close && shared.queue.is_stopping() {
            Ended::Early
        } else {
            Ended::AtEnd
        }
    }
}

/// How long to wait if so many bytes were read since so long.
fn pause(read_bytes: u64, bytes_per_second: u64, elapsed: Duration) -> Duration {
    let due = read_bytes as f64 / bytes_per_second.max(1) as f64;
    Duration::try_from_secs_f64(due).unwrap_or(Duration::MAX).saturating_sub(elapsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_waits_until_what_it_read_is_due() {
        let seconds = Duration::from_secs;
        for (read_bytes, bytes_per_second, elapsed, expected) in [
            (0, 100, seconds(0), seconds(0)),
            (1_000, 100, seconds(0), seconds(10)),
            (1_000, 100, seconds(4), seconds(6)),
            (1_000, 100, seconds(10), seconds(0)),
            (1_000, 100, seconds(99), seconds(0)),
            (50, 100, seconds(0), Duration::from_millis(500)),
            (1 << 40, u64::MAX, seconds(1), seconds(0)),
            (u64::MAX, 1, seconds(0), Duration::from_secs(1 << 63).saturating_mul(2)),
        ] {
            assert_eq!(pause(read_bytes, bytes_per_second, elapsed), expected);
        }
    }
}
