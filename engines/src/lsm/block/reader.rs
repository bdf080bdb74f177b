//! Reading blocks; see the parent for the layout.
//!
//! Blocks come from disk: every length is checked, and what does not fit is an error that names
//! the file and the block.

use std::cmp::Ordering;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::FIXED32_BYTES;
use crate::lsm::coding::{Cursor, Malformed};
use crate::lsm::key::{TAG_BYTES, compare};
use crate::{Error, Result};

/// The three lengths of an entry take no more.
const ENTRY_HEAD_BYTES: usize = 15;

/// Where a block lies, for errors.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) path: Arc<PathBuf>,
    /// Where the block starts in the file, in bytes.
    pub(crate) offset: u64,
}

impl Origin {
    fn corrupt(&self, malformed: &Malformed) -> Error {
        // The offset is that of the block: positions inside count decompressed bytes.
        let problem = format!("block: {} (at {} in it)", malformed.problem, malformed.at);
        Error::corruption(self.path.as_path(), self.offset, problem)
    }
}

/// What the keys of a block are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyFormat {
    /// Internal keys: data and index blocks.
    Internal,
    /// Any bytes: the metaindex block.
    Plain,
}

/// A decompressed block that owns its bytes.
#[derive(Debug)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    origin: Origin,
    keys: KeyFormat,
}

impl Block {
    /// # Errors
    /// [`Error::Corruption`] if the restart points do not fit.
    pub(crate) fn new(bytes: Vec<u8>, origin: Origin, keys: KeyFormat) -> Result<Self> {
        BlockView::new(&bytes, &origin, keys)?;
        Ok(Self { bytes, origin, keys })
    }

    /// The block, lent.
    pub(crate) fn view(&self) -> BlockView<'_> {
        BlockView::split(&self.bytes, &self.origin, self.keys).unwrap_or(BlockView {
            entries: &[],
            restarts: &[],
            origin: &self.origin,
            keys: self.keys,
        })
    }

    /// The memory, for another block.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Where the block lies.
    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The bytes of memory that the block takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity()
    }
}

/// A block over borrowed bytes: what searches and cursors work on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockView<'a> {
    entries: &'a [u8],
    restarts: &'a [[u8; FIXED32_BYTES]],
    origin: &'a Origin,
    keys: KeyFormat,
}

impl<'a> BlockView<'a> {
    /// # Errors
    /// [`Error::Corruption`] if the restart points do not fit.
    pub(crate) fn new(bytes: &'a [u8], origin: &'a Origin, keys: KeyFormat) -> Result<Self> {
        Self::split(bytes, origin, keys).ok_or_else(|| {
            let problem = format!("the restart points do not fit its {} bytes", bytes.len());
            origin.corrupt(&Malformed::new(bytes.len().saturating_sub(FIXED32_BYTES), problem))
        })
    }

    fn split(bytes: &'a [u8], origin: &'a Origin, keys: KeyFormat) -> Option<Self> {
        let (rest, count) = bytes.split_last_chunk::<FIXED32_BYTES>()?;
        let count = usize::try_from(u32::from_le_bytes(*count)).ok()?;
        let at = rest.len().checked_sub(count.checked_mul(FIXED32_BYTES)?)?;
        let (entries, restarts) = rest.split_at_checked(at)?;
        // Entries without a restart point to reach them cannot be.
        if count == 0 && !entries.is_empty() {
            return None;
        }
        Some(Self { entries, restarts: restarts.as_chunks().0, origin, keys })
    }

    fn restart(&self, index: usize) -> Result<usize> {
        self.restarts
            .get(index)
            .and_then(|bytes| usize::try_from(u32::from_le_bytes(*bytes)).ok())
            .filter(|offset| *offset <= self.entries.len())
            .ok_or_else(|| {
                let at = self.entries.len() + index * FIXED32_BYTES;
                self.origin.corrupt(&Malformed::new(at, "a restart point outside the entries"))
            })
    }

    /// The key at a restart point, which shares nothing.
    fn restart_key(&self, index: usize) -> Result<&'a [u8]> {
        let entry = self.entry(self.restart(index)?)?;
        self.check_restart(&entry)?;
        Ok(&self.entries[entry.key_rest])
    }

    fn check_restart(&self, entry: &Entry) -> Result<()> {
        if entry.shared == 0 {
            return self.check_key(&self.entries[entry.key_rest.clone()], entry);
        }
        Err(self.origin.corrupt(&Malformed::new(entry.at, "a restart point shares a prefix")))
    }

    fn check_key(&self, key: &[u8], entry: &Entry) -> Result<()> {
        if self.keys == KeyFormat::Internal && key.len() < TAG_BYTES {
            let problem = format!("a key of {} bytes is no internal key", key.len());
            return Err(self.origin.corrupt(&Malformed::new(entry.at, problem)));
        }
        Ok(())
    }

    fn entry(&self, at: usize) -> Result<Entry> {
        Entry::decode(self.entries, at).map_err(|malformed| self.origin.corrupt(&malformed))
    }
}

