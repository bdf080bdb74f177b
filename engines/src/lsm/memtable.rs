//! The write buffer: every entry since the last freeze, sorted, readable while it grows.
//!
//! Entries are not copied apart: each one points into the record that was written to the log
//! (`key length, key, value length, value`, see `batch.rs`), which lives in memory as long as an
//! entry needs it.
//!
//! They lie in leaves of up to 32 (see `leaf`), and the leaves in a map by where they begin. A
//! search goes through a map that mostly stays in the processor's cache, and then through one leaf
//! from end to end; in a map of all entries nearly every step of a search waited for memory.
//!
//! The map itself is hidden here: readers see [`Memtable::get`] and [`MemtableIter`] only.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use arc_swap::ArcSwap;
use bytes::Bytes;
use crossbeam_skiplist::SkipMap;
use parking_lot::Mutex;

use super::iterator::InternalIterator;
use super::key::{self, EntryKind, SEEK_KIND, Sequence};
use super::leaf::{Entry, Leaf, Place, SortKey, Sorted};
use crate::Result;

/// What an entry costs beside its record: its part of a leaf that is full to two thirds, and of the
/// map.
const ENTRY_OVERHEAD_BYTES: usize = 120;

/// A sorted set of entries. Any number of threads read and insert; nothing is ever taken out.
#[derive(Default)]
pub(crate) struct Memtable {
    first: ArcSwap<Leaf>,
    /// The leaves behind the first, by their smallest entry.
    others: SkipMap<Place, ArcSwap<Leaf>>,
    inserting: Mutex<()>,
    bytes: AtomicUsize,
    count: AtomicU64,
}

impl Memtable {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds one entry. `record` holds key and value at the given ranges; each sequence is
    /// inserted once.
    pub(crate) fn insert(&self, sequence: Sequence, kind: EntryKind, record: Record) {
        let size = record.bytes.len() + ENTRY_OVERHEAD_BYTES;
        self.insert_entry(Entry { tag: key::tag(sequence, kind), record });
        self.bytes.fetch_add(size, Relaxed);
        self.count.fetch_add(1, Relaxed);
    }

    fn insert_entry(&self, entry: Entry) {
        let _alone = self.inserting.lock();
        let found = self.others.upper_bound::<dyn Sorted>(Bound::Included(&entry.sort_key()));
        let slot = found.as_ref().map_or(&self.first, |found| found.value());
        let leaf = slot.load();
        let Some(entry) = leaf.push(entry) else { return };
        let (lower, start, upper) = leaf.split(&entry);
        // In this order: whoever is told by the lower half to look behind it finds the upper one.
        self.others.insert(start, ArcSwap::from_pointee(upper));
        slot.store(Arc::new(lower));
    }

    /// The newest entry of `user_key` at or before `sequence`: `None` if there is none here; a
    /// value is lent to `read`.
    pub(crate) fn get(
        &self,
        user_key: &[u8],
        sequence: Sequence,
        read: &mut dyn FnMut(&[u8]),
    ) -> Option<EntryKind> {
        let (leaf, at) = self.first_from(SortKey::new(user_key, key::tag(sequence, SEEK_KIND)))?;
        let entry = leaf.entry(at);
        if entry.record.key() != user_key {
            return None;
        }
        let kind = entry.kind();
        if kind == EntryKind::Value {
            read(entry.record.value());
        }
        Some(kind)
    }

    /// The entries in internal key order.
    pub(crate) fn iter(&self) -> MemtableIter<'_> {
        MemtableIter { memtable: self, position: None, key: Vec::new() }
    }

    /// The memory taken, in bytes: records and what the map adds to each.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    pub(crate) fn entry_count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entry_count() == 0
    }

    /// The smallest entry that is not smaller than `target`.
    fn first_from(&self, target: SortKey<'_>) -> Option<(Arc<Leaf>, usize)> {
        let mut leaf = self.leaf_of(target);
        loop {
            if let Some(at) = leaf.first_from(target) {
                return Some((leaf, at));
            }
            let next = self.leaf_of(leaf.end()?.sort_key());
            leaf = next;
        }
    }

    /// The largest entry that is smaller than `limit`.
    fn last_before(&self, limit: SortKey<'_>) -> Option<(Arc<Leaf>, usize)> {
        let leaf = self.leaf(Some(Bound::Excluded(limit)), |end| limit <= end);
        // Only the first leaf may have none: the others begin with one.
        leaf.last_before(limit).map(|at| (leaf, at))
    }

    /// The leaf that holds `target` if there is such an entry.
    fn leaf_of(&self, target: SortKey<'_>) -> Arc<Leaf> {
        self.leaf(Some(Bound::Included(target)), |end| target < end)
    }

    /// The last leaf.
    fn last_leaf(&self) -> Arc<Leaf> {
        self.leaf(None, |_| false)
    }

    /// The last leaf that begins within `bound`, if it does not end too early: it may have been
    /// split since it was found.
    fn leaf(
        &self,
        bound: Option<Bound<SortKey<'_>>>,
        is_far_enough: impl Fn(SortKey<'_>) -> bool,
    ) -> Arc<Leaf> {
        loop {
            let found = match &bound {
                Some(bound) => {
                    self.others.upper_bound(bound.as_ref().map(|key| key as &dyn Sorted))
                }
                None => self.others.back(),
            };
            let slot = found.as_ref().map_or(&self.first, |found| found.value());
            let leaf = slot.load_full();
            if leaf.end().is_none_or(|end| is_far_enough(end.sort_key())) {
                return leaf;
            }
        }
    }
}

