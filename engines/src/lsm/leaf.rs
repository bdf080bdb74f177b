//! Some entries of a memtable that follow one another, in the order in which they came.
//!
//! One writer at a time appends, any number of readers look through what is there: an entry counts
//! once the count says so. Nothing is ever moved or taken out. A full leaf is replaced by two, of
//! which the first knows where it ends now: who still holds the old one misses nothing that was in
//! it, and who comes to the first one for what is in the second is told so (Lehman and Yao, 1981).

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use super::key::{self, EntryKind};
use super::memtable::Record;

/// Fewer make a larger index, more take longer to look through.
const LEAF_ENTRIES: usize = 32;

/// See the module.
#[derive(Default)]
pub(super) struct Leaf {
    count: AtomicUsize,
    /// The first bytes of the keys: mostly all that is looked at.
    prefixes: [Prefix; LEAF_ENTRIES],
    entries: [OnceLock<Entry>; LEAF_ENTRIES],
    /// Larger than every entry; the smallest one of the next leaf.
    end: Option<Place>,
}

/// The first bytes of a key, see [`prefix`], in halves.
#[derive(Default)]
struct Prefix {
    high: AtomicU64,
    low: AtomicU64,
}

impl Prefix {
    #[expect(clippy::cast_possible_truncation, reason = "the halves")]
    fn store(&self, prefix: u128) {
        self.high.store((prefix >> u64::BITS) as u64, Relaxed);
        self.low.store(prefix as u64, Relaxed);
    }

    fn load(&self) -> u128 {
        u128::from(self.high.load(Relaxed)) << u64::BITS | u128::from(self.low.load(Relaxed))
    }
}

/// What a leaf holds.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) tag: u64,
    pub(super) record: Record,
}

impl Entry {
    pub(super) fn sort_key(&self) -> SortKey<'_> {
        SortKey::new(self.record.key(), self.tag)
    }

    pub(super) fn kind(&self) -> EntryKind {
        if self.tag & 0xff == EntryKind::Deletion as u64 {
            EntryKind::Deletion
        } else {
            EntryKind::Value
        }
    }
}

/// What entries are sorted by.
#[derive(Debug, Clone, Copy)]
pub(super) struct SortKey<'a> {
    prefix: u128,
    user_key: &'a [u8],
    tag: u64,
}

impl<'a> SortKey<'a> {
    pub(super) fn new(user_key: &'a [u8], tag: u64) -> Self {
        Self { prefix: prefix(user_key), user_key, tag }
    }

    /// What is too short to have a tag sorts as [`key::compare`] has it: tag 0.
    pub(super) fn parse(internal_key: &'a [u8]) -> Self {
        match internal_key.split_last_chunk::<{ key::TAG_BYTES }>() {
            Some((user_key, tag)) => Self::new(user_key, u64::from_le_bytes(*tag)),
            None => Self::new(internal_key, 0),
        }
    }
}

impl Ord for SortKey<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.prefix.cmp(&other.prefix))
            .then_with(|| self.user_key.cmp(other.user_key))
            .then_with(|| other.tag.cmp(&self.tag))
    }
}

impl PartialOrd for SortKey<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for SortKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for SortKey<'_> {}

/// Where an entry is, for as long as one likes.
#[derive(Debug, Clone)]
pub(super) struct Place {
    prefix: u128,
    entry: Entry,
}

impl Place {
    fn new(entry: Entry) -> Self {
        Self { prefix: prefix(entry.record.key()), entry }
    }

    pub(super) fn sort_key(&self) -> SortKey<'_> {
        let Entry { tag, record } = &self.entry;
        SortKey { prefix: self.prefix, user_key: record.key(), tag: *tag }
    }
}

/// Lets the map be searched without building what it holds.
pub(super) trait Sorted {
    fn sort_key(&self) -> SortKey<'_>;
}

impl Sorted for SortKey<'_> {
    fn sort_key(&self) -> SortKey<'_> {
        *self
    }
}

impl Sorted for Place {
    fn sort_key(&self) -> SortKey<'_> {
        self.sort_key()
    }
}

impl<'a> Borrow<dyn Sorted + 'a> for Place {
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
        self.sort_key().cmp(&other.sort_key())
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Place {}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        self.sort_key().cmp(&other.sort_key())
    }
}

