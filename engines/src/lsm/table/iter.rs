//! Walking tables.

use std::sync::Arc;

use super::BlockHandle;
use super::reader::{Place, Table, TableFile};
use crate::Result;
use crate::lsm::block::{Block, EntryCursor, KeyFormat};
use crate::lsm::iterator::InternalIterator;

/// How a table is walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadOptions {
    /// Whether blocks that were not cached go to the cache. Off for a walk that reads everything
    /// once, as compactions do.
    pub(crate) fill_cache: bool,
    /// Whether the checksum of each block read is compared.
    pub(crate) verify_checksums: bool,
    /// How much a walk forwards reads at once from a file that is not mapped, in bytes; 0 reads
    /// block by block.
    pub(crate) readahead_bytes: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { fill_cache: true, verify_checksums: true, readahead_bytes: 0 }
    }
}

/// Walks a table in both directions: the index leads to the blocks.
#[derive(Debug)]
pub(crate) struct TableIter {
    table: Arc<Table>,
    options: ReadOptions,
    /// Which entry of the index it stands on.
    at: Option<usize>,
    /// The block of that entry.
    block: Option<Arc<Block>>,
    block_offset: u64,
    cursor: EntryCursor,
    stored: Vec<u8>,
    ahead: Ahead,
}

impl TableIter {
    pub(super) fn new(table: Arc<Table>, options: ReadOptions) -> Self {
        Self {
            table,
            options,
            at: None,
            block: None,
            block_offset: 0,
            cursor: EntryCursor::default(),
            stored: Vec::new(),
            ahead: Ahead::default(),
        }
    }

    /// Goes to an entry of the index and gets its block; tells whether there is such an entry.
    fn enter_block(&mut self, at: Option<usize>) -> Result<bool> {
        self.cursor.clear();
        self.at = at;
        let Some(handle) = at.and_then(|at| self.table.index().handle(at)) else {
            self.at = None;
            return Ok(false);
        };
        if self.block.is_some() && self.block_offset == handle.offset {
            return Ok(true);
        }
        let recycled = self.block.take();
        let cached = self.table.cache().and_then(|c| c.get(self.table.number(), handle.offset));
        let block = match cached {
            Some(block) => block,
            None => self.read_block(handle, recycled)?,
        };
        self.block = Some(block);
        self.block_offset = handle.offset;
        Ok(true)
    }

    /// Reads a block from the file, into the memory of `recycled` if nobody else holds it.
    fn read_block(
        &mut self,
        handle: BlockHandle,
        recycled: Option<Arc<Block>>,
    ) -> Result<Arc<Block>> {
        let mut bytes =
            recycled.and_then(Arc::into_inner).map(Block::into_bytes).unwrap_or_default();
        let file = self.table.file();
        let verify = self.options.verify_checksums;
        let forwards = handle.offset >= self.block_offset;
        if self.options.readahead_bytes > 0 && forwards {
            let length = file.length_with_trailer(handle)?;
            let stored =
                self.ahead.read(file, handle.offset, length, self.options.readahead_bytes)?;
            let (content, block_type) = file.check(handle, stored, verify)?;
            file.decompress(handle, block_type, content, &mut bytes)?;
        } else {
            match file.load(handle, verify, &mut self.stored, &mut bytes)? {
                Place::Mapped => {
                    let content = file.read(handle.offset, handle.size, &mut self.stored)?;
                    bytes.clear();
                    bytes.extend_from_slice(content);
                }
                Place::Stored => std::mem::swap(&mut bytes, &mut self.stored),
                Place::Decompressed => {}
            }
        }
        let cache = self.table.cache().filter(|cache| {
            self.options.fill_cache && cache.admits(self.table.number(), handle.offset)
        });
        if cache.is_some() {
            bytes.shrink_to_fit();
        }
        let block = Arc::new(Block::new(bytes, file.origin(handle), KeyFormat::Internal)?);
        if let Some(cache) = cache {
            cache.insert(self.table.number(), handle.offset, Arc::clone(&block));
        }
        Ok(block)
    }

    /// On to the next block with an entry, if the cursor ran off its block.
    fn skip_forward(&mut self) -> Result<()> {
        while !self.cursor.valid()
            && let Some(at) = self.at
        {
            if self.enter_block(Some(at + 1))?
                && let Some(block) = &self.block
            {
                self.cursor.seek_to_first(block.view())?;
            }
        }
        Ok(())
    }

    fn skip_backward(&mut self) -> Result<()> {
        while !self.cursor.valid()
            && let Some(at) = self.at
        {
            if self.enter_block(at.checked_sub(1))?
                && let Some(block) = &self.block
            {
                self.cursor.seek_to_last(block.view())?;
            }
        }
        Ok(())
    }
}

/// A stretch of a file, read at once.
#[derive(Debug, Default)]
struct Ahead {
    bytes: Vec<u8>,
    start: u64,
}

impl Ahead {
    /// `length` bytes from `offset`, both checked; reads up to `ahead_bytes` if it has to read.
    fn read<'a>(
        &'a mut self,
        file: &'a TableFile,
        offset: u64,
        length: u64,
        ahead_bytes: u64,
    ) -> Result<&'a [u8]> {
        let end = self.start + self.bytes.len() as u64;
        let length_here = usize::try_from(length).unwrap_or(usize::MAX);
        if self.start <= offset && offset + length <= end {
            let from = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
            return Ok(self.bytes.get(from..from.saturating_add(length_here)).unwrap_or_default());
        }
        self.bytes.clear();
        self.start = offset;
        let want = length.max(ahead_bytes.min(file.size() - offset));
        let bytes = file.read(offset, want, &mut self.bytes)?;
        Ok(bytes.get(..length_here).unwrap_or_default())
    }
}

impl InternalIterator for TableIter {
    fn valid(&self) -> bool {
        self.cursor.valid()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        if self.enter_block(Some(0))?
            && let Some(block) = &self.block
        {
            self.cursor.seek_to_first(block.view())?;
        }
        self.skip_forward()
    }

    fn seek_to_last(&mut self) -> Result<()> {
        if self.enter_block(self.table.index().len().checked_sub(1))?
            && let Some(block) = &self.block
        {
            self.cursor.seek_to_last(block.view())?;
        }
        self.skip_backward()
    }

    fn seek(&mut self, internal_key: &[u8]) -> Result<()> {
        if self.enter_block(Some(self.table.index().seek(internal_key)))?
            && let Some(block) = &self.block
        {
            self.cursor.seek(block.view(), internal_key)?;
        }
        self.skip_forward()
    }

    fn next(&mut self) -> Result<()> {
        if let Some(block) = &self.block {
            self.cursor.next(block.view())?;
        }
        self.skip_forward()
    }

    fn prev(&mut self) -> Result<()> {
        if let Some(block) = &self.block {
            self.cursor.prev(block.view())?;
        }
        self.skip_backward()
    }

    fn key(&self) -> &[u8] {
        self.cursor.key()
    }

    fn value(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], |block| self.cursor.value(block.view()))
    }
}
