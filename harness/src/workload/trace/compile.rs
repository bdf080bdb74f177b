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
use std::io::{BufReader, Read};
use std::path::Path;

use tempfile::{NamedTempFile, TempPath};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::effect::{ENTRY_BYTES, Entry, Known};
use super::facts::{Facts, Format};
use super::format::{
    Description, Due, MOST_TIMES, OP_BYTES, TracePhase, TraceWork, TraceWriter, decode, encode,
};
use super::requests::Request;
use super::scratch::{KeyTable, Scratch};
use super::versions;
use crate::report::figures::grouped;
use crate::workload::op::Op;
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
                    vacant.insert(Known::new(record))
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

#[cfg(test)]
mod tests {
    use super::*;

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
