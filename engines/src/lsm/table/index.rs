//! The index of an open table, taken apart so that it is fast to search.
//!
//! The first bytes in which its keys differ are kept as numbers in a row, and every sixteenth of
//! them in a second, short row. A search halves its way through the short row, which stays in the
//! processor's cache, and touches two lines of the long one; only keys that start alike are
//! compared as a whole.

use std::ops::Range;

use super::BlockHandle;
use crate::lsm::block::{Block, EntryCursor};
use crate::lsm::coding::Cursor;
use crate::lsm::key::{compare, user_key};
use crate::{Error, Result};

/// One head in so many stands in the short row.
const GROUP: usize = 16;

/// The keys and handles of an index block. The entries are counted from 0 on.
#[derive(Debug)]
pub(super) struct Index {
    /// How all user keys start.
    shared: Vec<u8>,
    /// For each entry the eight bytes of its user key behind that, as [`head`] makes them.
    heads: Vec<u64>,
    /// The last head of each whole group.
    fences: Vec<u64>,
    /// The internal keys without what they share, one after the other.
    keys: Vec<u8>,
    /// Where each of them ends.
    key_ends: Vec<u32>,
    handles: Vec<BlockHandle>,
}

impl Index {
    /// # Errors
    /// [`Error::Corruption`] for damaged entries.
    pub(super) fn new(block: &Block) -> Result<Self> {
        let view = block.view();
        let corrupt = |problem: &str| {
            let origin = block.origin();
            Error::corruption(origin.path.as_path(), origin.offset, format!("index: {problem}"))
        };
        let mut index = Self {
            shared: shared_start(block)?,
            heads: Vec::new(),
            fences: Vec::new(),
            keys: Vec::new(),
            key_ends: Vec::new(),
            handles: Vec::new(),
        };
        let mut cursor = EntryCursor::default();
        cursor.seek_to_first(view)?;
        while cursor.valid() {
            // In between the first and the last key all of them start as those two do.
            let Some(rest) = cursor.key().strip_prefix(&index.shared[..]) else {
                return Err(corrupt("the keys do not ascend"));
            };
            index.heads.push(head(user_key(rest)));
            index.keys.extend_from_slice(rest);
            let end = u32::try_from(index.keys.len()).map_err(|_| corrupt("over 4 GiB of keys"))?;
            index.key_ends.push(end);
            let handle = BlockHandle::read(&mut Cursor::new(cursor.value(view)));
            index.handles.push(handle.map_err(|malformed| corrupt(&malformed.problem))?);
            cursor.next(view)?;
        }
        index.fences = index.heads.iter().skip(GROUP - 1).step_by(GROUP).copied().collect();
        index.shrink();
        Ok(index)
    }

    /// The number of entries.
    pub(super) fn len(&self) -> usize {
        self.handles.len()
    }

    /// Where the block of an entry lies.
    pub(super) fn handle(&self, entry: usize) -> Option<BlockHandle> {
        self.handles.get(entry).copied()
    }

    /// The internal key of an entry: the last of its block or one behind it, before the next block.
    pub(super) fn internal_key(&self, entry: usize) -> Vec<u8> {
        [&self.shared, self.key(entry)].concat()
    }