impl Leaf {
    /// Of at most [`LEAF_ENTRIES`] entries.
    fn of(entries: &[&Entry], end: Option<Place>) -> Self {
        let leaf = Self { end, ..Self::default() };
        for entry in entries {
            leaf.push(Entry::clone(entry));
        }
        leaf
    }

    pub(super) fn end(&self) -> Option<&Place> {
        self.end.as_ref()
    }

    /// Appends an entry; hands it back if there is no room. One caller at a time.
    pub(super) fn push(&self, entry: Entry) -> Option<Entry> {
        let at = self.count.load(Relaxed);
        let (Some(prefix_at), Some(entry_at)) = (self.prefixes.get(at), self.entries.get(at))
        else {
            return Some(entry);
        };
        prefix_at.store(prefix(entry.record.key()));
        let set = entry_at.set(entry);
        debug_assert!(set.is_ok(), "two inserted at once");
        self.count.store(at + 1, Release);
        None
    }

    /// The same entries and `next` in two leaves, and where the second begins. Where keys come in
    /// order the first stays full.
    pub(super) fn split(&self, next: &Entry) -> (Self, Place, Self) {
        let mut entries: Vec<_> = self.sorted().into_iter().map(|at| self.entry(at)).collect();
        let at = entries.partition_point(|entry| entry.sort_key() < next.sort_key());
        let is_last = at == entries.len() && self.end.is_none();
        entries.insert(at, next);
        let (lower, upper) = entries.split_at(if is_last { at } else { entries.len() / 2 });
        let start = Place::new(Entry::clone(upper[0]));
        (Self::of(lower, Some(start.clone())), start, Self::of(upper, self.end.clone()))
    }

    /// The entry that was the `at`th to come.
    pub(super) fn entry(&self, at: usize) -> &Entry {
        match self.entries[at].get() {
            Some(entry) => entry,
            None => unreachable!("it was counted after it was set"),
        }
    }

    /// The smallest entry that is not smaller than `target`.
    pub(super) fn first_from(&self, target: SortKey<'_>) -> Option<usize> {
        let mut first: Option<(usize, SortKey<'_>)> = None;
        for (at, prefix) in self.prefixes() {
            let is_first = first.is_none_or(|(_, first)| self.is_before(at, prefix, first));
            if is_first && !self.is_before(at, prefix, target) {
                first = Some((at, self.sort_key(at)));
            }
        }
        first.map(|(at, _)| at)
    }

    /// The largest entry that is smaller than `limit`.
    pub(super) fn last_before(&self, limit: SortKey<'_>) -> Option<usize> {
        let mut last: Option<(usize, SortKey<'_>)> = None;
        for (at, prefix) in self.prefixes() {
            let is_last = last.is_none_or(|(_, last)| !self.is_before(at, prefix, last));
            if is_last && self.is_before(at, prefix, limit) {
                last = Some((at, self.sort_key(at)));
            }
        }
        last.map(|(at, _)| at)
    }

    /// All entries, in order.
    pub(super) fn sorted(&self) -> Vec<usize> {
        let mut keys: Vec<_> = self.prefixes().map(|(at, _)| (self.sort_key(at), at)).collect();
        keys.sort_unstable();
        keys.into_iter().map(|(_, at)| at).collect()
    }

    pub(super) fn sort_key(&self, at: usize) -> SortKey<'_> {
        let Entry { tag, record } = self.entry(at);
        SortKey { prefix: self.prefixes[at].load(), user_key: record.key(), tag: *tag }
    }

    /// Looks at the entry itself only if its prefix does not decide.
    fn is_before(&self, at: usize, prefix: u128, other: SortKey<'_>) -> bool {
        prefix < other.prefix || prefix == other.prefix && self.sort_key(at) < other
    }

    fn prefixes(&self) -> impl Iterator<Item = (usize, u128)> {
        let count = self.count.load(Acquire);
        self.prefixes[..count].iter().map(Prefix::load).enumerate()
    }
}

/// The first bytes of a key as a number that sorts like them; a shorter key is filled up with
/// zeros, so equal numbers decide nothing and different ones everything. Half as many bytes tell too
/// few keys apart that start alike, such as `user` and a number.
pub(super) fn prefix(user_key: &[u8]) -> u128 {
    if let Some(head) = user_key.first_chunk::<16>() {
        return u128::from_be_bytes(*head);
    }
    let mut head = [0; 16];
    head[..user_key.len()].copy_from_slice(user_key);
    u128::from_be_bytes(head)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