/// Key and value inside shared bytes.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    bytes: Bytes,
    key_length: u32,
    value_start: u32,
}

impl Record {
    /// `bytes` starts with the key, and the value is what lies from `value_start` to the end.
    pub(crate) fn new(bytes: Bytes, key_length: u32, value_start: u32) -> Self {
        debug_assert!(key_length <= value_start && value_start as usize <= bytes.len());
        Self { bytes, key_length, value_start }
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.bytes[..self.key_length as usize]
    }

    pub(crate) fn value(&self) -> &[u8] {
        &self.bytes[self.value_start as usize..]
    }
}

/// Walks a memtable; entries inserted meanwhile may or may not be seen.
pub(crate) struct MemtableIter<'a> {
    memtable: &'a Memtable,
    position: Option<Position>,
    /// The internal key of the entry there: a leaf keeps user key and tag apart.
    key: Vec<u8>,
}

/// An entry, and those of its leaf that were there when the leaf was entered.
struct Position {
    leaf: Arc<Leaf>,
    order: Vec<usize>,
    /// In `order`.
    at: usize,
}

impl Position {
    fn first(leaf: Arc<Leaf>) -> Option<Self> {
        let order = leaf.sorted();
        (!order.is_empty()).then_some(Self { leaf, order, at: 0 })
    }

    fn last(leaf: Arc<Leaf>) -> Option<Self> {
        let order = leaf.sorted();
        let at = order.len().checked_sub(1)?;
        Some(Self { leaf, order, at })
    }

    fn on((leaf, entry): (Arc<Leaf>, usize)) -> Self {
        let order = leaf.sorted();
        match order.iter().position(|other| *other == entry) {
            Some(at) => Self { leaf, order, at },
            None => unreachable!("entries stay in their leaf"),
        }
    }

    fn entry(&self) -> &Entry {
        self.leaf.entry(self.order[self.at])
    }
}

impl MemtableIter<'_> {
    fn stand_on(&mut self, position: Option<Position>) {
        self.key.clear();
        if let Some(position) = &position {
            let entry = position.entry();
            self.key.extend_from_slice(entry.record.key());
            self.key.extend_from_slice(&entry.tag.to_le_bytes());
        }
        self.position = position;
    }
}

