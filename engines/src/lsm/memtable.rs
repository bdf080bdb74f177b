//! The write buffer: every entry since the last freeze, sorted, readable while it grows.
//!
//! Entries are not copied apart: each one points into the record that was written to the log
//! (`key length, key, value length, value`, see `batch.rs`), which lives in memory as long as an
//! entry needs it. Beside that an entry keeps the first 16 bytes of its key as a number, so that
//! most comparisons of a search touch no second cache line.
//!
//! The map itself is hidden here: readers see [`Memtable::get`] and [`MemtableIter`] only.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;
use crossbeam_skiplist::SkipMap;
use crossbeam_skiplist::map::Entry as MapEntry;

use super::iterator::InternalIterator;
use super::key::{self, EntryKind, SEEK_KIND, Sequence};
use crate::Result;

/// What an entry costs beside its record: the node of the map (entry, tower, counters) and what
/// the allocator rounds up.
const ENTRY_OVERHEAD_BYTES: usize = 128;

/// A sorted set of entries. Any number of threads read and insert; nothing is ever taken out.
#[derive(Default)]
pub(crate) struct Memtable {
    map: SkipMap<Entry, ()>,
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
        let entry = Entry { prefix: prefix(record.key()), tag: key::tag(sequence, kind), record };
        self.map.insert(entry, ());
        self.bytes.fetch_add(size, Relaxed);
        self.count.fetch_add(1, Relaxed);
    }

    /// The newest entry of `user_key` at or before `sequence`: `None` if there is none here; a
    /// value is lent to `read`.
    pub(crate) fn get(
        &self,
        user_key: &[u8],
        sequence: Sequence,
        read: &mut dyn FnMut(&[u8]),
    ) -> Option<EntryKind> {
        let target = SearchKey::new(user_key, key::tag(sequence, SEEK_KIND));
        let found = self.map.lower_bound::<dyn Sorted>(Bound::Included(&target))?;
        let entry = found.key();
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
        MemtableIter { memtable: self, entry: None, key: Vec::new() }
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
    entry: Option<MapEntry<'a, Entry, ()>>,
    /// The internal key of `entry`: the map keeps user key and tag apart.
    key: Vec<u8>,
}

impl<'a> MemtableIter<'a> {
    fn stand_on(&mut self, entry: Option<MapEntry<'a, Entry, ()>>) {
        self.key.clear();
        if let Some(entry) = &entry {
            self.key.extend_from_slice(entry.key().record.key());
            self.key.extend_from_slice(&entry.key().tag.to_le_bytes());
        }
        self.entry = entry;
    }
}

impl InternalIterator for MemtableIter<'_> {
    fn valid(&self) -> bool {
        self.entry.is_some()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.stand_on(self.memtable.map.front());
        Ok(())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.stand_on(self.memtable.map.back());
        Ok(())
    }

    fn seek(&mut self, internal_key: &[u8]) -> Result<()> {
        let target = SearchKey::parse(internal_key);
        self.stand_on(self.memtable.map.lower_bound::<dyn Sorted>(Bound::Included(&target)));
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        let next = self.entry.as_ref().and_then(MapEntry::next);
        self.stand_on(next);
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        let previous = self.entry.as_ref().and_then(MapEntry::prev);
        self.stand_on(previous);
        Ok(())
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn value(&self) -> &[u8] {
        self.entry.as_ref().map_or(&[], |entry| entry.key().record.value())
    }
}

/// What the map sorts.
struct Entry {
    prefix: u128,
    tag: u64,
    record: Record,
}

impl Entry {
    fn kind(&self) -> EntryKind {
        if self.tag & 0xff == EntryKind::Deletion as u64 {
            EntryKind::Deletion
        } else {
            EntryKind::Value
        }
    }
}

