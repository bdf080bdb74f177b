//! Building tables; see the parent for the layout.

use std::cmp::Ordering;
use std::mem;
use std::sync::Arc;

use super::separator::{shorten_to_separator, shorten_to_successor};
use super::{BlockHandle, FOOTER_BYTES, MAGIC};
use crate::fs::WriteFile;
use crate::lsm::block::BlockBuilder;
use crate::lsm::coding::checksum;
use crate::lsm::compress::{BlockType, Compressor};
use crate::lsm::filter::{FILTER_NAME, FilterBlockBuilder};
use crate::lsm::key::{compare, user_key};
use crate::lsm::table_filter::{TABLE_FILTER_NAME, TableFilterBuilder};
use crate::{Compression, Error, Result};

/// Output goes to the file in pieces of about this size.
const CHUNK_BYTES: usize = 1 << 20;
/// Disk space is reserved ahead by this much.
const RESERVE_BYTES: u64 = 16 << 20;
const MAX_BLOCK_SIZE: usize = 1 << 30;

/// How a table is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableOptions {
    /// A data block ends with the entry that takes it to this size, in bytes before compression;
    /// at most 1 GiB. Default: 4096, as LevelDB. Larger blocks compress better, smaller ones cost
    /// less to read one entry of.
    pub(crate) block_size: usize,
    /// A restart point every so many entries of a data block. Default: 16.
    pub(crate) restart_interval: usize,
    /// Default: Snappy.
    pub(crate) compression: Compression,
    /// The bits of filter for each key; `None`, the default, for no filter.
    pub(crate) filter_bits_per_key: Option<u32>,
    /// Whether there is a filter over the whole table too. Default: no.
    pub(crate) has_table_filter: bool,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self {
            block_size: 4096,
            restart_interval: 16,
            compression: Compression::default(),
            filter_bits_per_key: None,
            has_table_filter: false,
        }
    }
}

/// A finished table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableSummary {
    /// The file's size in bytes.
    pub(crate) file_size: u64,
    /// The number of entries.
    pub(crate) entry_count: u64,
    /// The first internal key; empty if there are no entries.
    pub(crate) smallest: Vec<u8>,
    /// The last internal key.
    pub(crate) largest: Vec<u8>,
}

/// Writes a table into an empty file. One that is dropped unfinished leaves a file that is no
/// table, for the caller to remove.
pub(crate) struct TableBuilder {
    options: TableOptions,
    compressor: Compressor,
    data: BlockBuilder,
    index: BlockBuilder,
    filter: Option<FilterBlockBuilder>,
    table_filter: Option<TableFilterBuilder>,
    output: Output,
    /// The last finished data block: its index entry waits for the key that follows.
    unindexed: Option<BlockHandle>,
    /// The last key of that block.
    last_key: Vec<u8>,
    smallest: Vec<u8>,
    entry_count: u64,
    handle: Vec<u8>,
}

impl TableBuilder {
    /// # Errors
    /// [`Error::Unsupported`] if this build has no such compression.
    pub(crate) fn new(file: Arc<dyn WriteFile>, options: TableOptions) -> Result<Self> {
        let options =
            TableOptions { block_size: options.block_size.clamp(1, MAX_BLOCK_SIZE), ..options };
        let mut filter = options.filter_bits_per_key.map(FilterBlockBuilder::new);
        if let Some(filter) = &mut filter {
            filter.start_block(0);
        }
        Ok(Self {
            options,
            compressor: Compressor::new(options.compression)?,
            data: BlockBuilder::new(options.restart_interval),
            index: BlockBuilder::new(1),
            filter,
            table_filter: options
                .filter_bits_per_key
                .filter(|_| options.has_table_filter)
                .map(TableFilterBuilder::new),
            output: Output::new(file),
            unindexed: None,
            last_key: Vec::new(),
            smallest: Vec::new(),
            entry_count: 0,
            handle: Vec::new(),
        })
    }

    /// Adds an entry, whose internal key comes after all so far.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if key and value together reach 4 GiB; I/O errors, after which the
    /// table is of no use.
    pub(crate) fn add(&mut self, internal_key: &[u8], value: &[u8]) -> Result<()> {
        let size = internal_key.len() as u64 + value.len() as u64;
        if size > u32::MAX.into() {
            return Err(Error::TooLarge { what: "record", size, limit: u32::MAX.into() });
        }
        debug_assert!(
            self.entry_count == 0 || compare(self.last_added_key(), internal_key) == Ordering::Less,
            "keys must ascend"
        );
        if let Some(handle) = self.unindexed.take() {
            shorten_to_separator(&mut self.last_key, internal_key);
            self.add_to_index(handle);
        }
        if self.entry_count == 0 {
            self.smallest.extend_from_slice(internal_key);
        }
        self.entry_count += 1;
        if let Some(filter) = &mut self.filter {
            filter.add(user_key(internal_key));
        }
        if let Some(filter) = &mut self.table_filter {
            filter.add(user_key(internal_key));
        }
        self.data.add(internal_key, value);
        if self.data.size() >= self.options.block_size {
            self.end_data_block()?;
        }
        Ok(())
    }

