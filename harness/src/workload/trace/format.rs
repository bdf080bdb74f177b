//! The file of a trace: what `enginelab record` writes, and what other traces are compiled to.
//!
//! ```text
//! magic        8   ENGTRACE
//! version      4   1
//! zeros        4
//! operations  24   each: record (8), version (8), length (4), kind (1), zeros (3)
//! key ends     8   each: where the key of record 0, 1, … ends among the bytes of the keys
//! keys             the bytes of all keys, one after the other
//! times       16   each: second (8), and how many operations are due in it (8); seconds ascend
//! description      JSON: how many there are of all these, and where the trace is from
//! length       4   of the description
//! zeros        4
//! checksum     8   XXH3-64 of everything before
//! ```
//! All numbers are little-endian. A length is how far a scan goes, all ones for all records. The
//! keys and values of a recorded workload are derived from it, so that its trace has no keys.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::facts::Facts;
use crate::cli::size::MOST_BATCH;
use crate::report::figures::grouped;
use crate::workload::op::{Kind, Op};
use crate::workload::sized::MOST_KEY_BYTES;
use crate::{Error, Result, interrupt};

/// What the file begins with.
pub(super) const MAGIC: &[u8; 8] = b"ENGTRACE";
const VERSION: u32 = 1;
const HEAD_BYTES: u64 = 16;
pub(super) const OP_BYTES: usize = 24;
const END_BYTES: u64 = 8;
const TIME_BYTES: u64 = 16;
const TAIL_BYTES: u64 = 16;
const MOST_DESCRIPTION_BYTES: u32 = 1 << 20;
/// One for each second: fifty years and more, in 32 MB.
pub(super) const MOST_TIMES: u64 = 2 << 20;

/// What the file says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Description {
    pub(super) operations: u64,
    pub(super) keys: u64,
    pub(super) key_bytes: u64,
    pub(super) times: u64,
    pub(super) phases: Vec<TracePhase>,
    pub(super) facts: Facts,
}

/// A phase of the trace; its operations are those behind the operations of the phases before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TracePhase {
    pub(crate) name: String,
    pub(crate) kind: TraceWork,
    pub(crate) operations: u64,
    pub(crate) batch: u32,
    pub(crate) step_bytes: u64,
    /// Whether engines that have no such operations leave it out.
    #[serde(default)]
    pub(crate) optional: bool,
}

/// What happens in a phase. The names stand in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TraceWork {
    Operations,
    Quiesce,
    Compact,
    Sync,
    Reopen,
    /// So often.
    OpenAgain(u64),
    Anew,
    Stats,
}

/// Operations that are due in one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) second: u64,
    pub(super) operations: u64,
}

/// An operation as the file has it.
pub(super) fn encode(op: &Op) -> [u8; OP_BYTES] {
    let mut bytes = [0; OP_BYTES];
    bytes[..8].copy_from_slice(&op.record.to_le_bytes());
    bytes[8..16].copy_from_slice(&op.version.to_le_bytes());
    let length = u32::try_from(op.length).unwrap_or(u32::MAX);
    bytes[16..20].copy_from_slice(&length.to_le_bytes());
    bytes[20] = op.kind as u8;
    bytes
}

/// The operation; `None` for what is none.
pub(super) fn decode(bytes: &[u8]) -> Option<Op> {
    let number = |range: Range<usize>| Some(u64::from_le_bytes(bytes.get(range)?.try_into().ok()?));
    let length = u32::from_le_bytes(bytes.get(16..20)?.try_into().ok()?);
    let kind = *Kind::ALL.get(usize::from(*bytes.get(20)?))?;
    let is_plain = !matches!(kind, Kind::BatchWrite | Kind::BatchRead);
    is_plain.then_some(Op {
        kind,
        record: number(0..8)?,
        version: number(8..16)?,
        length: if length == u32::MAX { u64::MAX } else { length.into() },
    })
}

/// Writes a trace from its beginning to its end.
pub(crate) struct TraceWriter<'a> {
    out: BufWriter<&'a File>,
    hash: Xxh3,
    /// What failed if writing did, and the file or directory that the user knows.
    failed: (&'static str, &'a Path),
}

impl<'a> TraceWriter<'a> {
    pub(crate) fn new(file: &'a File, failed: (&'static str, &'a Path)) -> Result<Self> {
        let out = BufWriter::with_capacity(1 << 18, file);
        let mut writer = Self { out, hash: Xxh3::new(), failed };
        writer.bytes(MAGIC)?;
        writer.bytes(&VERSION.to_le_bytes())?;
        writer.bytes(&[0; 4])?;
        Ok(writer)
    }

