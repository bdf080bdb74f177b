//! The data files as readers see them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use parking_lot::RwLock;

use super::clock::Timestamp;
use super::keydir::Location;
use super::names::FileId;
use super::record::{HEADER_BYTES, Header, Record};
use crate::fs::{Filler, ReadFile};
use crate::{Error, Result};

/// A data file, open for reading.
#[derive(Debug)]
pub(super) struct DataFile {
    pub(super) id: FileId,
    pub(super) path: PathBuf,
    pub(super) reader: Arc<dyn ReadFile>,
    pub(super) usage: Arc<Usage>,
    /// What the active file holds that the operating system does not have yet.
    pub(super) tail: Option<Arc<Tail>>,
}

impl DataFile {
    /// The same file, read through another handle.
    pub(super) fn with_reader(&self, reader: Arc<dyn ReadFile>, tail: Option<Arc<Tail>>) -> Self {
        Self { id: self.id, path: self.path.clone(), reader, usage: self.usage.clone(), tail }
    }

    /// Reads and checks the record of `key` at `location`.
    ///
    /// # Errors
    /// [`Error::Corruption`] if the record there is damaged or another key's.
    pub(super) fn read<'a>(
        &'a self,
        location: Location,
        key: &[u8],
        scratch: &'a mut Vec<u8>,
    ) -> Result<Record<'a>> {
        let record = self.read_any(location, scratch)?;
        if record.key == key { Ok(record) } else { Err(self.damage(location.offset, OTHER_KEY)) }
    }

    /// Reads and checks the record at `location`, whatever its key.
    pub(super) fn read_any<'a>(
        &'a self,
        location: Location,
        scratch: &'a mut Vec<u8>,
    ) -> Result<Record<'a>> {
        let size = usize::try_from(location.size).unwrap_or(usize::MAX);
        let buffered =
            self.tail.as_ref().is_some_and(|tail| tail.read(location.offset, size, scratch));
        let bytes = if buffered {
            scratch.as_slice()
        } else {
            self.reader.read_at(location.offset, size, scratch)?
        };
        Record::decode(bytes).map_err(|problem| self.damage(location.offset, problem))
    }

    /// The records from the first to the last.
    pub(super) fn records(&self, length: u64) -> Records<'_> {
        self.records_from(0, length)
    }

    /// The records from the one at `offset`, not behind `length`, to the last.
    pub(super) fn records_from(&self, offset: u64, length: u64) -> Records<'_> {
        Records { file: self, offset, length, scratch: Vec::new() }
    }

    pub(super) fn damage(&self, offset: u64, problem: &str) -> Error {
        Error::corruption(&self.path, offset, problem)
    }
}

const OTHER_KEY: &str = "the record of another key lies here";

/// What a data file holds. Counters change together with the keydir, under the writer's lock or by
/// a merge for the records it moves.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// Bytes of whole records, or of damage between them.
    pub(super) length: AtomicU64,
    pub(super) live_bytes: AtomicU64,
    pub(super) live_records: AtomicU64,
    /// Records that were overwritten or deleted.
    pub(super) dead_records: AtomicU64,
    pub(super) tombstone_bytes: AtomicU64,
    pub(super) tombstone_records: AtomicU64,
    /// Bytes that are no record.
    pub(super) damaged_bytes: AtomicU64,
    /// Damage was found: no hint file may vouch for it, and no merge touches it.
    pub(super) damaged: AtomicBool,
    /// When the oldest and the newest record were written. Tombstones do not count: they do not
    /// expire, and a file in which an old one stays is not to be merged for it again and again.
    pub(super) ages: Ages,
    /// The earliest time at which something in the file may have died; 0 as long as nothing has.
    dead_since: AtomicU32,
}

/// The timestamps that a file reaches from and to. Of the file that is written to they are the
/// times at which it was opened and sealed: good enough to estimate by, and of no cost to a put.
#[derive(Debug)]
pub(super) struct Ages {
    oldest: AtomicU32,
    newest: AtomicU32,
}

impl Default for Ages {
    fn default() -> Self {
        Self { oldest: AtomicU32::new(Timestamp::MAX), newest: AtomicU32::new(0) }
    }
}

impl Ages {
    /// Reaches to `timestamp` too.
    pub(super) fn include(&self, timestamp: Timestamp) {
        self.oldest.fetch_min(timestamp, Ordering::Relaxed);
        self.newest.fetch_max(timestamp, Ordering::Relaxed);
    }

    /// The oldest and the newest timestamp; `None` of a file without a value.
    pub(super) fn range(&self) -> Option<(Timestamp, Timestamp)> {
        let (oldest, newest) =
            (self.oldest.load(Ordering::Relaxed), self.newest.load(Ordering::Relaxed));
        (oldest <= newest).then_some((oldest, newest))
    }
}