/// An entry's parts, as positions in the entries; all of them lie inside.
#[derive(Debug)]
struct Entry {
    at: usize,
    shared: usize,
    key_rest: Range<usize>,
    value: Range<usize>,
}

impl Entry {
    fn decode(entries: &[u8], at: usize) -> std::result::Result<Self, Malformed> {
        let mut cursor = Cursor::new(entries.get(at..).unwrap_or_default());
        let mut length = |what| {
            let length = cursor.varint32(what)?;
            usize::try_from(length).map_err(|_| Malformed::new(at, what))
        };
        let parsed = (|| {
            let shared = length("the shared length of an entry")?;
            let key_length = length("the key length of an entry")?;
            let value_length = length("the value length of an entry")?;
            Ok((shared, key_length, value_length))
        })();
        let (shared, key_length, value_length) =
            parsed.map_err(|error: Malformed| Malformed::new(at + error.at, error.problem))?;
        let key_start = at + cursor.position();
        let ends = key_start.checked_add(key_length).and_then(|value_start| {
            let end = value_start.checked_add(value_length)?;
            (end <= entries.len()).then_some((value_start, end))
        });
        let (value_start, end) = ends.ok_or_else(|| {
            let problem = format!(
                "an entry of {key_length} + {value_length} bytes goes past the entries' end"
            );
            Malformed::new(at, problem)
        })?;
        Ok(Self { at, shared, key_rest: key_start..value_start, value: value_start..end })
    }
}

/// A place in a block. It holds no block: every move is told which, and must be told the same
/// until the next seek.
#[derive(Debug, Default)]
pub(crate) struct EntryCursor {
    key: Vec<u8>,
    value: Range<usize>,
    /// Where the entry starts.
    at: usize,
    valid: bool,
    behind: Behind,
}

/// The entries between a restart point and the place of a cursor that walks backwards: they were
/// passed on the way there, and are the next ones it comes to.
#[derive(Debug, Default)]
struct Behind {
    entries: Vec<Passed>,
    /// Their keys, one after the other.
    keys: Vec<u8>,
}

#[derive(Debug)]
struct Passed {
    at: usize,
    value: Range<usize>,
    key_end: usize,
}

impl Behind {
    fn clear(&mut self) {
        self.entries.clear();
        self.keys.clear();
    }

    fn push(&mut self, at: usize, key: &[u8], value: Range<usize>) {
        self.keys.extend_from_slice(key);
        self.entries.push(Passed { at, value, key_end: self.keys.len() });
    }

    /// The last one; its key replaces `key`.
    fn pop(&mut self, key: &mut Vec<u8>) -> Option<Passed> {
        let passed = self.entries.pop()?;
        let start = self.entries.last().map_or(0, |before| before.key_end);
        key.clear();
        key.extend_from_slice(&self.keys[start..passed.key_end]);
        self.keys.truncate(start);
        Some(passed)
    }
}

impl EntryCursor {
    pub(crate) fn valid(&self) -> bool {
        self.valid
    }

    /// The key it stands on.
    pub(crate) fn key(&self) -> &[u8] {
        debug_assert!(self.valid);
        &self.key
    }

