//! Carrying out a merge; the steps are numbered in the module above.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::output::Output;
use super::{Limits, candidate};
use crate::Result;
use crate::bitcask::data_file::{DataFile, Next};
use crate::bitcask::keydir::Location;
use crate::bitcask::names::{self, FileId};
use crate::bitcask::record::{Header, Record};
use crate::bitcask::shared::Shared;

/// After how many bytes read a merge looks whether it should wait or end.
const STEP_BYTES: u64 = 1 << 20;

/// Merges `inputs`, which are sealed and ascending.
pub(super) fn run(shared: &Shared, inputs: &[FileId], limits: Limits) -> Result<()> {
    let inputs: Vec<_> = inputs.iter().filter_map(|id| shared.file(*id)).collect();
    let input_bytes: u64 = inputs.iter().map(|file| file.usage.length()).sum();
    // Of two outputs that follow one another, the first left no place for the second's first
    // record: together they hold more than one full file.
    let output_count = 2 * (input_bytes / shared.options.max_file_bytes.max(1)) + 2;
    let first_output = shared.lock_writer()?.reserve_ids(shared, output_count)?;
    // A copy must not survive power loss where an earlier write does not.
    shared.sync_to(None)?;
    let mut merge = Merge {
        shared,
        input_ids: inputs.iter().map(|file| file.id).collect(),
        next_output: first_output,
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
    next_output: FileId,
    output: Option<Output<'a>>,
    /// Inputs whose live records are all in outputs, published ones and the present one.
    read_to_end: Vec<Arc<DataFile>>,
    pace: Pace,
}

impl Merge<'_> {
    fn copy_all(&mut self, inputs: Vec<Arc<DataFile>>) -> Result<()> {
        for input in inputs {
            if self.copy_live(&input)? == Ended::Early {
                return Ok(());
            }
            self.read_to_end.push(input);
        }
        self.publish()?;
        self.remove_inputs()?;
        self.shared.add_merge();
        Ok(())
    }

    /// Step 2 for one input.
    fn copy_live(&mut self, input: &DataFile) -> Result<Ended> {
        let keep_tombstones = self.older_file_hides_something(input.id);
        let mut records = input.records(input.usage.length());
        loop {
            match records.next()? {
                Next::Record { offset, header, record } => {
                    let size = u32::try_from(header.record_bytes()).unwrap_or(u32::MAX);
                    let from = Location { file: input.id, offset, size };
                    if self.is_wanted(from, &record, keep_tombstones) {
                        self.copy(from, header, &record)?;
                    }
                    if self.pace.step(self.shared, size) == Ended::Early {
                        return Ok(Ended::Early);
                    }
                }
                Next::End => return Ok(Ended::AtEnd),
                // If something live was in there, the input is not removed.
                Next::Torn { .. } => return Ok(Ended::AtEnd),
                Next::Damage { .. } => {}
            }
        }
    }

    /// Whether a file that is older than `id`, and is not merged too, holds a record that was
    /// overwritten or deleted: perhaps one that a tombstone in `id` hides.
    fn older_file_hides_something(&self, id: FileId) -> bool {
        self.shared.files.load().iter().any(|file| {
            file.id < id
                && !self.input_ids.contains(&file.id)
                && candidate(file).shadowed_bytes() > 0
        })
    }

    fn is_wanted(&self, from: Location, record: &Record<'_>, keep_tombstones: bool) -> bool {
        let newest = self.shared.keydir.get(record.key);
        if record.is_tombstone() {
            keep_tombstones && newest.is_none()
        } else {
            newest == Some(from)
        }
    }

    fn copy(&mut self, from: Location, header: Header, record: &Record<'_>) -> Result<()> {
        let limit = self.shared.options.max_file_bytes;
        if self.output.as_ref().is_some_and(|output| output.is_full(from.size, limit)) {
            self.publish()?;
            self.remove_inputs()?;
        }
        if self.output.is_none() {
            self.output = Some(Output::create(self.shared, self.next_output)?);
            self.next_output += 1;
        }
        match &mut self.output {
            Some(output) => output.copy(from, header, record),
            None => Ok(()),
        }
    }

    /// Steps 3 and 4.
    fn publish(&mut self) -> Result<()> {
        let Some(mut output) = self.output.take() else { return Ok(()) };
        let published = match output.make_durable(self.shared) {
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
            remove_input(self.shared, &input)?;
        }
        Ok(())
    }
}

/// Points the keydir at the copies, where it still points at what was copied.
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
        if record.is_tombstone() {
            continue;
        }
        let Some(&from) = sources.next() else { return Ok(()) };
        let to = Location { file: output.id, offset, size: from.size };
        // Counted before it can be overwritten there.
        output.usage.add_live(to.size);
        if shared.keydir.relocate(record.key, from, to)? {
            if let Some(input) = shared.file(from.file) {
                input.usage.remove_live(from.size);
            }
        } else {
            output.usage.remove_live(to.size);
        }
    }
}

/// Removes an input of which nothing is live any more. If something is, it could not be copied: the
/// input stays, and with it every later one, whose tombstones it may need.
fn remove_input(shared: &Shared, input: &DataFile) -> Result<()> {
    {
        // Whoever overwrites a record counts it as dead before he lets go of this lock.
        let _counts_are_settled = shared.writer.lock();
        if input.usage.live_bytes() > 0 {
            input.usage.damaged.store(true, Ordering::Release);
            return Err(input.damage(0, "a merge could not read all live records of the file"));
        }
    }
    shared.fs.remove(&input.path)?;
    let hint = names::hint(&shared.directory, input.id);
    if shared.fs.entry(&hint)?.is_some() {
        shared.fs.remove(&hint)?;
    }
    {
        let _no_scan_begins = shared.pinning.write();
        shared.change_files(|files| files.remove(input.id));
    }
    shared.add_reclaimed(input.usage.length());
    // Later removals depend on this one.
    shared.fs.sync_directory(&shared.directory).map_err(|error| shared.poison(error))
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
            let due = self.read_bytes as f64 / bytes_per_second.max(1) as f64;
            let wait = Duration::from_secs_f64(due).saturating_sub(self.started.elapsed());
            shared.queue.wait_or_stop(wait);
        }
        if self.limits.ends_at_close && shared.queue.is_stopping() {
            Ended::Early
        } else {
            Ended::AtEnd
        }
    }
}