impl InternalIterator for MemtableIter<'_> {
    fn valid(&self) -> bool {
        self.position.is_some()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.stand_on(Position::first(self.memtable.first.load_full()));
        Ok(())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.stand_on(Position::last(self.memtable.last_leaf()));
        Ok(())
    }

    fn seek(&mut self, internal_key: &[u8]) -> Result<()> {
        let target = SortKey::parse(internal_key);
        self.stand_on(self.memtable.first_from(target).map(Position::on));
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        let next = self.position.take().and_then(|mut position| {
            if position.at + 1 < position.order.len() {
                position.at += 1;
                return Some(position);
            }
            let end = position.leaf.end()?.sort_key();
            Position::first(self.memtable.leaf_of(end))
        });
        self.stand_on(next);
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        let previous = self.position.take().and_then(|mut position| {
            if position.at > 0 {
                position.at -= 1;
                return Some(position);
            }
            let limit = position.leaf.sort_key(position.order[0]);
            self.memtable.last_before(limit).map(Position::on)
        });
        self.stand_on(previous);
        Ok(())
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn value(&self) -> &[u8] {
        self.position.as_ref().map_or(&[], |position| position.entry().record.value())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use proptest::prelude::*;

    use super::*;
    use crate::lsm::key::compare;
    use crate::lsm::test_iter::{Move, check_against_model, entry_of};

    /// A record as the log has it between key and value: the length of the value.
    fn record(key: &[u8], value: &[u8]) -> Record {
        let mut bytes = key.to_vec();
        bytes.push(u8::try_from(value.len()).unwrap());
        bytes.extend_from_slice(value);
        let key_length = u32::try_from(key.len()).unwrap();
        Record::new(bytes.into(), key_length, key_length + 1)
    }

    fn get(memtable: &Memtable, key: &[u8], sequence: u64) -> Option<Option<Vec<u8>>> {
        let mut value = None;
        let kind =
            memtable.get(key, Sequence(sequence), &mut |bytes| value = Some(bytes.to_vec()))?;
        assert_eq!(kind == EntryKind::Value, value.is_some());
        Some(value)
    }

    #[test]
    fn a_lookup_sees_the_newest_entry_up_to_its_sequence() {
        let memtable = Memtable::new();
        memtable.insert(Sequence(3), EntryKind::Value, record(b"key", b"old"));
        memtable.insert(Sequence(5), EntryKind::Deletion, record(b"key", b""));
        memtable.insert(Sequence(9), EntryKind::Value, record(b"key", b"new"));
        memtable.insert(Sequence(4), EntryKind::Value, record(b"key\0", b"other"));
        assert_eq!(get(&memtable, b"key", 2), None);
        assert_eq!(get(&memtable, b"key", 3), Some(Some(b"old".to_vec())));
        assert_eq!(get(&memtable, b"key", 8), Some(None));
        assert_eq!(get(&memtable, b"key", 9), Some(Some(b"new".to_vec())));
        assert_eq!(get(&memtable, b"ke", 9), None);
        assert_eq!(get(&memtable, b"", 9), None);
        assert_eq!(memtable.entry_count(), 4);
        assert!(memtable.bytes() >= 4 * ENTRY_OVERHEAD_BYTES);
    }

    /// The keys of a walk, forwards or backwards.
    fn walk(memtable: &Memtable, is_forward: bool) -> Vec<Vec<u8>> {
        let mut iter = memtable.iter();
        if is_forward { iter.seek_to_first() } else { iter.seek_to_last() }.unwrap();
        let mut keys = Vec::new();
        while iter.valid() {
            keys.push(iter.key().to_vec());
            if is_forward { iter.next() } else { iter.prev() }.unwrap();
        }
        if !is_forward {
            keys.reverse();
        }
        keys
    }

    #[test]
    fn readers_find_everything_that_was_inserted_before_while_more_is() {
        use std::sync::atomic::Ordering::{Acquire, Release};
        let memtable = Memtable::new();
        let done = AtomicBool::new(false);
        let last = AtomicU64::new(0);
        let key_of = |sequence: u64| (sequence.wrapping_mul(0x9e37_79b9) % 5000).to_be_bytes();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for sequence in 1..=5000u64 {
                    let record = record(&key_of(sequence), b"v");
                    memtable.insert(Sequence(sequence), EntryKind::Value, record);
                    last.store(sequence, Release);
                }
                done.store(true, Release);
            });
            scope.spawn(|| {
                while !done.load(Acquire) {
                    let until = last.load(Acquire);
                    for sequence in until.saturating_sub(50).max(1)..=until {
                        assert!(get(&memtable, &key_of(sequence), sequence).is_some());
                    }
                }
            });
            scope.spawn(|| {
                while !done.load(Acquire) {
                    for is_forward in [true, false] {
                        let until = last.load(Acquire);
                        let keys = walk(&memtable, is_forward);
                        assert!(keys.is_sorted_by(|a, b| compare(a, b).is_lt()), "{is_forward}");
                        let old = |key: &&Vec<u8>| {
                            key::ParsedKey::parse(key).unwrap().sequence.0 <= until
                        };
                        let found = keys.iter().filter(old).count() as u64;
                        assert_eq!(found, until, "{is_forward}");
                    }
                }
            });
        });
    }

    #[test]
    fn keys_that_come_in_order_fill_their_leaves() {
        let memtable = Memtable::new();
        for sequence in 1..=3200u64 {
            let record = record(&sequence.to_be_bytes(), b"");
            memtable.insert(Sequence(sequence), EntryKind::Value, record);
        }
        assert!(memtable.others.len() <= 100, "{} leaves", memtable.others.len());
        assert_eq!(walk(&memtable, true).len(), 3200);
        assert_eq!(walk(&memtable, false), walk(&memtable, true));
    }

    /// Many keys, or so many versions of two that each takes several leaves.
    fn keys() -> impl Strategy<Value = (u8, u64)> {
        prop_oneof![(0u8..20, 0u64..60), (20u8..22, 0u64..200)]
    }

    proptest! {
        #[test]
        fn it_walks_like_a_sorted_list(
            entries in prop::collection::hash_map(keys(), any::<bool>(), 0..400),
            moves in prop::collection::vec(any::<Move>(), 0..100),
        ) {
            let memtable = Memtable::new();
            let mut model = Vec::new();
            for ((user, sequence), is_value) in entries {
                let kind = if is_value { EntryKind::Value } else { EntryKind::Deletion };
                let (key, value) = entry_of(&[user], sequence, kind);
                memtable.insert(Sequence(sequence), kind, record(&[user], &value));
                model.push((key, value));
            }
            model.sort_by(|a, b| compare(&a.0, &b.0));
            check_against_model(&mut memtable.iter(), &model, &moves)?;
        }
    }
}