/// The first bytes of a key as a number that sorts like them; a shorter key is filled up with
/// zeros, so equal numbers decide nothing and different ones everything. Half as many bytes tell too
/// few keys apart that start alike, such as `user` and a number.
pub(crate) fn prefix(user_key: &[u8]) -> u128 {
    if let Some(head) = user_key.first_chunk::<16>() {
        return u128::from_be_bytes(*head);
    }
    let mut head = [0; 16];
    head[..user_key.len()].copy_from_slice(user_key);
    u128::from_be_bytes(head)
}

/// What entries are compared by; lets the map be searched without building an entry.
trait Sorted {
    fn parts(&self) -> (u128, &[u8], u64);
}

struct SearchKey<'a> {
    prefix: u128,
    user_key: &'a [u8],
    tag: u64,
}

impl<'a> SearchKey<'a> {
    fn new(user_key: &'a [u8], tag: u64) -> Self {
        Self { prefix: prefix(user_key), user_key, tag }
    }

    /// What is too short to have a tag sorts as [`key::compare`] has it: tag 0.
    fn parse(internal_key: &'a [u8]) -> Self {
        match internal_key.split_last_chunk::<{ key::TAG_BYTES }>() {
            Some((user_key, tag)) => Self::new(user_key, u64::from_le_bytes(*tag)),
            None => Self::new(internal_key, 0),
        }
    }
}

impl Sorted for SearchKey<'_> {
    fn parts(&self) -> (u128, &[u8], u64) {
        (self.prefix, self.user_key, self.tag)
    }
}

impl Sorted for Entry {
    fn parts(&self) -> (u128, &[u8], u64) {
        (self.prefix, self.record.key(), self.tag)
    }
}

fn order(left: (u128, &[u8], u64), right: (u128, &[u8], u64)) -> Ordering {
    left.0.cmp(&right.0).then_with(|| left.1.cmp(right.1)).then_with(|| right.2.cmp(&left.2))
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        // The prefix alone decides most of the time: look no further then.
        self.prefix.cmp(&other.prefix).then_with(|| order(self.parts(), other.parts()))
    }
}

impl<'a> Borrow<dyn Sorted + 'a> for Entry {
    fn borrow(&self) -> &(dyn Sorted + 'a) {
        self
    }
}

impl PartialEq for dyn Sorted + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for dyn Sorted + '_ {}

impl PartialOrd for dyn Sorted + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn Sorted + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        order(self.parts(), other.parts())
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

    #[test]
    fn prefixes_sort_as_the_keys_do() {
        let long: &[u8] = b"abcdefghabcdefgh";
        let longer: &[u8] = b"abcdefghabcdefghi";
        let keys: [&[u8]; 8] = [b"", b"\0", b"\0\0", b"a", b"a\0", long, longer, b"b"];
        for pair in keys.windows(2) {
            assert!(prefix(pair[0]) <= prefix(pair[1]), "{pair:?}");
        }
        assert_eq!(prefix(b"\x01\x02"), 0x0102 << 112);
    }

    #[test]
    fn readers_find_everything_that_was_inserted_before_while_more_is() {
        let memtable = Memtable::new();
        let done = AtomicBool::new(false);
        let last = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for sequence in 1..=5000u64 {
                    let key = (sequence.wrapping_mul(0x9e37_79b9) % 5000).to_be_bytes();
                    memtable.insert(Sequence(sequence), EntryKind::Value, record(&key, b"v"));
                    last.store(sequence, std::sync::atomic::Ordering::Release);
                }
                done.store(true, std::sync::atomic::Ordering::Release);
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(std::sync::atomic::Ordering::Acquire) {
                        let sequence = last.load(std::sync::atomic::Ordering::Acquire);
                        let key = (sequence.wrapping_mul(0x9e37_79b9) % 5000).to_be_bytes();
                        assert!(sequence == 0 || get(&memtable, &key, sequence).is_some());
                    }
                });
            }
        });
    }

    proptest! {
        #[test]
        fn it_walks_like_a_sorted_list(
            entries in prop::collection::btree_map((0u8..20, 0u64..50), any::<bool>(), 0..60),
            moves in prop::collection::vec(any::<Move>(), 0..60),
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
