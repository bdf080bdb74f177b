//! The one iterator shape of the engine: blocks, tables, memtables, merges of them.

use crate::Result;

/// Walks internal keys in [`compare`](super::key::compare) order, both ways.
///
/// A new iterator stands nowhere. After a move that returns `Ok`, [`valid`](Self::valid) tells
/// whether it stands on an entry; [`key`](Self::key) and [`value`](Self::value) may be called only
/// then. After an error it stands nowhere. Moving to the other direction on an entry is allowed.
pub(crate) trait InternalIterator: Send {
    /// Whether it stands on an entry.
    fn valid(&self) -> bool;
    /// To the first entry.
    fn seek_to_first(&mut self) -> Result<()>;
    /// To the last entry.
    fn seek_to_last(&mut self) -> Result<()>;
    /// To the first entry at or after `internal_key`.
    fn seek(&mut self, internal_key: &[u8]) -> Result<()>;
    /// One entry on.
    fn next(&mut self) -> Result<()>;
    /// One entry back.
    fn prev(&mut self) -> Result<()>;
    /// The internal key it stands on.
    fn key(&self) -> &[u8];
    /// The value it stands on.
    fn value(&self) -> &[u8];
}