    /// The value it stands on.
    pub(crate) fn value<'a>(&self, block: BlockView<'a>) -> &'a [u8] {
        debug_assert!(self.valid);
        block.entries.get(self.value.clone()).unwrap_or_default()
    }

    /// Stands nowhere from now on.
    pub(crate) fn clear(&mut self) {
        self.valid = false;
        self.behind.clear();
    }

    pub(crate) fn seek_to_first(&mut self, block: BlockView<'_>) -> Result<()> {
        self.valid = false;
        if block.restarts.is_empty() {
            return Ok(());
        }
        self.go_to_restart(block, 0)
    }

    pub(crate) fn seek_to_last(&mut self, block: BlockView<'_>) -> Result<()> {
        self.valid = false;
        self.go_to_last_before(block, block.restarts.len(), block.entries.len())
    }

    /// To the first entry at or after `target`. The keys are internal keys.
    pub(crate) fn seek(&mut self, block: BlockView<'_>, target: &[u8]) -> Result<()> {
        self.valid = false;
        let Some(mut high) = block.restarts.len().checked_sub(1) else { return Ok(()) };
        let mut low = 0;
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if compare(block.restart_key(middle)?, target) == Ordering::Less {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        self.go_to_restart(block, low)?;
        while self.valid && compare(&self.key, target) == Ordering::Less {
            self.next(block)?;
        }
        Ok(())
    }

    /// As [`seek`](Self::seek), on a block that is still being made at the start of `content`:
    /// `fill` is told how much of it is needed. Returns where the value is; `None` if the end of
    /// the entries must be known, which is only where the whole block is.
    pub(crate) fn seek_early(
        &mut self,
        content: &mut [u8],
        length: usize,
        origin: &Origin,
        target: &[u8],
        mut fill: impl FnMut(&mut [u8], usize) -> Result<()>,
    ) -> Result<Option<Range<usize>>> {
        self.clear();
        self.key.clear();
        // Each restart point takes four bytes and leads to an entry of no less than eleven: three
        // lengths of a byte and a tag. So much of the block is entries surely.
        let sure = length.saturating_sub(FIXED32_BYTES) / 15 * 11;
        let mut at = 0;
        while at + ENTRY_HEAD_BYTES <= sure {
            fill(content, at + ENTRY_HEAD_BYTES)?;
            let corrupt = |malformed: &Malformed| origin.corrupt(malformed);
            let entry =
                Entry::decode(&content[..length], at).map_err(|malformed| corrupt(&malformed))?;
            fill(content, entry.key_rest.end)?;
            if entry.shared > self.key.len() {
                let problem = "an entry shares more bytes than the key before it has";
                return Err(corrupt(&Malformed::new(at, problem)));
            }
            self.key.truncate(entry.shared);
            self.key.extend_from_slice(&content[entry.key_rest]);
            if self.key.len() < TAG_BYTES {
                return Err(corrupt(&Malformed::new(at, "a key that is no internal key")));
            }
            if compare(&self.key, target).is_ge() {
                fill(content, entry.value.end)?;
                return Ok(Some(entry.value));
            }
            at = entry.value.end;
        }
        Ok(None)
    }

    /// The key that [`seek_early`](Self::seek_early) found.
    pub(crate) fn early_key(&self) -> &[u8] {
        &self.key
    }

    pub(crate) fn next(&mut self, block: BlockView<'_>) -> Result<()> {
        debug_assert!(self.valid);
        self.behind.clear();
        self.load(block, self.value.end)
    }

    pub(crate) fn prev(&mut self, block: BlockView<'_>) -> Result<()> {
        debug_assert!(self.valid);
        if let Some(passed) = self.behind.pop(&mut self.key) {
            (self.at, self.value) = (passed.at, passed.value);
            return Ok(());
        }
        let here = self.at;
        self.valid = false;
        // The number of restart points before this entry.
        let (mut low, mut high) = (0, block.restarts.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if block.restart(middle)? < here {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.go_to_last_before(block, low, here)
    }

    /// To the entry that ends at `end`, walking from the last of the first `restart_count`
    /// restart points.
    fn go_to_last_before(
        &mut self,
        block: BlockView<'_>,
        restart_count: usize,
        end: usize,
    ) -> Result<()> {
        let Some(restart) = restart_count.checked_sub(1) else { return Ok(()) };
        self.go_to_restart(block, restart)?;
        while self.valid && self.value.end < end {
            self.behind.push(self.at, &self.key, self.value.clone());
            self.load(block, self.value.end)?;
        }
        if self.valid && self.value.end != end {
            self.valid = false;
            let problem = format!("no entry ends at {end}");
            return Err(block.origin.corrupt(&Malformed::new(self.at, problem)));
        }
        Ok(())
    }

    fn go_to_restart(&mut self, block: BlockView<'_>, index: usize) -> Result<()> {
        self.valid = false;
        self.behind.clear();
        self.key.clear();
        let offset = block.restart(index)?;
        if offset < block.entries.len() {
            block.check_restart(&block.entry(offset)?)?;
        }
        self.load(block, offset)
    }

    /// To the entry at `at`; the key before it is in `self.key`.
    fn load(&mut self, block: BlockView<'_>, at: usize) -> Result<()> {
        self.valid = false;
        if at >= block.entries.len() {
            return Ok(());
        }
        let entry = block.entry(at)?;
        if entry.shared > self.key.len() {
            let problem =
                format!("an entry shares {} bytes with a key of {}", entry.shared, self.key.len());
            return Err(block.origin.corrupt(&Malformed::new(at, problem)));
        }
        self.key.truncate(entry.shared);
        self.key.extend_from_slice(&block.entries[entry.key_rest.clone()]);
        block.check_key(&self.key, &entry)?;
        (self.at, self.value) = (at, entry.value);
        self.valid = true;
        Ok(())
    }
}