impl Usage {
    pub(super) fn length(&self) -> u64 {
        self.length.load(Ordering::Acquire)
    }

    pub(super) fn live_bytes(&self) -> u64 {
        self.live_bytes.load(Ordering::Acquire)
    }

    pub(super) fn tombstone_bytes(&self) -> u64 {
        self.tombstone_bytes.load(Ordering::Acquire)
    }

    /// Everything that is not live: tombstones and damage too.
    pub(super) fn dead_bytes(&self) -> u64 {
        self.length().saturating_sub(self.live_bytes())
    }

    /// Bytes of records that were overwritten or deleted, damage counted as such.
    pub(super) fn shadowed_bytes(&self) -> u64 {
        self.dead_bytes().saturating_sub(self.tombstone_bytes())
    }

    pub(super) fn add_live(&self, size: u32) {
        self.live_bytes.fetch_add(size.into(), Ordering::AcqRel);
        self.live_records.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn add_all_live(&self, bytes: u64, records: u64) {
        self.live_bytes.fetch_add(bytes, Ordering::AcqRel);
        self.live_records.fetch_add(records, Ordering::AcqRel);
    }

    pub(super) fn remove_live(&self, size: u32) {
        self.live_bytes.fetch_sub(size.into(), Ordering::AcqRel);
        self.live_records.fetch_sub(1, Ordering::AcqRel);
        self.dead_records.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn add_tombstone(&self, size: u32) {
        self.tombstone_bytes.fetch_add(size.into(), Ordering::AcqRel);
        self.tombstone_records.fetch_add(1, Ordering::AcqRel);
    }

    /// Something in the file died not before `time`; what died earlier is remembered.
    pub(super) fn note_death(&self, time: impl FnOnce() -> Timestamp) {
        if self.dead_since.load(Ordering::Relaxed) == 0 {
            self.dead_since.store(time().max(1), Ordering::Relaxed);
        }
    }

    /// The earliest time at which something in the file may have died.
    pub(super) fn dead_since(&self) -> Option<Timestamp> {
        Some(self.dead_since.load(Ordering::Relaxed)).filter(|time| *time != 0)
    }

    pub(super) fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Acquire)
    }
}

/// The end of the active file at level `buffered`, in memory. Its lock is never held for writing
/// across I/O.
#[derive(Debug, Default)]
pub(super) struct Tail {
    pub(super) buffer: RwLock<TailBuffer>,
}

#[derive(Debug, Default)]
pub(super) struct TailBuffer {
    /// Where in the file the bytes belong.
    pub(super) start: u64,
    pub(super) bytes: Vec<u8>,
}

impl Tail {
    /// Copies a record out, if it still lies here.
    fn read(&self, offset: u64, size: usize, scratch: &mut Vec<u8>) -> bool {
        let buffer = self.buffer.read();
        let Some(start) = offset.checked_sub(buffer.start) else { return false };
        let found = usize::try_from(start)
            .ok()
            .and_then(|start| buffer.bytes.get(start..start.checked_add(size)?));
        let Some(bytes) = found else { return false };
        scratch.clear();
        scratch.extend_from_slice(bytes);
        true
    }
}

/// Reads a data file from front to back.
#[derive(Debug)]
pub(super) struct Records<'a> {
    file: &'a DataFile,
    offset: u64,
    length: u64,
    scratch: Vec<u8>,
}

/// What comes next in a data file.
#[derive(Debug)]
pub(super) enum Next<'a> {
    /// A record whose checksum is right.
    Record { offset: u64, header: Header, record: Record<'a> },
    /// A record whose checksum is wrong, passed over by the sizes in its header.
    Damage { offset: u64, problem: &'static str },
    /// Something that is not a whole record, with nothing readable behind it.
    Torn { offset: u64, problem: &'static str },
    /// The end of the file.
    End,
}

impl Records<'_> {
    /// The next record.
    ///
    /// After damage reading goes on where the header says that the next record starts, never at
    /// something that looks like a record further on: a value may hold such bytes. Behind what
    /// looks like power loss it does not go on.
    pub(super) fn next(&mut self) -> Result<Next<'_>> {
        let (offset, left) = (self.offset, self.length - self.offset);
        if left == 0 {
            return Ok(Next::End);
        }
        if self.only_filler_is_left()? {
            return Ok(Next::End);
        }
        if left < HEADER_BYTES as u64 {
            return Ok(Next::Torn { offset, problem: "a header that is cut short" });
        }
        let header = self.file.reader.read_at(offset, HEADER_BYTES, &mut self.scratch)?;
        let Some(header) = Header::parse(header) else { return Ok(Next::End) };
        let size = header.record_bytes();
        if size > left {
            return Ok(Next::Torn { offset, problem: "a record that reaches past the end" });
        }
        let blank = Header { crc: 0, timestamp: 0, key_size: 0, value_size: 0 };
        if header == blank {
            return Ok(Next::Torn { offset, problem: "zeros in place of a record" });
        }
        self.offset += size;
        let Some(size) = u32::try_from(size).ok().and_then(|size| usize::try_from(size).ok())
        else {
            return Ok(Next::Damage { offset, problem: "a record of 4 GiB or more" });
        };
        let bytes = self.file.reader.read_at(offset, size, &mut self.scratch)?;
        Ok(match Record::decode(bytes) {
            Ok(record) => Next::Record { offset, header, record },
            Err(_) if has_lost_page(offset, bytes) => Next::Torn { offset, problem: LOST_PAGE },
            Err(problem) => Next::Damage { offset, problem },
        })
    }

    /// Whether what follows was prepared for appending, and its writer died.
    fn only_filler_is_left(&mut self) -> Result<bool> {
        let left = self.length - self.offset;
        let Some(length) = usize::try_from(left).ok().filter(|left| *left < Filler::MAX_BYTES)
        else {
            return Ok(false);
        };
        let first = self.file.reader.read_at(self.offset, 1, &mut self.scratch)?;
        if !Filler::Ones.is_all_of(first) {
            return Ok(false);
        }
        Ok(Filler::Ones.is_all_of(self.file.reader.read_at(
            self.offset,
            length,
            &mut self.scratch,
        )?))
    }
}

