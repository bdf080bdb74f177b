//! Reading blocks; see the parent for the layout.
//!
//! Blocks come from disk: every length is checked, and what does not fit is an error that names
//! the file and the block.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::FIXED32_BYTES;
use crate::lsm::coding::{Cursor, Malformed};
use crate::lsm::key::TAG_BYTES;
use crate::{Error, Result};

/// Where a block lies, for errors.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) path: Arc<PathBuf>,
    /// Where the block starts in the file, in bytes.
    pub(crate) offset: u64,
}

impl Origin {
    pub(super) fn corrupt(&self, malformed: &Malformed) -> Error {
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
    pub(super) entries: &'a [u8],
    pub(super) restarts: &'a [[u8; FIXED32_BYTES]],
    pub(super) origin: &'a Origin,
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

    pub(super) fn restart(&self, index: usize) -> Result<usize> {
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
    pub(super) fn restart_key(&self, index: usize) -> Result<&'a [u8]> {
        let entry = self.entry(self.restart(index)?)?;
        self.check_restart(&entry)?;
        Ok(&self.entries[entry.key_rest])
    }

    pub(super) fn check_restart(&self, entry: &Entry) -> Result<()> {
        if entry.shared == 0 {
            return self.check_key(&self.entries[entry.key_rest.clone()], entry);
        }
        Err(self.origin.corrupt(&Malformed::new(entry.at, "a restart point shares a prefix")))
    }

    pub(super) fn check_key(&self, key: &[u8], entry: &Entry) -> Result<()> {
        if self.keys == KeyFormat::Internal && key.len() < TAG_BYTES {
            let problem = format!("a key of {} bytes is no internal key", key.len());
            return Err(self.origin.corrupt(&Malformed::new(entry.at, problem)));
        }
        Ok(())
    }

    pub(super) fn entry(&self, at: usize) -> Result<Entry> {
        Entry::decode(self.entries, at).map_err(|malformed| self.origin.corrupt(&malformed))
    }
}

/// An entry's parts, as positions in the entries; all of them lie inside.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) at: usize,
    pub(super) shared: usize,
    pub(super) key_rest: Range<usize>,
    pub(super) value: Range<usize>,
}

impl Entry {
    #[inline]
    pub(super) fn decode(entries: &[u8], at: usize) -> std::result::Result<Self, Malformed> {
        // Mostly each length takes a byte: this is the inner loop of every search and walk.
        if let Some(&[shared @ 0..0x80, key_length @ 0..0x80, value_length @ 0..0x80]) =
            entries.get(at..).and_then(<[u8]>::first_chunk)
        {
            let key_start = at + 3;
            let value_start = key_start + usize::from(key_length);
            let end = value_start + usize::from(value_length);
            if end <= entries.len() {
                let (key_rest, value) = (key_start..value_start, value_start..end);
                return Ok(Self { at, shared: usize::from(shared), key_rest, value });
            }
        }
        Self::decode_any(entries, at)
    }

    fn decode_any(entries: &[u8], at: usize) -> std::result::Result<Self, Malformed> {
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