    pub(crate) fn op(&mut self, op: &Op) -> Result<()> {
        if op.length >= u32::MAX.into() && op.length != u64::MAX {
            return Err(Error::Usage(format!(
                "a scan of {} records: a trace holds scans of up to {}, or of all records",
                grouped(op.length),
                grouped(u64::from(u32::MAX) - 1)
            )));
        }
        self.bytes(&encode(op))
    }

    /// The next bytes, whatever they are.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.hash.update(bytes);
        self.out.write_all(bytes).map_err(Error::io(self.failed.0, self.failed.1))
    }

    pub(super) fn due(&mut self, due: Due) -> Result<()> {
        self.bytes(&due.second.to_le_bytes())?;
        self.bytes(&due.operations.to_le_bytes())
    }

    /// The end of it.
    pub(crate) fn finish(mut self, description: &Description) -> Result<()> {
        let text = serde_json::to_vec(description)
            .map_err(|error| Error::Usage(format!("a description that is no JSON: {error}")))?;
        self.bytes(&text)?;
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        if length > MOST_DESCRIPTION_BYTES {
            return Err(Error::Usage("the description of the trace is over 1 MiB".into()));
        }
        self.bytes(&length.to_le_bytes())?;
        self.bytes(&[0; 4])?;
        let checksum = self.hash.digest();
        let done = self.out.write_all(&checksum.to_le_bytes()).and_then(|()| self.out.flush());
        done.map_err(Error::io(self.failed.0, self.failed.1))
    }
}

/// A trace to read from, at any place.
#[derive(Debug)]
pub(crate) struct TraceFile {
    file: File,
    path: PathBuf,
    pub(super) description: Description,
    pub(super) times: Vec<Due>,
    /// As the file says; see [`TraceFile::verify`].
    pub(super) checksum: u64,
}

impl TraceFile {
    /// Opens the file, whose parts must have the sizes that its description says.
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::Usage`] for what is no trace, or no whole one.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let mut file = File::open(path).map_err(Error::io("read", path))?;
        let wrong = |said: &str| Error::Usage(format!("{}: {said}", path.display()));
        let length = file.metadata().map_err(Error::io("read", path))?.len();
        let mut part = |from: u64, bytes: u64| {
            let mut part = vec![0; usize::try_from(bytes).unwrap_or(0)];
            file.seek(SeekFrom::Start(from)).map_err(Error::io("read", path))?;
            file.read_exact(&mut part).map_err(Error::io("read", path))?;
            Ok::<_, Error>(part)
        };
        if length < HEAD_BYTES + TAIL_BYTES {
            return Err(wrong("too short for a trace"));
        }
        let head = part(0, HEAD_BYTES)?;
        if !head.starts_with(MAGIC) {
            return Err(wrong("not a trace that enginelab recorded"));
        }
        if head[8..12] != VERSION.to_le_bytes() {
            return Err(wrong("a trace of another version of enginelab"));
        }
        let tail = part(length - TAIL_BYTES, TAIL_BYTES)?;
        let text_bytes = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
        let after = length - HEAD_BYTES - TAIL_BYTES;
        if text_bytes > MOST_DESCRIPTION_BYTES || u64::from(text_bytes) > after {
            return Err(wrong("damaged: a description longer than can be"));
        }
        let text = part(length - TAIL_BYTES - u64::from(text_bytes), text_bytes.into())?;
        let description: Description = serde_json::from_slice(&text)
            .map_err(|error| wrong(&format!("damaged description: {error}")))?;
        let expected = description.bytes().and_then(|bytes| bytes.checked_add(text_bytes.into()));
        if expected != Some(after) {
            return Err(wrong("damaged: not as long as its description says"));
        }
        description.check().map_err(|said| wrong(&format!("damaged: {said}")))?;
        let times_bytes = description.times * TIME_BYTES;
        let times = part(length - TAIL_BYTES - u64::from(text_bytes) - times_bytes, times_bytes)?;
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        let times = times
            .chunks_exact(16)
            .map(|due| Due { second: number(&due[..8]), operations: number(&due[8..]) });
        let (times, checksum) = (times.collect(), number(&tail[8..]));
        Ok(Self { file, path: path.to_owned(), description, times, checksum })
    }

    /// Reads all of it and compares the checksum.
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::Usage`] if it is another one.
    pub(crate) fn verify(&self) -> Result<()> {
        let mut file = File::open(&self.path).map_err(Error::io("read", &self.path))?;
        let length = file.metadata().map_err(Error::io("read", &self.path))?.len();
        let (mut left, mut buffer) = (length.saturating_sub(8), vec![0; 1 << 18]);
        let mut hash = Xxh3::new();
        while left > 0 {
            interrupt::check()?;
            let take = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            file.read_exact(&mut buffer[..take]).map_err(Error::io("read", &self.path))?;
            hash.update(&buffer[..take]);
            left -= take as u64;
        }
        match hash.digest() == self.checksum {
            true => Ok(()),
            false => Err(Error::Usage(format!(
                "{}: damaged: its checksum is not that of what it holds",
                self.path.display()
            ))),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the operations in order, with gaps.
    pub(super) fn operations(&self) -> OpReader<'_> {
        OpReader { trace: self, loaded: 0..0, bytes: Vec::new() }
    }

    /// Appends the key of `record`.
    pub(super) fn write_key(&self, record: u64, out: &mut Vec<u8>) -> io::Result<()> {
        let Description { operations, keys, key_bytes, .. } = self.description;
        if record >= keys {
            return Err(invalid("a record without a key"));
        }
        let ends = HEAD_BYTES + operations * OP_BYTES as u64;
        let (mut bytes, from) = ([0; 16], record.saturating_sub(1));
        let wanted = if record == 0 { &mut bytes[8..] } else { &mut bytes[..] };
        read_exact_at(&self.file, wanted, ends + from * END_BYTES)?;
        let [start, end] = [&bytes[..8], &bytes[8..]]
            .map(|bytes| bytes.try_into().map_or(u64::MAX, u64::from_le_bytes));
        let length = end.checked_sub(start).filter(|&length| length <= MOST_KEY_BYTES.into());
        let length = length.filter(|_| end <= key_bytes).and_then(|l| usize::try_from(l).ok());
        let length = length.ok_or_else(|| invalid("a key that ends before it begins"))?;
        let at = out.len();
        out.resize(at + length, 0);
        read_exact_at(&self.file, &mut out[at..], ends + keys * END_BYTES + start)
    }
}

