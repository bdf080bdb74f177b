//! Blocks: sorted entries with shared prefixes taken out.
//!
//! ```text
//! entries:
//!   varint32  length of the prefix shared with the key before
//!   varint32  length of the rest of the key
//!   varint32  length of the value
//!   rest of the key, value
//! fixed32 for each restart point: where an entry starts that shares nothing
//! fixed32 count of restart points
//! ```
//! Every so many entries are a restart point, so that a search can halve its way in. The keys of
//! data and index blocks are internal keys, those of the metaindex block plain bytes.

mod approach;
mod builder;
mod cursor;
mod reader;

pub(crate) use builder::BlockBuilder;
pub(crate) use cursor::EntryCursor;
pub(crate) use reader::{Block, BlockView, KeyFormat, Origin};

const FIXED32_BYTES: usize = 4;

#[cfg(test)]
mod tests;
