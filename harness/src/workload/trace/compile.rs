//! From lines to the file of a trace, in little memory however many requests and keys there are.
//!
//! 1. Every request goes to one of [`PARTS`] temporary files, by the hash of its key; which one, is
//!    noted in the order of the requests, a byte each.
//! 2. Part by part, its keys get numbers and its requests become operations: a key's requests are
//!    all in one part, in their order, so that it is known whether the key is there.
//! 3. The operations are taken from the parts in the order noted.
//!
//! In memory are the keys of one part, hashed, and 16 bytes for each second in which something was
//! asked for. Measured: 35 MB for 20 million requests on 8.6 million keys, of which 13 MB are there
//! for any trace; so 2.5 bytes a key, and 200 MB for 70 million different keys.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;

use tempfile::{NamedTempFile, TempPath};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::facts::{Facts, Format};
use super::format::{
    Description, Due, MOST_TIMES, OP_BYTES, TracePhase, TraceWork, TraceWriter, decode, encode,
};
use super::requests::{Request, What};
use super::versions;
use crate::report::figures::grouped;
use crate::workload::op::{Kind, Op};
use crate::{Error, Result, interrupt};

const PARTS: usize = 64;

/// From the first request to the last: 31 years, as long as any time that can be asked for.
const MOST_SECONDS: u64 = 1_000_000_000;

/// The name by which all reports know the phase that fills the store.
const PHASE: &str = "load";

/// A trace that is being compiled.
pub(super) struct Compiler<'a> {
    directory: &'a Path,
    /// The size of a value where the trace tells none.
    value_bytes: u32,
    parts: Vec<Scratch>,
    order: Scratch,
    times: Vec<Due>,
    facts: Facts,
    operations: u64,
    formats: Vec<Format>,
}

