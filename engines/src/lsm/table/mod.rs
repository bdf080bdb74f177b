//! Tables: sorted files that never change.
//!
//! ```text
//! data blocks, in key order
//! filter block       optional; see the filter module
//! table filter block optional; see the table_filter module
//! metaindex block    "filter.<name>" -> block handle of the filter block
//!                    "enginelab.filter1" -> block handle of the table filter block
//! index block        a key at or after the last of a data block, before the first of the next
//!                    -> block handle of the data block
//! footer             48 bytes: handle of the metaindex block, handle of the index block, zeros
//!                    up to 40 bytes, fixed64 magic 0xdb4775248b80fb57
//! ```
//! A block handle is varint64 offset, varint64 size. Behind each block, not counted in its size:
//! ```text
//! 0  u8       how the block is stored; see the compress module
//! 1  fixed32  checksum of the stored block and that byte
//! ```

mod builder;
mod index;
mod iter;
mod many;
mod reader;
mod salvage;
mod separator;

#[cfg(test)]
pub(crate) use builder::TableSummary;
pub(crate) use builder::{TableBuilder, TableOptions};
pub(crate) use iter::{ReadOptions, TableIter};
pub(crate) use many::Wanted;
pub(crate) use reader::Table;
pub(crate) use salvage::{VisitEntry, salvage};

use super::coding::{Cursor, Malformed, push_varint64};

/// The bytes behind each block.
const TRAILER_BYTES: usize = 5;
const FOOTER_BYTES: usize = 48;
const MAGIC: u64 = 0xdb47_7524_8b80_fb57;
/// No block decompresses to more: it holds one entry of up to 4 GiB, after less than 1 GiB of
/// smaller ones.
const MAX_BLOCK_BYTES: u64 = 5 << 30;

/// Where a block lies in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BlockHandle {
    offset: u64,
    /// Without the trailer.
    size: u64,
}

impl BlockHandle {
    fn push(&self, out: &mut Vec<u8>) {
        push_varint64(out, self.offset);
        push_varint64(out, self.size);
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            offset: cursor.varint64("the offset of a block handle")?,
            size: cursor.varint64("the size of a block handle")?,
        })
    }
}

#[cfg(test)]
mod tests;
