//! A test of the tests: the simplest engine that keeps the contract passes, and the same with one
//! classic mistake does not.
//!
//! One file `log`, each batch one record: checksum u32, body length u32, body; the body is the
//! operations, each kind u8 (1 put, 0 deletion), key length u32, key, for puts value length u32,
//! value. All little-endian. Compaction writes the live records to `new`, and renames it.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use engines::engine::Visitor;
use engines::fs::sim::SimFs;
use engines::fs::{Access, Create, FileSystem, WriteFile};
use engines::{
    Batch, Capabilities, Description, Direction, Durability, Engine, Error, KeyRange, Operation,
    Result, Stats,
};

use super::faults::fail_everywhere;
use super::oracle::State;
use super::workload::{Shape, Subject};
use super::{Report, crash_everywhere, seeds};

/// One mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    /// Writes wait in the process at every level.
    AcknowledgesEarly,
    /// Sync does nothing.
    NeverSyncs,
    /// The log's name is not made durable.
    NoDirectorySync,
    /// What lies behind the last whole record stays, and new records are written behind it.
    KeepsTornTail,
    /// Records are believed without their checksum.
    NoChecksum,
    /// Records that fail their checksum are passed over, and those behind them believed.
    PassesOverDamage,
    /// A batch is written operation by operation.
    SplitsBatches,
    /// Compaction renames a file that was not synced.
    RenamesUnsynced,
    /// Compaction removes the log before it renames.
    RemovesFirst,
    /// Compaction brings back what was deleted last.
    Resurrects,
    /// Panics on a log with a torn tail.
    PanicsOnTornTail,
    /// A failed call is forgotten.
    GoesOnAfterFailure,
}

struct Toy {
    fs: SimFs,
    durability: Durability,
    mistake: Mistake,
    inner: Mutex<Inner>,
}

struct Inner {
    state: State,
    last_deleted: Option<(Vec<u8>, Vec<u8>)>,
    failed: bool,
    log: Arc<dyn WriteFile>,
    length: u64,
    waiting: Vec<u8>,
}

fn log() -> &'static Path {
    Path::new("/toy/log")
}

impl Toy {
    fn open(fs: &SimFs, durability: Durability, mistake: Mistake) -> Result<Self> {
        let directory = Path::new("/toy");
        fs.create_directory(directory)?;
        fs.sync_directory(Path::new("/"))?;
        let (state, length, log) = if fs.entry(log())?.is_some() {
            Self::replay(fs, mistake)?
        } else {
            (State::new(), 0, fs.create(log(), Create::New)?)
        };
        if mistake != Mistake::NoDirectorySync {
            fs.sync_directory(directory)?;
        }
        let inner =
            Inner { state, last_deleted: None, failed: false, log, length, waiting: Vec::new() };
        Ok(Self { fs: fs.clone(), durability, mistake, inner: Mutex::new(inner) })
    }

    fn replay(fs: &SimFs, mistake: Mistake) -> Result<(State, u64, Arc<dyn WriteFile>)> {
        let reader = fs.open(log(), Access::Positioned)?;
        let length = reader.length()?;
        let mut bytes = Vec::new();
        reader.read_at(0, usize::try_from(length).unwrap(), &mut bytes)?;
        let mut state = State::new();
        let mut rest = bytes.as_slice();
        let checked = mistake != Mistake::NoChecksum;
        loop {
            if let Some((body, after)) = split_record(rest, checked) {
                for (key, value) in decode(body) {
                    apply(&mut state, key, value);
                }
                rest = after;
            } else if mistake == Mistake::PassesOverDamage
                && let Some((_, after)) = split_record(rest, false)
            {
                rest = after;
            } else {
                break;
            }
        }
        if mistake == Mistake::PanicsOnTornTail && !rest.is_empty() {
            // A panic without the report of one.
            std::panic::resume_unwind(Box::new("a torn tail"));
        }
        let whole = length - rest.len() as u64;
        let file = fs.open_for_write(log())?;
        if mistake == Mistake::KeepsTornTail {
            return Ok((state, length, file));
        }
        if whole < length {
            file.truncate(whole)?;
        }
        file.sync()?;
        Ok((state, whole, file))
    }

