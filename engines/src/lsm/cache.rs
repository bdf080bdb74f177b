//! The cache of decompressed blocks, shared by the tables of a database.
//!
//! While there is room every block is kept that was read. A full cache takes a block only when it
//! is read a second time within some time: a walk over everything, or reads all over a database
//! that is much larger, leave it as it is, and cost no memory to be taken and given back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering::Relaxed};

use foldhash::fast::FixedState;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use super::block::Block;
use super::filename::FileNumber;

/// What the cache itself takes for a block beside it, about.
const ENTRY_BYTES: u64 = 96;
/// The size of block that the number of slots is estimated by.
const TYPICAL_BLOCK_BYTES: u64 = 4096;
/// So often, in blocks put in, it is looked whether the cache is full.
const FULL_STEP: u64 = 64;
/// For each typical block that fits, so many blocks that were read are remembered.
const SEEN_PER_BLOCK: u64 = 4;

/// Decompressed blocks by table and offset, bounded by their bytes; sharded, so that readers seldom
/// meet.
#[derive(Debug)]
pub(crate) struct BlockCache {
    /// What blocks and [`reserved`](Self::reserve) memory may take together.
    budget_bytes: u64,
    /// With the same hashes in every process: nobody chooses file numbers and offsets to collide,
    /// and what is kept does not depend on chance.
    blocks: Cache<(FileNumber, u64), Arc<Block>, BlockWeighter, FixedState>,
    inserted: AtomicU64,
    is_full: AtomicBool,
    /// Marks of blocks that were read and not kept, each where its hash says.
    seen: Box<[AtomicU16]>,
}

impl BlockCache {
    /// Holds blocks of about `capacity_bytes` in all.
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        let item_count = usize::try_from(capacity_bytes / TYPICAL_BLOCK_BYTES + 1);
        let blocks = Cache::with(
            item_count.unwrap_or(usize::MAX),
            capacity_bytes,
            BlockWeighter,
            FixedState::default(),
            DefaultLifecycle::default(),
        );
        let seen_count = (capacity_bytes / TYPICAL_BLOCK_BYTES * SEEN_PER_BLOCK).max(1024);
        let seen = (0..seen_count.next_power_of_two()).map(|_| AtomicU16::new(0)).collect();
        Self {
            budget_bytes: capacity_bytes,
            blocks,
            inserted: AtomicU64::new(0),
            is_full: AtomicBool::new(capacity_bytes == 0),
            seen,
        }
    }

    pub(crate) fn get(&self, table: FileNumber, offset: u64) -> Option<Arc<Block>> {
        self.blocks.get(&(table, offset))
    }

    /// Whether a block that was not here and has been read now is to be put in.
    pub(crate) fn admits(&self, table: FileNumber, offset: u64) -> bool {
        if !self.is_full.load(Relaxed) {
            return true;
        }
        let hash = (table.0.rotate_left(40) ^ offset).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        #[expect(clippy::cast_possible_truncation, reason = "any part of the hash will do")]
        let (at, mark) = ((hash >> 24) as usize & (self.seen.len() - 1), (hash >> 8) as u16);
        // Two threads at once may both be told no: it is read again, if it matters.
        let is_second = self.seen[at].load(Relaxed) == mark;
        self.seen[at].store(if is_second { 0 } else { mark }, Relaxed);
        is_second
    }

    pub(crate) fn insert(&self, table: FileNumber, offset: u64, block: Arc<Block>) {
        self.blocks.insert((table, offset), block);
        if self.inserted.fetch_add(1, Relaxed).is_multiple_of(FULL_STEP) {
            let full = self.blocks.capacity() / 16 * 15;
            self.is_full.store(self.blocks.weight() >= full, Relaxed);
        }
    }

    /// Leaves `bytes` of the budget to somebody else: the indexes and filters of open tables. A
    /// quarter stays for blocks whatever they take.
    pub(crate) fn reserve(&self, bytes: u64) {
        let left = self.budget_bytes.saturating_sub(bytes);
        self.blocks.set_capacity(left.max(self.budget_bytes / 4));
        self.is_full.store(false, Relaxed);
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
    fn a_full_cache_takes_what_is_read_twice_only() {
        let cache = BlockCache::new(1 << 20);
        let read = |table, offset| {
            let table = FileNumber(table);
            let is_kept = cache.get(table, offset).is_some();
            if !is_kept && cache.admits(table, offset) {
                cache.insert(table, offset, block(offset));
            }
            is_kept
        };
        (0..100).for_each(|at| _ = read(1, at));
        let kept = (0..100).filter(|at| read(1, *at)).count();
        assert!(kept > 90, "{kept} of 100: there is room, though not quite evenly");
        (100..1000).for_each(|at| _ = read(1, at));
        let kept = (0..200).filter(|at| read(1, *at)).count();
        // A walk over what is far larger.
        (0..20_000).for_each(|at| _ = read(2, at));
        let kept_after = (0..200).filter(|at| read(1, *at)).count();
        assert!(kept_after * 10 > kept * 9, "{kept_after} of {kept} are left");
        // What is read again and again gets in.
        (0..6).for_each(|_| (0..50).for_each(|at| _ = read(3, at)));
        let kept = (0..50).filter(|at| read(3, *at)).count();
        assert!(kept > 25, "{kept} of 50 are kept");
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