    /// The first entry at or after `internal_key`; [`len`](Self::len) if there is none.
    pub(super) fn seek(&self, internal_key: &[u8]) -> usize {
        let user = user_key(internal_key);
        let Some(rest) = user.strip_prefix(&self.shared[..]) else {
            // It sorts before everything that starts so, or after it.
            return if user < &self.shared[..] { 0 } else { self.len() };
        };
        // Smaller heads mean smaller keys; equal heads leave it to the keys.
        let wanted = head(rest);
        let low = self.first_at_or_after(wanted);
        if self.heads.get(low) != Some(&wanted) {
            return low;
        }
        let rest = &internal_key[self.shared.len()..];
        let (mut low, mut high) = (low, low + self.heads[low..].partition_point(|h| *h == wanted));
        while low < high {
            let middle = low + (high - low) / 2;
            if compare(self.key(middle), rest).is_lt() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The memory that the index takes, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.shared.capacity()
            + self.keys.capacity()
            + (self.heads.capacity() + self.fences.capacity()) * size_of::<u64>()
            + self.key_ends.capacity() * size_of::<u32>()
            + self.handles.capacity() * size_of::<BlockHandle>()
    }

    fn first_at_or_after(&self, wanted: u64) -> usize {
        let start = self.fences.partition_point(|fence| *fence < wanted) * GROUP;
        let group = &self.heads[start..self.heads.len().min(start + GROUP)];
        start + group.partition_point(|head| *head < wanted)
    }

    /// An internal key without what all share.
    fn key(&self, entry: usize) -> &[u8] {
        let start = entry.checked_sub(1).map_or(0, |before| self.key_ends[before]);
        let Range { start, end } = start as usize..self.key_ends[entry] as usize;
        &self.keys[start..end]
    }

    fn shrink(&mut self) {
        self.heads.shrink_to_fit();
        self.fences.shrink_to_fit();
        self.keys.shrink_to_fit();
        self.key_ends.shrink_to_fit();
        self.handles.shrink_to_fit();
    }
}

/// How the first and the last user key of a block both start.
fn shared_start(block: &Block) -> Result<Vec<u8>> {
    let (mut first, mut last) = (EntryCursor::default(), EntryCursor::default());
    first.seek_to_first(block.view())?;
    last.seek_to_last(block.view())?;
    if !(first.valid() && last.valid()) {
        return Ok(Vec::new());
    }
    let (first, last) = (user_key(first.key()), user_key(last.key()));
    let length = first.iter().zip(last).take_while(|(one, other)| one == other).count();
    Ok(first[..length].to_vec())
}

/// The first eight bytes as a number that is ordered as they are; missing ones count as zeros.
fn head(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = key.len().min(8);
    bytes[..length].copy_from_slice(&key[..length]);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::lsm::block::{BlockBuilder, KeyFormat, Origin};
    use crate::lsm::key::{EntryKind, Sequence, compare, push_internal_key};

    fn internal(user_key: &[u8], sequence: u64) -> Vec<u8> {
        let mut key = Vec::new();
        push_internal_key(&mut key, user_key, Sequence(sequence), EntryKind::Value);
        key
    }

    proptest! {
        #[test]
        fn a_search_ends_where_a_walk_does(
            shared in prop::collection::vec(any::<u8>(), 0..4),
            keys in prop::collection::btree_set(
                prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255)], 0..11), 0..60),
            sequences in 1u64..4,
            targets in prop::collection::vec(
                prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255)], 0..11), 0..40),
            restart_interval in 1usize..4,
        ) {
            let user_keys = keys.iter().map(|key| [&shared[..], key].concat());
            let keys: Vec<_> = user_keys
                .flat_map(|key| (0..sequences).rev().map(move |sequence| internal(&key, sequence)))
                .collect();
            let mut builder = BlockBuilder::new(restart_interval);
            for (at, key) in (1u8..).zip(&keys) {
                builder.add(key, &[at % 128, 2]);
            }
            let origin = Origin { path: Arc::new(PathBuf::from("t")), offset: 0 };
            let block = Block::new(builder.finish().to_vec(), origin, KeyFormat::Internal).unwrap();
            let index = Index::new(&block).unwrap();
            prop_assert_eq!(index.len(), keys.len());
            for target in targets {
                for target in [[&shared[..], &target].concat(), target] {
                    let target = internal(&target, 1);
                    let here = index.seek(&target);
                    let expected = keys.iter().position(|key| compare(key, &target).is_ge());
                    prop_assert_eq!(here, expected.unwrap_or(keys.len()));
                    let handle = expected.map(|at| (at as u64 + 1) % 128);
                    prop_assert_eq!(index.handle(here).map(|handle| handle.offset), handle);
                    if let Some(at) = expected {
                        prop_assert_eq!(&index.internal_key(at), &keys[at]);
                    }
                }
            }
        }
    }
}