    /// Runs a call that changes something; after one that failed none is accepted.
    fn change(&self, act: impl FnOnce(&mut Inner) -> Result<()>) -> Result<()> {
        let mut inner = self.inner.lock();
        if inner.failed {
            return Err(Error::Poisoned { cause: String::new() });
        }
        let result = act(&mut inner);
        inner.failed = result.is_err() && self.mistake != Mistake::GoesOnAfterFailure;
        result
    }

    fn apply(&self, batch: &Batch) -> Result<()> {
        self.change(|inner| self.apply_to(inner, batch))
    }

    fn apply_to(&self, inner: &mut Inner, batch: &Batch) -> Result<()> {
        let mut body = Vec::new();
        for operation in batch.iter() {
            encode(operation, &mut body);
            let (key, value) = match operation {
                Operation::Put { key, value } => (key, Some(value)),
                Operation::Delete { key } => (key, None),
            };
            if value.is_none()
                && let Some(old) = inner.state.get(key).cloned()
            {
                inner.last_deleted = Some((key.to_vec(), old));
            }
            apply(&mut inner.state, key, value);
            if self.mistake == Mistake::SplitsBatches {
                inner.append(&std::mem::take(&mut body));
                inner.write_out()?;
            }
        }
        inner.append(&body);
        let early = self.mistake == Mistake::AcknowledgesEarly;
        if (self.durability > Durability::Buffered && !early) || inner.waiting.len() > 4096 {
            inner.write_out()?;
        }
        if self.durability == Durability::Power { self.sync_log(inner) } else { Ok(()) }
    }

    fn sync_log(&self, inner: &mut Inner) -> Result<()> {
        if self.mistake == Mistake::NeverSyncs {
            return Ok(());
        }
        inner.write_out()?;
        inner.log.sync()
    }

    fn compact_log(&self, inner: &mut Inner) -> Result<()> {
        let mut state = inner.state.clone();
        if self.mistake == Mistake::Resurrects {
            state.extend(inner.last_deleted.clone());
        }
        let mut body = Vec::new();
        for (key, value) in &state {
            encode(Operation::Put { key, value }, &mut body);
        }
        let path = Path::new("/toy/new");
        inner.log = self.fs.create(path, Create::Replace)?;
        inner.waiting.clear();
        inner.length = 0;
        inner.append(&body);
        inner.write_out()?;
        if self.mistake != Mistake::RenamesUnsynced {
            inner.log.sync()?;
        }
        if self.mistake == Mistake::RemovesFirst {
            self.fs.remove(log())?;
            self.fs.sync_directory(Path::new("/toy"))?;
        }
        self.fs.rename(path, log())?;
        self.fs.sync_directory(Path::new("/toy"))
    }
}

impl Inner {
    fn append(&mut self, body: &[u8]) {
        if body.is_empty() {
            return;
        }
        self.waiting.extend(crc32fast::hash(body).to_le_bytes());
        push_length(&mut self.waiting, body);
        self.waiting.extend(body);
    }

    fn write_out(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        self.log.write_at(self.length, &waiting)?;
        self.length += waiting.len() as u64;
        Ok(())
    }
}

impl Engine for Toy {
    fn description(&self) -> Description {
        let (version, durability) = (String::new(), String::new());
        Description { engine: "toy", version, durability, settings: Vec::new() }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            ordered_scan: false,
            scan_sorts: false,
            atomic_batch: true,
            snapshot_scan: false,
            persistent: true,
        }
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut batch = Batch::new();
        batch.put(key, value)?;
        self.apply(&batch)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete(key)?;
        self.apply(&batch)
    }

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.inner.lock().state.get(key).map(|value| read(value)).is_some())
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        self.apply(batch)
    }

    fn scan(&self, _: KeyRange<'_>, _: Direction, _: &mut Visitor<'_>) -> Result<()> {
        Err(Error::Unsupported { engine: "toy", operation: "scan".into() })
    }

    fn fold(&self, visit: &mut Visitor<'_>) -> Result<()> {
        for (key, value) in &self.inner.lock().state {
            if visit(key, value) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.change(|inner| self.sync_log(inner))
    }

    fn quiesce(&self) -> Result<()> {
        Ok(())
    }

    fn compact(&self) -> Result<()> {
        self.change(|inner| self.compact_log(inner))
    }

    fn stats(&self) -> Result<Stats> {
        Ok(Stats::default())
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.change(Inner::write_out)
    }
}

