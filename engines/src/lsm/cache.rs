//! The cache of decompressed blocks, shared by the tables of a database.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::block::Block;
use super::filename::FileNumber;

/// What the cache itself takes for a block beside it, about.
const ENTRY_BYTES: u64 = 96;
/// The size of block that the number of slots is estimated by.
const TYPICAL_BLOCK_BYTES: u64 = 4096;

/// Decompressed blocks by table and offset, bounded by their bytes; sharded, so that readers seldom
/// meet.
#[derive(Debug)]
pub(crate) struct BlockCache {
    /// What blocks and [`reserved`](Self::reserve) memory may take together.
    budget_bytes: u64,
    blocks: Cache<(FileNumber, u64), Arc<Block>, BlockWeighter>,
}

impl BlockCache {
    /// Holds blocks of about `capacity_bytes` in all.
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        let item_count = usize::try_from(capacity_bytes / TYPICAL_BLOCK_BYTES + 1);
        let blocks =
            Cache::with_weighter(item_count.unwrap_or(usize::MAX), capacity_bytes, BlockWeighter);
        Self { budget_bytes: capacity_bytes, blocks }
    }

    pub(crate) fn get(&self, table: FileNumber, offset: u64) -> Option<Arc<Block>> {
        self.blocks.get(&(table, offset))
    }

    pub(crate) fn insert(&self, table: FileNumber, offset: u64, block: Arc<Block>) {
        self.blocks.insert((table, offset), block);
    }

    /// Leaves `bytes` of the budget to somebody else: the indexes and filters of open tables. A
    /// quarter stays for blocks whatever they take.
    pub(crate) fn reserve(&self, bytes: u64) {
        let left = self.budget_bytes.saturating_sub(bytes);
        self.blocks.set_capacity(left.max(self.budget_bytes / 4));
    }

    /// The bytes that the blocks take now.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.blocks.weight()
    }

    /// The bytes that the blocks may take.
    #[cfg(test)]
    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.blocks.capacity()
    }
}

#[derive(Debug, Clone)]
struct BlockWeighter;

impl Weighter<(FileNumber, u64), Arc<Block>> for BlockWeighter {
    fn weight(&self, _: &(FileNumber, u64), block: &Arc<Block>) -> u64 {
        block.memory_bytes() as u64 + ENTRY_BYTES
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::lsm::block::{KeyFormat, Origin};

    fn block(offset: u64) -> Arc<Block> {
        let mut bytes = vec![b'x'; 4000];
        bytes.extend_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0]);
        let origin = Origin { path: Arc::new(PathBuf::from("t")), offset };
        Arc::new(Block::new(bytes, origin, KeyFormat::Internal).unwrap())
    }

    #[test]
    fn blocks_are_found_by_table_and_offset_and_bounded_by_their_bytes() {
        let cache = BlockCache::new(1 << 20);
        for offset in 0..2000 {
            cache.insert(FileNumber(offset % 2), offset, block(offset));
            assert!(cache.used_bytes() <= 1 << 20);
        }
        let kept: Vec<_> = (0..2000)
            .filter(|offset| cache.get(FileNumber(offset % 2), *offset).is_some())
            .collect();
        assert!((100..260).contains(&kept.len()), "{}", kept.len());
        assert!(kept.iter().all(|offset| cache.get(FileNumber(7), *offset).is_none()));
        let found = cache.get(FileNumber(kept[0] % 2), kept[0]).unwrap();
        assert_eq!(found.origin().offset, kept[0]);
    }
    #[test]
    fn blocks_give_way_to_what_is_reserved_down_to_a_quarter() {
        let cache = BlockCache::new(1 << 20);
        let fill = || (0..1000).for_each(|at| cache.insert(FileNumber(1), at, block(at)));
        for (reserved, left) in [(512 << 10, 512 << 10), (2 << 20, 256 << 10), (0, 1 << 20)] {
            cache.reserve(reserved);
            assert_eq!(cache.capacity_bytes(), left);
            fill();
            assert!(cache.used_bytes() <= left && cache.used_bytes() > left / 2);
        }
    }
}