/// Why a request was not taken.
#[derive(Debug)]
pub(super) enum Refusal {
    /// Its line is wrong, which says what was expected; the next one may be right.
    Line(String),
    /// So many, or so much, that no other request can be taken either.
    Trace(String),
    /// The file system.
    Failed(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A temporary file that is written once and read once; nobody else sees it.
struct Scratch(BufWriter<File>);

impl Scratch {
    fn new(directory: &Path) -> Result<Self> {
        let file = tempfile::tempfile_in(directory)
            .map_err(Error::io("make a temporary file in", directory))?;
        Ok(Self(BufWriter::with_capacity(1 << 16, file)))
    }

    fn write(&mut self, bytes: &[u8], directory: &Path) -> Result<()> {
        self.0.write_all(bytes).map_err(Error::io("write a temporary file in", directory))
    }

    fn read(self, directory: &Path) -> Result<BufReader<File>> {
        let file = self.0.into_inner().map_err(|error| error.into_error());
        let file = file.and_then(|mut file| file.rewind().map(|()| file));
        let file = file.map_err(Error::io("write a temporary file in", directory))?;
        Ok(BufReader::with_capacity(1 << 16, file))
    }
}

impl<'a> Compiler<'a> {
    pub(super) fn new(directory: &'a Path, value_bytes: u32) -> Result<Self> {
        let parts: Result<Vec<Scratch>> = (0..PARTS).map(|_| Scratch::new(directory)).collect();
        Ok(Self {
            directory,
            value_bytes,
            parts: parts?,
            order: Scratch::new(directory)?,
            times: Vec::new(),
            facts: Facts::default(),
            operations: 0,
            formats: Vec::new(),
        })
    }

    /// A line was no request.
    pub(super) fn skip_line(&mut self) {
        self.facts.skipped_lines += 1;
    }

    /// Takes a request.
    ///
    /// # Errors
    /// [`Refusal`].
    pub(super) fn add(
        &mut self,
        format: Format,
        request: &Request<'_>,
    ) -> std::result::Result<(), Refusal> {
        if self.operations == versions::MOST_OPERATIONS {
            let most = grouped(versions::MOST_OPERATIONS);
            return Err(Refusal::Trace(format!("expected at most {most} requests")));
        }
        self.note_time(request.second)?;
        if !self.formats.contains(&format) {
            self.formats.push(format);
        }
        match self.facts.requests.get_mut(request.word) {
            Some(count) => *count += 1,
            None => {
                self.facts.requests.insert(request.word.to_owned(), 1);
            }
        }
        self.facts.expiring += u64::from(request.expires);
        self.facts.most_key_bytes = self.facts.most_key_bytes.max(request.key.len() as u64);
        self.operations += 1;
        // The top bits: the table of a part hashes all of them.
        let part = (xxh3_64(request.key) >> 58).to_le_bytes()[0];
        self.order.write(&[part], self.directory)?;
        let entry = Entry {
            what: request.what,
            value_bytes: request.value_bytes.unwrap_or(self.value_bytes),
            length: request.length,
        };
        let part = &mut self.parts[usize::from(part) % PARTS];
        part.write(&entry.encode(request.key.len()), self.directory)?;
        part.write(request.key, self.directory)?;
        Ok(())
    }

    fn note_time(&mut self, second: Option<u64>) -> std::result::Result<(), Refusal> {
        let is_timed = !self.times.is_empty();
        let wrong = |said: &str| Err(Refusal::Line(said.to_owned()));
        let Some(second) = second else {
            return match is_timed {
                true => wrong("expected a request with a time, as those before it"),
                false => Ok(()),
            };
        };
        if !is_timed && self.operations > 0 {
            return wrong("expected a request without a time, as those before it");
        }
        let count = self.times.len() as u64;
        let first = self.times.first().map_or(second, |due| due.second);
        match self.times.last_mut() {
            Some(last) if last.second == second => last.operations += 1,
            Some(last) if last.second > second => {
                let last = last.second;
                return wrong(&format!(
                    "expected a timestamp from {last} on, that of a line before"
                ));
            }
            _ if count == MOST_TIMES => {
                let most = grouped(MOST_TIMES);
                return Err(Refusal::Trace(format!("expected at most {most} different seconds")));
            }
            _ if second > first.saturating_add(MOST_SECONDS) => {
                let most = grouped(MOST_SECONDS);
                return wrong(&format!(
                    "expected a timestamp at most {most} seconds after the first one, {first}"
                ));
            }
            _ => self.times.push(Due { second, operations: 1 }),
        }
        Ok(())
    }

    /// Writes the trace to a temporary file.
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::Usage`] for a trace without a request.
    pub(super) fn finish(mut self) -> Result<TempPath> {
        if self.operations == 0 {
            return Err(Error::Usage("there is no request in the trace".into()));
        }
        let directory = self.directory;
        let mut keys = KeyTable::new(directory)?;
        let mut parts = Vec::new();
        for part in std::mem::take(&mut self.parts) {
            let mut out = Scratch::new(directory)?;
            self.resolve(part.read(directory)?, &mut keys, &mut out)?;
            parts.push(out.read(directory)?);
        }
        let made = NamedTempFile::with_prefix_in("enginelab-trace-", directory)
            .map_err(Error::io("make a temporary file in", directory))?;
        let failed_to_write = ("write a temporary file in", directory);
        let mut writer = TraceWriter::new(made.as_file(), failed_to_write)?;
        let mut order = self.order.read(directory)?;
        let failed = || Error::io("read a temporary file in", directory);
        let mut bytes = [0; OP_BYTES];
        for number in 0..self.operations {
            interrupt::check()?;
            let mut part = [0];
            order.read_exact(&mut part).map_err(failed())?;
            let part = &mut parts[usize::from(part[0]) % PARTS];
            part.read_exact(&mut bytes).map_err(failed())?;
            let mut op = decode(&bytes).unwrap_or(Op::sync());
            if op.kind.puts() {
                op.version = versions::at(op.version, number);
            }
            writer.op(&op)?;
        }
        let (count, key_bytes) = (keys.count, keys.bytes);
        keys.copy_to(&mut writer, directory)?;
        self.times.iter().try_for_each(|due| writer.due(*due))?;
        let ends = self.times.first().zip(self.times.last());
        self.facts.seconds = ends.map(|(first, last)| last.second - first.second);
        self.facts.format = match self.formats.as_slice() {
            [only] => *only,
            _ => Format::Mixed,
        };
        let mean = self.facts.put_bytes.div_ceil(self.operations.max(1));
        let description = Description {
            operations: self.operations,
            keys: count,
            key_bytes,
            times: self.times.len() as u64,
            phases: vec![
                TracePhase {
                    name: PHASE.to_owned(),
                    kind: TraceWork::Operations,
                    operations: self.operations,
                    batch: 1,
                    step_bytes: mean + key_bytes.div_ceil(count.max(1)),
                    optional: false,
                },
                TracePhase::without_operations("quiesce", TraceWork::Quiesce),
                TracePhase::without_operations("compact", TraceWork::Compact),
            ],
            facts: self.facts,
        };
        writer.finish(&description)?;
        Ok(made.into_temp_path())
    }

    /// Makes operations of the requests of a part.
    fn resolve(
        &mut self,
        mut part: BufReader<File>,
        keys: &mut KeyTable,
        out: &mut Scratch,
    ) -> Result<()> {
        let directory = self.directory;
        let failed = || Error::io("read a temporary file in", directory);
        let mut known: HashMap<u128, Known> = HashMap::new();
        let (mut head, mut key) = ([0; ENTRY_BYTES], Vec::new());
        while !std::io::BufRead::fill_buf(&mut part).map_err(failed())?.is_empty() {
            interrupt::check()?;
            part.read_exact(&mut head).map_err(failed())?;
            let (entry, key_bytes) = Entry::decode(&head);
            key.resize(key_bytes, 0);
            part.read_exact(&mut key).map_err(failed())?;
            let known = match known.entry(xxh3_128(&key)) {
                std::collections::hash_map::Entry::Occupied(found) => found.into_mut(),
                std::collections::hash_map::Entry::Vacant(vacant) => {
                    let record = keys.add(&key, directory)?;
                    self.facts.data_bytes += key.len() as u64;
                    vacant.insert(Known { record, bytes: 0, most: 0, is_there: false })
                }
            };
            let op = known.take(&entry, &mut self.facts);
            out.write(&encode(&op), directory)?;
        }
        Ok(())
    }
}

impl TracePhase {
    pub(super) fn without_operations(name: &str, kind: TraceWork) -> Self {
        let name = name.to_owned();
        Self { name, kind, operations: 0, batch: 1, step_bytes: 1, optional: false }
    }
}

/// A request in the file of its part, before its key: what (1), length of the key (2), value (4),
/// length of a scan (4).
struct Entry {
    what: What,
    value_bytes: u32,
    length: u32,
}

const ENTRY_BYTES: usize = 11;

impl Entry {
    fn encode(&self, key_bytes: usize) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[0] = self.what as u8;
        // Keys were found to be no longer.
        bytes[1..3].copy_from_slice(&u16::try_from(key_bytes).unwrap_or(u16::MAX).to_le_bytes());
        bytes[3..7].copy_from_slice(&self.value_bytes.to_le_bytes());
        bytes[7..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    /// The request, and the length of its key.
    fn decode(bytes: &[u8; ENTRY_BYTES]) -> (Self, usize) {
        let what = What::ALL.get(usize::from(bytes[0])).copied().unwrap_or(What::Get);
        let value_bytes = u32::from_le_bytes([bytes[3], bytes[4], bytes[5], bytes[6]]);
        let length = u32::from_le_bytes([bytes[7], bytes[8], bytes[9], bytes[10]]);
        (Self { what, value_bytes, length }, u16::from_le_bytes([bytes[1], bytes[2]]).into())
    }
}

/// A key, at some moment of the trace.
struct Known {
    record: u64,
    /// The size of its value, now and at most.
    bytes: u32,
    most: u32,
    is_there: bool,
}

impl Known {
    /// What a request does: see `requests.rs`. Versions have the size alone.
    fn take(&mut self, entry: &Entry, facts: &mut Facts) -> Op {
        let was_there = self.is_there;
        let kind = match (entry.what, was_there) {
            (What::Get, _) | (What::Add, true) | (What::Change, false) => Kind::Read,
            (What::Set, _) => Kind::Update,
            (What::Add | What::UpdateField, false) | (What::Insert, _) => Kind::Insert,
            (What::Change, true) => Kind::ReadModifyWrite,
            (What::UpdateField, true) => Kind::UpdateField,
            (What::Delete, _) => Kind::Delete,
            (What::Scan, _) => Kind::Scan,
        };
        if matches!(kind, Kind::Read | Kind::ReadModifyWrite | Kind::UpdateField) {
            *(if was_there { &mut facts.hits } else { &mut facts.misses }) += 1;
        }
        match kind {
            Kind::Read => return Op::read(self.record),
            Kind::Scan => return Op::scan(kind, self.record, entry.length.into()),
            Kind::Delete => {
                self.is_there = false;
                return Op::delete(self.record);
            }
            // One field of a value as large as before.
            Kind::UpdateField => {}
            _ => self.bytes = entry.value_bytes,
        }
        self.is_there = true;
        facts.put_bytes += u64::from(self.bytes);
        facts.data_bytes += u64::from(self.bytes.saturating_sub(self.most));
        self.most = self.most.max(self.bytes);
        Op::put(kind, self.record, versions::of_size(self.bytes))
    }
}

/// The keys by number.
struct KeyTable {
    ends: Scratch,
    text: Scratch,
    count: u64,
    bytes: u64,
}

impl KeyTable {
    fn new(directory: &Path) -> Result<Self> {
        let (ends, text) = (Scratch::new(directory)?, Scratch::new(directory)?);
        Ok(Self { ends, text, count: 0, bytes: 0 })
    }

    /// The number of a new key.
    fn add(&mut self, key: &[u8], directory: &Path) -> Result<u64> {
        self.text.write(key, directory)?;
        self.bytes += key.len() as u64;
        self.ends.write(&self.bytes.to_le_bytes(), directory)?;
        self.count += 1;
        Ok(self.count - 1)
    }

    fn copy_to(self, writer: &mut TraceWriter<'_>, directory: &Path) -> Result<()> {
        let mut buffer = vec![0; 1 << 16];
        for scratch in [self.ends, self.text] {
            let mut reader = scratch.read(directory)?;
            loop {
                interrupt::check()?;
                let read = reader.read(&mut buffer);
                let read = read.map_err(Error::io("read a temporary file in", directory))?;
                if read == 0 {
                    break;
                }
                writer.bytes(&buffer[..read])?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, from `requests.rs`.
    #[test]
    fn what_a_request_does_depends_on_what_is_there() {
        let mut facts = Facts::default();
        let mut known = Known { record: 7, bytes: 0, most: 0, is_there: false };
        let mut take =
            |what, value_bytes| known.take(&Entry { what, value_bytes, length: 5 }, &mut facts);
        let put = |kind, bytes| Op::put(kind, 7, versions::of_size(bytes));
        for (what, bytes, expected) in [
            (What::Get, 9, Op::read(7)),
            (What::Change, 9, Op::read(7)),
            (What::Add, 100, put(Kind::Insert, 100)),
            (What::Add, 50, Op::read(7)),
            (What::Get, 9, Op::read(7)),
            (What::Change, 120, put(Kind::ReadModifyWrite, 120)),
            (What::UpdateField, 9, put(Kind::UpdateField, 120)),
            (What::Set, 10, put(Kind::Update, 10)),
            (What::Scan, 0, Op::scan(Kind::Scan, 7, 5)),
            (What::Delete, 0, Op::delete(7)),
            (What::Delete, 0, Op::delete(7)),
            (What::UpdateField, 30, put(Kind::Insert, 30)),
            (What::Insert, 40, put(Kind::Insert, 40)),
        ] {
            assert_eq!(take(what, bytes), expected, "{what:?}");
        }
        assert_eq!((facts.hits, facts.misses), (4, 2));
        assert_eq!(facts.put_bytes, 100 + 120 + 120 + 10 + 30 + 40);
        assert_eq!(facts.data_bytes, 120, "the largest value there was");
    }

    /// The limit is told where it is passed, and not by the reader of the file that comes of it.
    #[test]
    fn there_are_so_many_different_seconds_and_no_more() {
        let directory = tempfile::tempdir().unwrap();
        let mut compiler = Compiler::new(directory.path(), 1).unwrap();
        for second in 0..MOST_TIMES {
            compiler.note_time(Some(second * 2)).unwrap();
            compiler.operations += 1;
        }
        compiler.note_time(Some(MOST_TIMES * 2 - 2)).unwrap();
        for second in [MOST_TIMES * 2 - 1, u64::MAX] {
            let Err(Refusal::Trace(said)) = compiler.note_time(Some(second)) else {
                panic!("{second} is taken");
            };
            assert_eq!(said, "expected at most 2,097,152 different seconds");
        }
    }
}