fn invalid(said: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, said)
}

impl Description {
    /// The bytes of all parts between head and description.
    fn bytes(&self) -> Option<u64> {
        let operations = self.operations.checked_mul(OP_BYTES as u64)?;
        let ends = self.keys.checked_mul(END_BYTES)?;
        let times = self.times.checked_mul(TIME_BYTES)?;
        operations.checked_add(ends)?.checked_add(times)?.checked_add(self.key_bytes)
    }

    fn check(&self) -> std::result::Result<(), &'static str> {
        let of_phases =
            self.phases.iter().try_fold(0u64, |sum, phase| sum.checked_add(phase.operations));
        if of_phases != Some(self.operations) {
            return Err("the operations of its phases are not all operations");
        }
        if self.phases.iter().any(|phase| phase.batch == 0 || phase.batch > MOST_BATCH) {
            return Err("a batch that cannot be");
        }
        if self.times > MOST_TIMES {
            return Err("more seconds than can be");
        }
        Ok(())
    }
}

/// Reads operations; a part of them lies in memory.
pub(super) struct OpReader<'a> {
    trace: &'a TraceFile,
    loaded: Range<u64>,
    bytes: Vec<u8>,
}

/// Operations read at once: 96 KiB.
const OPS_AT_ONCE: u64 = 4_096;

impl OpReader<'_> {
    /// Operation `number` of the trace.
    pub(super) fn op(&mut self, number: u64) -> io::Result<Op> {
        if !self.loaded.contains(&number) {
            let end = self.trace.description.operations.min(number.saturating_add(OPS_AT_ONCE));
            let count = usize::try_from(end.saturating_sub(number)).unwrap_or(0);
            self.bytes.resize(count * OP_BYTES, 0);
            self.loaded = 0..0;
            let from = HEAD_BYTES + number * OP_BYTES as u64;
            read_exact_at(&self.trace.file, &mut self.bytes, from)?;
            self.loaded = number..end;
        }
        let at = usize::try_from(number - self.loaded.start).unwrap_or(usize::MAX) * OP_BYTES;
        let bytes = self.bytes.get(at..at + OP_BYTES);
        bytes.and_then(decode).ok_or_else(|| invalid("an operation that is none"))
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !buffer.is_empty() {
        match file.seek_read(buffer, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                buffer = &mut buffer[read..];
                offset += read as u64;
            }
        }
    }
    Ok(())
}