const LOST_PAGE: &str = "a page within a record that was never written";

/// What file systems write at once.
const PAGE_BYTES: usize = 4 << 10;

/// Whether a page that the record `bytes`, which lies at `offset`, reaches into holds nothing of it
/// but zeros or filler: one in its middle, or the one that it starts in. That is how power loss
/// leaves a page that did not reach the disk; a disk that decays loses bits. Behind a lost page
/// nothing was synced either, and to keep it would be to find a later write without an earlier one.
///
/// The page that the record ends in needs no such look: the header after it is lost too.
fn has_lost_page(offset: u64, bytes: &[u8]) -> bool {
    let is_lost = |part: &[u8]| part.iter().all(|byte| *byte == 0) || Filler::Ones.is_all_of(part);
    let before_page = offset.next_multiple_of(PAGE_BYTES as u64) - offset;
    let parts = usize::try_from(before_page).ok().and_then(|at| bytes.split_at_checked(at));
    parts.is_some_and(|(first, pages)| {
        (!first.is_empty() && is_lost(first)) || pages.chunks_exact(PAGE_BYTES).any(is_lost)
    })
}

/// The files that reads go to, by ascending id. A set never changes: a reader that holds one finds
/// its files as they were, whatever is merged meanwhile.
#[derive(Debug, Clone, Default)]
pub(super) struct FileSet {
    files: Vec<Arc<DataFile>>,
}

impl FileSet {
    pub(super) fn get(&self, id: FileId) -> Option<&Arc<DataFile>> {
        self.position(id).ok().map(|at| &self.files[at])
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<DataFile>> {
        self.files.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// Adds a file, in place of the one with its id.
    pub(super) fn insert(&mut self, file: Arc<DataFile>) {
        match self.position(file.id) {
            Ok(at) => self.files[at] = file,
            Err(at) => self.files.insert(at, file),
        }
    }

    pub(super) fn remove(&mut self, id: FileId) {
        if let Ok(at) = self.position(id) {
            self.files.remove(at);
        }
    }

    fn position(&self, id: FileId) -> std::result::Result<usize, usize> {
        self.files.binary_search_by_key(&id, |file| file.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_page_of_nothing_but_zeros_or_filler_is_a_lost_page() {
        for lost in [0, 0xff] {
            only_a_whole_page_is_a_lost_page(lost);
        }
    }

    fn only_a_whole_page_is_a_lost_page(lost: u8) {
        let mut bytes = vec![1; 3 * PAGE_BYTES];
        assert!(!has_lost_page(100, &bytes));
        // From the last byte of one page of the file to the last but one of the next.
        let start = PAGE_BYTES - 100;
        bytes[start - 1..start + PAGE_BYTES - 1].fill(lost);
        assert!(!has_lost_page(100, &bytes));
        bytes[start + PAGE_BYTES - 1] = lost;
        assert!(has_lost_page(100, &bytes));
        assert!(!has_lost_page(101, &bytes[1..start + PAGE_BYTES - 1]));
        assert!(!has_lost_page(u64::from(u32::MAX), &[]));
        // A header that starts on the last byte of a page.
        let mut bytes = vec![1; 41];
        bytes[0] = lost;
        assert!(has_lost_page(PAGE_BYTES as u64 - 1, &bytes));
        assert!(!has_lost_page(PAGE_BYTES as u64 - 2, &bytes));
        assert!(!has_lost_page(PAGE_BYTES as u64 - 1, &bytes[1..]));
    }
}