fn apply(state: &mut State, key: &[u8], value: Option<&[u8]>) {
    match value {
        Some(value) => state.insert(key.to_vec(), value.to_vec()),
        None => state.remove(key),
    };
}

fn encode(operation: Operation<'_>, out: &mut Vec<u8>) {
    let (kind, value) = match operation {
        Operation::Put { value, .. } => (1, Some(value)),
        Operation::Delete { .. } => (0, None),
    };
    out.push(kind);
    for part in [Some(operation.key()), value].into_iter().flatten() {
        push_length(out, part);
        out.extend(part);
    }
}

fn decode(mut body: &[u8]) -> Vec<(&[u8], Option<&[u8]>)> {
    let mut changes = Vec::new();
    while let Some((kind, rest)) = body.split_first() {
        let Some((key, rest)) = split_sized(rest) else { break };
        let (value, rest) = match kind {
            1 => match split_sized(rest) {
                Some((value, rest)) => (Some(value), rest),
                None => break,
            },
            _ => (None, rest),
        };
        changes.push((key, value));
        body = rest;
    }
    changes
}

fn push_length(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
}

fn split_sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

/// An empty body is no record: zeros that a crash left must not look like one.
fn split_record(bytes: &[u8], check: bool) -> Option<(&[u8], &[u8])> {
    let (checksum, rest) = bytes.split_first_chunk::<4>()?;
    let (body, rest) = split_sized(rest)?;
    let whole = !check || crc32fast::hash(body).to_le_bytes() == *checksum;
    (whole && !body.is_empty()).then_some((body, rest))
}

fn with_toy<T>(mistake: Mistake, durability: Durability, test: impl FnOnce(Subject<'_>) -> T) -> T {
    let open = |fs: &SimFs| -> Result<Box<dyn Engine>> {
        Ok(Box::new(Toy::open(fs, durability, mistake)?))
    };
    test(Subject {
        name: &format!("{mistake:?}"),
        durability,
        log_suffix: Some("/toy/log"),
        open: &open,
    })
}

fn crashes(mistake: Mistake, durability: Durability, seed: u64, threads: usize) -> Report {
    let shape = Shape { seed, phases: 2, threads, steps: 40, keys: 10, value_bytes: 300 };
    with_toy(mistake, durability, |subject| crash_everywhere(subject, shape))
}

fn failures(mistake: Mistake, durability: Durability, seed: u64) -> Report {
    let shape = Shape { seed, phases: 2, threads: 1, steps: 30, keys: 10, value_bytes: 300 };
    with_toy(mistake, durability, |subject| fail_everywhere(subject, shape))
}

#[test]
fn the_simple_engine_passes() {
    for durability in Durability::ALL {
        for seed in seeds(4) {
            crashes(Mistake::None, durability, seed, 2).assert_clean("toy, crashes");
            failures(Mistake::None, durability, seed).assert_clean("toy, failures");
        }
    }
}

#[test]
fn every_mistake_is_noticed() {
    let mistakes = [
        Mistake::AcknowledgesEarly,
        Mistake::NeverSyncs,
        Mistake::NoDirectorySync,
        Mistake::KeepsTornTail,
        Mistake::NoChecksum,
        Mistake::PassesOverDamage,
        Mistake::SplitsBatches,
        Mistake::RenamesUnsynced,
        Mistake::RemovesFirst,
        Mistake::Resurrects,
        Mistake::PanicsOnTornTail,
    ];
    for mistake in mistakes {
        // One thread, so that the same happens each time.
        let mut reports = (0..20).map(|seed| crashes(mistake, Durability::Process, seed, 1));
        let report = reports.find(|report| report.finding_count > 0).unwrap_or_default();
        println!(
            "{mistake:?}: {} findings, as {:?}",
            report.finding_count,
            report.findings.first()
        );
        assert_ne!(report.finding_count, 0, "{mistake:?} was not noticed");
    }
    let report = failures(Mistake::GoesOnAfterFailure, Durability::Power, 0);
    assert_ne!(report.finding_count, 0, "a failure that is forgotten was not noticed");
}
