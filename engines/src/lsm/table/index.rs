//! The index of an open table, made fast to search.
//!
//! Halving through an index block touches two places in memory at each step: the restart point
//! and the key it leads to. Beside the block, the first bytes in which its keys differ are
//! therefore kept as numbers in a row: most steps of a search stay in that row.

use std::sync::Arc;

use crate::Result;
use crate::lsm::block::{Block, EntryCursor};
use crate::lsm::key::user_key;

/// An index block and a digest of its restart points.
#[derive(Debug)]
pub(super) struct Index {
    block: Arc<Block>,
    /// How all user keys at restart points start.
    shared: Vec<u8>,
    /// For each restart point the eight bytes behind that, as [`head`] makes them.
    heads: Vec<u64>,
}

impl Index {
    /// # Errors
    /// [`Error::Corruption`](crate::Error::Corruption) if a restart point leads to no key.
    pub(super) fn new(block: Block) -> Result<Self> {
        let view = block.view();
        let count = view.restart_count();
        let shared = match count.checked_sub(1) {
            Some(last) => {
                let (first, last) =
                    (user_key(view.restart_key(0)?), user_key(view.restart_key(last)?));
                let length = first.iter().zip(last).take_while(|(one, other)| one == other).count();
                first[..length].to_vec()
            }
            None => Vec::new(),
        };
        let mut heads = Vec::with_capacity(count);
        for restart in 0..count {
            let key = user_key(view.restart_key(restart)?);
            heads.push(head(key.get(shared.len()..).unwrap_or_default()));
        }
        Ok(Self { block: Arc::new(block), shared, heads })
    }

    pub(super) fn block(&self) -> &Arc<Block> {
        &self.block
    }

    /// Moves `cursor` to the first entry of the index at or after `internal_key`.
    pub(super) fn seek(&self, cursor: &mut EntryCursor, internal_key: &[u8]) -> Result<()> {
        let view = self.block.view();
        let Some(rest) = user_key(internal_key).strip_prefix(&self.shared[..]) else {
            return cursor.seek(view, internal_key);
        };
        // Smaller heads mean smaller keys; equal heads leave it to the keys.
        let wanted = head(rest);
        let low = self.heads.partition_point(|head| *head < wanted);
        let equal = self.heads[low..].iter().take_while(|head| **head == wanted).count();
        cursor.seek_within(view, internal_key, low.saturating_sub(1)..low + equal)
    }

    /// The memory that the index takes, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.block.memory_bytes()
            + self.shared.capacity()
            + self.heads.capacity() * size_of::<u64>()
    }
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
            keys.iter().for_each(|key| builder.add(key, b"handle"));
            let origin = Origin { path: Arc::new(PathBuf::from("t")), offset: 0 };
            let block = Block::new(builder.finish().to_vec(), origin, KeyFormat::Internal).unwrap();
            let index = Index::new(block).unwrap();
            let mut cursor = EntryCursor::default();
            for target in targets {
                for target in [[&shared[..], &target].concat(), target] {
                    let target = internal(&target, 1);
                    index.seek(&mut cursor, &target).unwrap();
                    let here = cursor.valid().then(|| cursor.key().to_vec());
                    let expected = keys.iter().find(|key| compare(key, &target).is_ge());
                    prop_assert_eq!(here.as_ref(), expected);
                }
            }
        }
    }
}
