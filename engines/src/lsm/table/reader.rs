//! Reading tables; see the parent for the layout.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::index::Index;
use super::iter::{ReadOptions, TableIter};
use super::{BlockHandle, FOOTER_BYTES, MAGIC, MAX_BLOCK_BYTES, TRAILER_BYTES};
use crate::fs::ReadFile;
use crate::lsm::block::{Block, BlockView, EntryCursor, KeyFormat, Origin};
use crate::lsm::cache::BlockCache;
use crate::lsm::coding::{Cursor, checksum};
use crate::lsm::compress::{
    DecompressError, PartialSnappy, decompress, is_plain, is_snappy, missing_feature,
};
use crate::lsm::filename::FileNumber;
use crate::lsm::filter::{FILTER_NAME, FilterBlock};
use crate::lsm::key::user_key;
use crate::lsm::table_filter::{KeyHash, TABLE_FILTER_NAME, TableFilter};
use crate::{Error, Result};

/// What spares looking for a key.
#[derive(Debug)]
enum Filter {
    None,
    /// One for all keys; what LevelDB's filters tell it tells too, and sooner.
    Table(TableFilter),
    /// Those that LevelDB knows.
    Blocks(FilterBlock),
}

/// An open table. Its index and filter are in memory.
#[derive(Debug)]
pub(crate) struct Table {
    file: TableFile,
    number: FileNumber,
    index: Index,
    filter: Filter,
    metaindex_offset: u64,
    cache: Option<Arc<BlockCache>>,
    verify_checksums: bool,
}

impl Table {
    /// Opens a table of `size` bytes. Its blocks go to `cache` under `number`; without a cache
    /// every read decompresses.
    ///
    /// # Errors
    /// [`Error::Corruption`] if the file is not a table of that size; I/O errors.
    pub(crate) fn open(
        file: Arc<dyn ReadFile>,
        path: &Path,
        size: u64,
        number: FileNumber,
        cache: Option<Arc<BlockCache>>,
        verify_checksums: bool,
    ) -> Result<Self> {
        let file = TableFile::new(file, path, size);
        let (metaindex, index) = file.read_footer()?;
        // What everything hangs on is checked always.
        let index = Index::new(&file.read_block(index, KeyFormat::Internal, true)?)?;
        let filter = file.read_filter(metaindex)?;
        let metaindex_offset = metaindex.offset;
        Ok(Self { file, number, index, filter, metaindex_offset, cache, verify_checksums })
    }