    /// About the size that the file has now, in bytes, without index and filter.
    pub(crate) fn estimated_size(&self) -> u64 {
        self.output.offset() + self.data.size() as u64
    }

    /// Ends the table. The file is complete, but not synced.
    pub(crate) fn finish(mut self) -> Result<TableSummary> {
        self.end_data_block()?;
        let largest = self.last_key.clone();
        let filter = self.filter.take().map(|mut filter| self.output.push_plain(filter.finish()));
        let table_filter = self.table_filter.take().and_then(|filter| filter.finish());
        let table_filter = table_filter.map(|block| self.output.push_plain(&block));
        let mut metaindex = BlockBuilder::new(self.options.restart_interval);
        for (name, handle) in [(TABLE_FILTER_NAME, table_filter), (FILTER_NAME, filter)] {
            if let Some(handle) = handle {
                self.handle.clear();
                handle.push(&mut self.handle);
                metaindex.add(name, &self.handle);
            }
        }
        let metaindex = self.output.push(metaindex.finish(), &mut self.compressor);
        if let Some(handle) = self.unindexed.take() {
            shorten_to_successor(&mut self.last_key);
            self.add_to_index(handle);
        }
        let index = self.output.push(self.index.finish(), &mut self.compressor);
        self.output.push_footer(metaindex, index);
        let file_size = self.output.finish()?;
        Ok(TableSummary {
            file_size,
            entry_count: self.entry_count,
            smallest: mem::take(&mut self.smallest),
            largest,
        })
    }

    fn last_added_key(&self) -> &[u8] {
        if self.data.is_empty() { &self.last_key } else { self.data.last_key() }
    }

    fn end_data_block(&mut self) -> Result<()> {
        if self.data.is_empty() {
            return Ok(());
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(self.data.last_key());
        self.unindexed = Some(self.output.push(self.data.finish(), &mut self.compressor));
        self.data.reset();
        if let Some(filter) = &mut self.filter {
            filter.start_block(self.output.offset());
        }
        self.output.write_if_large()
    }

    /// Adds a data block to the index under `last_key`.
    fn add_to_index(&mut self, handle: BlockHandle) {
        self.handle.clear();
        handle.push(&mut self.handle);
        self.index.add(&self.last_key, &self.handle);
    }
}

/// The end of the file, collected in memory so that few calls write it.
struct Output {
    file: Arc<dyn WriteFile>,
    pending: Vec<u8>,
    written_to: u64,
    reserved_to: u64,
}

impl Output {
    fn new(file: Arc<dyn WriteFile>) -> Self {
        Self { file, pending: Vec::new(), written_to: 0, reserved_to: 0 }
    }

    fn offset(&self) -> u64 {
        self.written_to + self.pending.len() as u64
    }

    /// Appends a block, compressed if that pays, and its trailer.
    fn push(&mut self, block: &[u8], compressor: &mut Compressor) -> BlockHandle {
        let start = self.pending.len();
        let block_type = compressor.append(block, &mut self.pending);
        self.push_trailer(start, block_type)
    }

    fn push_plain(&mut self, block: &[u8]) -> BlockHandle {
        let start = self.pending.len();
        self.pending.extend_from_slice(block);
        self.push_trailer(start, BlockType::Plain)
    }

    fn push_trailer(&mut self, start: usize, block_type: BlockType) -> BlockHandle {
        let size = (self.pending.len() - start) as u64;
        self.pending.push(block_type as u8);
        let checksum = checksum(&[&self.pending[start..]]);
        self.pending.extend_from_slice(&checksum.to_le_bytes());
        BlockHandle { offset: self.written_to + start as u64, size }
    }

    fn push_footer(&mut self, metaindex: BlockHandle, index: BlockHandle) {
        let start = self.pending.len();
        metaindex.push(&mut self.pending);
        index.push(&mut self.pending);
        self.pending.resize(start + FOOTER_BYTES - size_of_val(&MAGIC), 0);
        self.pending.extend_from_slice(&MAGIC.to_le_bytes());
    }

    fn write_if_large(&mut self) -> Result<()> {
        if self.pending.len() < CHUNK_BYTES { Ok(()) } else { self.write() }
    }

    fn write(&mut self) -> Result<()> {
        let end = self.offset();
        if end > self.reserved_to && end - self.written_to >= CHUNK_BYTES as u64 {
            let length = (end - self.written_to).max(RESERVE_BYTES);
            self.file.reserve(self.written_to, length);
            self.reserved_to = self.written_to + length;
        }
        self.file.write_at(self.written_to, &self.pending)?;
        self.written_to = end;
        self.pending.clear();
        Ok(())
    }

    /// Writes what is left, gives reserved space back, and returns the file's size.
    fn finish(&mut self) -> Result<u64> {
        self.write()?;
        if self.reserved_to > self.written_to {
            self.file.truncate(self.written_to)?;
        }
        Ok(self.written_to)
    }
}