    /// Lends the newest entry of the user key of `internal_key`, at or below its sequence, to
    /// `visit`: internal key and value. Returns whether there is one. `hash` is that of the user
    /// key.
    ///
    /// # Errors
    /// [`Error::Corruption`] for damage on the way, I/O errors.
    pub(crate) fn get(
        &self,
        internal_key: &[u8],
        hash: KeyHash,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<bool> {
        let Some(handle) = self.block_of(internal_key, hash) else { return Ok(false) };
        let mut scratch = SCRATCH.take();
        let found = self.get_in_block(&mut scratch, handle, internal_key, visit);
        SCRATCH.set(scratch);
        found
    }

    /// Walks the table.
    pub(crate) fn iter(self: &Arc<Self>, options: ReadOptions) -> TableIter {
        TableIter::new(Arc::clone(self), options)
    }

    /// About where in the file `internal_key` is or would be.
    pub(crate) fn approximate_offset_of(&self, internal_key: &[u8]) -> u64 {
        let handle = self.index.handle(self.index.seek(internal_key));
        handle.map_or(self.metaindex_offset, |handle| handle.offset)
    }

    /// User keys in ascending order that cut the table into up to `piece_count` pieces of about
    /// equal size, as far as its blocks allow.
    pub(crate) fn cut_keys(&self, piece_count: usize) -> Vec<Vec<u8>> {
        let piece_bytes = self.metaindex_offset / (piece_count.max(1) as u64);
        let mut keys = Vec::new();
        let mut due = piece_bytes;
        for entry in 0..self.index.len() {
            let Some(handle) = self.index.handle(entry) else { break };
            // The index key lies behind the block it leads to.
            let end = handle.offset.saturating_add(handle.size);
            if end >= due && end < self.metaindex_offset - piece_bytes / 2 {
                keys.push(user_key(&self.index.internal_key(entry)).to_vec());
                due = end + piece_bytes;
            }
        }
        keys.dedup();
        keys
    }

    /// The number under which the table's blocks are cached.
    pub(crate) fn number(&self) -> FileNumber {
        self.number
    }

    /// The file's path.
    pub(crate) fn path(&self) -> &Path {
        &self.file.path
    }

    /// Whether the table has a filter.
    #[cfg(test)]
    pub(crate) fn has_filter(&self) -> bool {
        !matches!(self.filter, Filter::None)
    }

    /// The memory that index and filter take, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let filter = match &self.filter {
            Filter::None => 0,
            Filter::Table(filter) => filter.memory_bytes(),
            Filter::Blocks(filter) => filter.memory_bytes(),
        };
        size_of::<Self>() + self.index.memory_bytes() + filter
    }

    pub(super) fn index(&self) -> &Index {
        &self.index
    }

    pub(super) fn file(&self) -> &TableFile {
        &self.file
    }

    pub(super) fn verify_checksums(&self) -> bool {
        self.verify_checksums
    }

    pub(super) fn cache(&self) -> Option<&BlockCache> {
        self.cache.as_deref()
    }

    /// The one block that may hold a key; `None` if none does.
    pub(super) fn block_of(&self, internal_key: &[u8], hash: KeyHash) -> Option<BlockHandle> {
        if let Filter::Table(filter) = &self.filter
            && !filter.may_match(hash)
        {
            return None;
        }
        let handle = self.index.handle(self.index.seek(internal_key))?;
        match &self.filter {
            Filter::Blocks(filter) => {
                filter.may_match(handle.offset, user_key(internal_key)).then_some(handle)
            }
            _ => Some(handle),
        }
    }

    /// [`get`](Self::get), in the block that may hold the key.
    pub(super) fn get_in_block(
        &self,
        scratch: &mut Scratch,
        handle: BlockHandle,
        internal_key: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<bool> {
        if let Some(block) = self.cached(handle) {
            return search(block.view(), &mut scratch.cursor, internal_key, visit);
        }
        // What is to be cached is needed whole.
        let admitting =
            self.cache.as_ref().filter(|cache| cache.admits(self.number, handle.offset));
        if admitting.is_none()
            && let Some(found) = self.get_early(scratch, handle, internal_key, visit)?
        {
            return Ok(found);
        }
        let Scratch { stored, decompressed, cursor } = scratch;
        let origin = self.file.origin(handle);
        let place = self.file.load(handle, self.verify_checksums, stored, decompressed)?;
        let bytes = match place {
            Place::Mapped => self.file.read(handle.offset, handle.size, stored)?,
            Place::Stored => stored,
            Place::Decompressed => decompressed,
        };
        // What lies in the mapping is as good as cached.
        if let Some(cache) = admitting
            && place != Place::Mapped
        {
            let block = Block::new(bytes.to_vec(), origin.clone(), KeyFormat::Internal)?;
            cache.insert(self.number, handle.offset, Arc::new(block));
        }
        search(BlockView::new(bytes, &origin, KeyFormat::Internal)?, cursor, internal_key, visit)
    }

    /// Looks into a block that is decompressed only up to the end of what is looked for. `None` if
    /// the block is stored otherwise than in Snappy.
    fn get_early(
        &self,
        scratch: &mut Scratch,
        handle: BlockHandle,
        internal_key: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<Option<bool>> {
        let Scratch { stored, decompressed, cursor } = scratch;
        let length = self.file.length_with_trailer(handle)?;
        let bytes = self.file.read(handle.offset, length, stored)?;
        let (content, block_type) = self.file.check(handle, bytes, self.verify_checksums)?;
        if !is_snappy(block_type) {
            return Ok(None);
        }
        let fail = |error| self.file.decompress_error(handle, error);
        let mut part = PartialSnappy::new(content, block_limit(), decompressed).map_err(fail)?;
        let (origin, length) = (self.file.origin(handle), part.length());
        let found =
            cursor.seek_early(decompressed, length, &origin, internal_key, |out, wanted| {
                part.advance(out, wanted).map_err(fail)
            })?;
        let Some(value) = found else {
            part.finish(decompressed).map_err(fail)?;
            let block = BlockView::new(decompressed, &origin, KeyFormat::Internal)?;
            return search(block, cursor, internal_key, visit).map(Some);
        };
        let is_found = user_key(cursor.early_key()) == user_key(internal_key);
        if is_found {
            visit(cursor.early_key(), &decompressed[value]);
        }
        Ok(Some(is_found))
    }

    pub(super) fn cached(&self, handle: BlockHandle) -> Option<Arc<Block>> {
        self.cache.as_ref()?.get(self.number, handle.offset)
    }
}

fn block_limit() -> usize {
    usize::try_from(MAX_BLOCK_BYTES).unwrap_or(usize::MAX)
}

/// Lends the entry that a lookup of `internal_key` ends at, if it is of the same user key.
fn search(
    block: BlockView<'_>,
    cursor: &mut EntryCursor,
    internal_key: &[u8],
    visit: &mut dyn FnMut(&[u8], &[u8]),
) -> Result<bool> {
    cursor.seek(block, internal_key)?;
    let found = cursor.valid() && user_key(cursor.key()) == user_key(internal_key);
    if found {
        visit(cursor.key(), cursor.value(block));
    }
    Ok(found)
}

thread_local! {
    /// Taken during a lookup and put back, so that a lookup inside `visit` has its own.
    static SCRATCH: Cell<Scratch> = Cell::default();
}

/// Working memory of lookups, kept from one to the next.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    stored: Vec<u8>,
    decompressed: Vec<u8>,
    cursor: EntryCursor,
}

/// Where the content of a block is after [`TableFile::load`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the mapping: [`TableFile::read`] lends it.
    Mapped,
    /// In the buffer for stored blocks.
    Stored,
    /// In the buffer for decompressed blocks.
    Decompressed,
}

/// A table's file, and what reading it safely takes.
#[derive(Debug)]
pub(super) struct TableFile {
    file: Arc<dyn ReadFile>,
    path: Arc<PathBuf>,
    size: u64,
}

impl TableFile {
    pub(super) fn new(file: Arc<dyn ReadFile>, path: &Path, size: u64) -> Self {
        Self { file, path: Arc::new(path.to_path_buf()), size }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads and checks a block, and decompresses it where it is compressed. Tells where its
    /// content is.
    pub(super) fn load(
        &self,
        handle: BlockHandle,
        verify_checksum: bool,
        stored: &mut Vec<u8>,
        decompressed: &mut Vec<u8>,
    ) -> Result<Place> {
        stored.clear();
        let length = self.length_with_trailer(handle)?;
        let bytes = self.read(handle.offset, length, stored)?;
        let (content, block_type) = self.check(handle, bytes, verify_checksum)?;
        if !is_plain(block_type) {
            self.decompress(handle, block_type, content, decompressed)?;
            return Ok(Place::Decompressed);
        }
        let content_length = content.len();
        if stored.is_empty() {
            // The bytes were lent.
            return Ok(Place::Mapped);
        }
        stored.truncate(content_length);
        Ok(Place::Stored)
    }

    /// Bytes of the file, lent from the mapping or read into `scratch`.
    pub(super) fn read<'a>(
        &'a self,
        offset: u64,
        length: u64,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        self.file.read_at(offset, length, scratch)
    }

    /// The length of a block and its trailer.
    ///
    /// # Errors
    /// [`Error::Corruption`] if the block does not lie in front of the footer.
    pub(super) fn length_with_trailer(&self, handle: BlockHandle) -> Result<u64> {
        let length = handle.size.checked_add(TRAILER_BYTES as u64);
        let end = length.and_then(|length| handle.offset.checked_add(length));
        match (length, end) {
            (Some(length), Some(end)) if end <= self.size - FOOTER_BYTES as u64 => Ok(length),
            _ => {
                let problem =
                    format!("a block of {} bytes, the file has {}", handle.size, self.size);
                Err(Error::corruption(self.path.as_path(), handle.offset, problem))
            }
        }
    }

    /// Splits a stored block, trailer included, into its content and type, and compares the
    /// checksum.
    pub(super) fn check<'a>(
        &self,
        handle: BlockHandle,
        bytes: &'a [u8],
        verify_checksum: bool,
    ) -> Result<(&'a [u8], u8)> {
        let fail = |problem: String| Error::corruption(self.path.as_path(), handle.offset, problem);
        let Some((summed, stored)) = bytes.split_last_chunk::<4>() else {
            return Err(fail("a block without its trailer".to_owned()));
        };
        let stored = u32::from_le_bytes(*stored);
        if verify_checksum && checksum(&[summed]) != stored {
            let computed = checksum(&[summed]);
            return Err(fail(format!(
                "block checksum mismatch: stored {stored:08x}, computed {computed:08x}"
            )));
        }
        match summed.split_last() {
            Some((block_type, content)) => Ok((content, *block_type)),
            None => Err(fail("a block without its trailer".to_owned())),
        }
    }

    /// Decompresses the content of a block into `out`.
    pub(super) fn decompress(
        &self,
        handle: BlockHandle,
        block_type: u8,
        content: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        decompress(block_type, content, block_limit(), out)
            .map_err(|error| self.decompress_error(handle, error))
    }

    fn decompress_error(&self, handle: BlockHandle, error: DecompressError) -> Error {
        match error {
            DecompressError::Malformed(problem) => {
                let problem = format!("block: {problem}");
                Error::corruption(self.path.as_path(), handle.offset, problem)
            }
            DecompressError::MissingFeature(feature) => missing_feature(feature),
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn origin(&self, handle: BlockHandle) -> Origin {
        Origin { path: Arc::clone(&self.path), offset: handle.offset }
    }

    /// A block in memory of its own.
    pub(super) fn read_block(
        &self,
        handle: BlockHandle,
        keys: KeyFormat,
        verify: bool,
    ) -> Result<Block> {
        Block::new(self.read_content(handle, verify)?, self.origin(handle), keys)
    }

    pub(super) fn read_content(&self, handle: BlockHandle, verify: bool) -> Result<Vec<u8>> {
        let (mut stored, mut decompressed) = (Vec::new(), Vec::new());
        Ok(match self.load(handle, verify, &mut stored, &mut decompressed)? {
            Place::Mapped => self.read(handle.offset, handle.size, &mut stored)?.to_vec(),
            Place::Stored => stored,
            Place::Decompressed => decompressed,
        })
    }

    /// The handles of the metaindex block and of the index block.
    pub(super) fn read_footer(&self) -> Result<(BlockHandle, BlockHandle)> {
        let fail = |at, problem| Err(Error::corruption(self.path.as_path(), at, problem));
        let actual = self.file.length()?;
        if actual != self.size {
            return fail(0, format!("the table has {actual} bytes, not {}", self.size));
        }
        let Some(start) = self.size.checked_sub(FOOTER_BYTES as u64) else {
            return fail(0, format!("a table of {} bytes has no footer", self.size));
        };
        let mut scratch = Vec::new();
        let footer = self.read(start, FOOTER_BYTES as u64, &mut scratch)?;
        let Some((handles, magic)) = footer.split_last_chunk::<8>() else {
            return fail(start, "no footer".to_owned());
        };
        if u64::from_le_bytes(*magic) != MAGIC {
            return fail(start, "not a table: the magic number is wrong".to_owned());
        }
        let mut cursor = Cursor::new(handles);
        let mut handle = || {
            BlockHandle::read(&mut cursor).map_err(|malformed| malformed.in_file(&self.path, start))
        };
        Ok((handle()?, handle()?))
    }

    fn read_filter(&self, metaindex: BlockHandle) -> Result<Filter> {
        let block = self.read_block(metaindex, KeyFormat::Plain, true)?;
        let mut cursor = EntryCursor::default();
        cursor.seek_to_first(block.view())?;
        let mut found = Filter::None;
        while cursor.valid() {
            let content = || {
                let handle = BlockHandle::read(&mut Cursor::new(cursor.value(block.view())))
                    .map_err(|malformed| malformed.in_file(&self.path, metaindex.offset))?;
                Ok((self.read_content(handle, true)?, self.origin(handle)))
            };
            match cursor.key() {
                TABLE_FILTER_NAME => {
                    let (bytes, origin) = content()?;
                    return TableFilter::new(&bytes, &origin).map(Filter::Table);
                }
                FILTER_NAME => {
                    let (bytes, origin) = content()?;
                    found = Filter::Blocks(FilterBlock::new(bytes, &origin)?);
                }
                _ => {}
            }
            cursor.next(block.view())?;
        }
        Ok(found)
    }
}
