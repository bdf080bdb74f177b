//! One shard of the keydir: a hash table of 32-bit slots over an arena of entries.
//!
//! ```text
//! entry  location (three varints, see `Location`), varint key length, key
//! slot   0: free; else the entry's place in the arena in the low bits, and as many bits of the
//!        key's hash as there is room for above them, so that most wrong entries are passed over
//!        without a look at the arena
//! ```
//! A key of 32 bytes takes 32 + 1 for itself, about 7 for its location, 4 / 0.68 to 4 / 0.85 for
//! its slot, and at most a sixteenth of the arena for growth: 46 to 49 bytes. Each further byte of
//! key adds one. Collisions are resolved by linear probing, deletions shift back what follows, and
//! the table grows by a quarter, so that it is never much larger than needed.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

use super::location::{Location, MAX_ENCODED_BYTES, put_varint, take_varint};
use crate::{Error, Result};

/// The first byte of the arena is not used, so that no entry lies at 0.
const ARENA_START: usize = 1;
const OFFSET_BITS_MIN: u32 = 12;
/// Half a terabyte of keys in all shards together.
const OFFSET_BITS_MAX: u32 = 31;
/// The most bytes of an entry before its key.
const MAX_HEAD_BYTES: usize = MAX_ENCODED_BYTES + 10;
const SLOTS_MIN: usize = 8;
/// Garbage in the arena is collected when it is over one part in this many.
const GARBAGE_PART: usize = 8;

/// See the module.
#[derive(Debug)]
pub(super) struct Shard {
    slots: Box<[u32]>,
    arena: Vec<u8>,
    /// How many low bits of a slot are the entry's place.
    offset_bits: u32,
    count: usize,
    garbage_bytes: usize,
}

/// An entry in the arena, taken apart.
struct Entry {
    at: usize,
    location: Location,
    location_width: usize,
    key_start: usize,
    key_end: usize,
}

impl Shard {
    pub(super) fn new() -> Self {
        Self {
            slots: Box::default(),
            arena: Vec::new(),
            offset_bits: OFFSET_BITS_MIN,
            count: 0,
            garbage_bytes: 0,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// What the arena holds that is not garbage.
    fn entry_bytes(&self) -> usize {
        self.arena.len() - self.garbage_bytes
    }

    /// Everything allocated.
    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.len() * size_of::<u32>() + self.arena.capacity()
    }

    pub(super) fn get(&self, hash: u64, key: &[u8]) -> Option<Location> {
        self.find(hash, key).map(|(_, entry)| entry.location)
    }

    /// Sets where `key` lies and returns where it lay, unless `replace` says, asked about that,
    /// that it is to stay.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the shard is full; nothing is changed.
    pub(super) fn insert(
        &mut self,
        hasher: &RandomState,
        hash: u64,
        key: &[u8],
        location: Location,
        replace: impl FnOnce(Location) -> bool,
    ) -> Result<Option<Location>> {
        let Some((_, entry)) = self.find(hash, key) else {
            self.make_room(hasher, key.len())?;
            let offset = self.push_entry(key, location);
            self.fill_slot(hash, offset);
            self.count += 1;
            return Ok(None);
        };
        if !replace(entry.location) {
            return Ok(Some(entry.location));
        }
        let place = entry.at..entry.at + entry.location_width;
        if !location.encode_into(&mut self.arena[place]) {
            // The wider entry goes to the end of the arena, where `make_room` first makes room.
            // That may move everything, so the key is looked up anew.
            self.make_room(hasher, key.len())?;
            self.remove(hasher, hash, key);
            let offset = self.push_entry(key, location);
            self.fill_slot(hash, offset);
            self.count += 1;
        }
        Ok(Some(entry.location))
    }

    /// Removes `key` and returns where it lay.
    pub(super) fn remove(
        &mut self,
        hasher: &RandomState,
        hash: u64,
        key: &[u8],
    ) -> Option<Location> {
        let (slot, entry) = self.find(hash, key)?;
        self.garbage_bytes += entry.key_end - entry.at;
        self.count -= 1;
        self.free_slot(hasher, slot);
        Some(entry.location)
    }

    /// Every key and where it lies, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], Location)> {
        self.slots.iter().filter(|slot| **slot != 0).map(|slot| {
            let entry = self.entry(self.offset(*slot));
            (&self.arena[entry.key_start..entry.key_end], entry.location)
        })
    }

    /// Removes the entries whose location `keep` refuses.
    pub(super) fn retain(&mut self, hasher: &RandomState, keep: impl Fn(&Location) -> bool) {
        let (slots, offset_bits) = (self.slots.len(), self.offset_bits);
        let refused = |(_, location): &(&[u8], Location)| !keep(location);
        let count = self.iter().filter(refused).count();
        if count > 0 {
            self.rebuild(hasher, slots, offset_bits, true, keep);
        }
    }

    fn find(&self, hash: u64, key: &[u8]) -> Option<(usize, Entry)> {
        if self.slots.is_empty() {
            return None;
        }
        let wanted = self.slot_value(hash, 0) >> self.offset_bits;
        let mut at = self.home(hash);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            if slot >> self.offset_bits == wanted {
                let entry = self.entry(self.offset(slot));
                if self.arena[entry.key_start..entry.key_end] == *key {
                    return Some((at, entry));
                }
            }
            at = self.next(at);
        }
    }

    /// The slot that a key of this hash would best have.
    fn home(&self, hash: u64) -> usize {
        let low = hash & u64::from(u32::MAX);
        ((low * self.slots.len() as u64) >> 32) as usize
    }

    fn next(&self, slot: usize) -> usize {
        if slot + 1 == self.slots.len() { 0 } else { slot + 1 }
    }

    fn slot_value(&self, hash: u64, offset: usize) -> u32 {
        let tag = ((hash >> 32) as u32) << self.offset_bits;
        #[expect(clippy::cast_possible_truncation, reason = "below 2^offset_bits: `make_room`")]
        let offset = offset as u32;
        tag | offset
    }

    fn offset(&self, slot: u32) -> usize {
        (slot & ((1 << self.offset_bits) - 1)) as usize
    }

    fn entry(&self, at: usize) -> Entry {
        let (location, location_width) = Location::decode(&self.arena[at..]);
        let (key_length, width) = take_varint(&self.arena[at + location_width..]);
        let key_start = at + location_width + width;
        #[expect(clippy::cast_possible_truncation, reason = "the length of a key in memory")]
        let key_end = key_start + key_length as usize;
        Entry { at, location, location_width, key_start, key_end }
    }

    /// Appends an entry; `make_room` was called for it.
    fn push_entry(&mut self, key: &[u8], location: Location) -> usize {
        let mut head = [0; MAX_HEAD_BYTES];
        let mut encoded = [0; MAX_ENCODED_BYTES];
        let width = location.encode(&mut encoded);
        head[..width].copy_from_slice(&encoded[..width]);
        let width = width + put_varint(&mut head[width..], key.len() as u64);
        let at = self.arena.len();
        self.arena.extend_from_slice(&head[..width]);
        self.arena.extend_from_slice(key);
        at
    }

    fn fill_slot(&mut self, hash: u64, offset: usize) {
        let mut at = self.home(hash);
        while self.slots[at] != 0 {
            at = self.next(at);
        }
        self.slots[at] = self.slot_value(hash, offset);
    }

    /// Frees a slot and closes the gap: an entry behind it that would be found only by passing
    /// over the gap moves into it, which leaves another gap.
    fn free_slot(&mut self, hasher: &RandomState, slot: usize) {
        let (mut gap, mut at) = (slot, self.next(slot));
        while self.slots[at] != 0 {
            let entry = self.entry(self.offset(self.slots[at]));
            let home = self.home(hasher.hash_one(&self.arena[entry.key_start..entry.key_end]));
            let passes_gap =
                if gap <= at { home <= gap || home > at } else { home <= gap && home > at };
            if passes_gap {
                self.slots[gap] = self.slots[at];
                gap = at;
            }
            at = self.next(at);
        }
        self.slots[gap] = 0;
    }

    /// Makes sure that a new entry for a key of this length has a slot and a place in the arena.
    fn make_room(&mut self, hasher: &RandomState, key_length: usize) -> Result<()> {
        let entry_bytes = key_length + MAX_HEAD_BYTES;
        let collect = self.garbage_bytes > self.arena.len() / GARBAGE_PART + 4_096;
        let arena_needed = self.arena.len().max(ARENA_START) + entry_bytes
            - if collect { self.garbage_bytes } else { 0 };
        let mut offset_bits = self.offset_bits;
        while arena_needed >> offset_bits != 0 {
            offset_bits += 1;
        }
        if offset_bits > OFFSET_BITS_MAX {
            return Err(Error::TooLarge {
                what: "keydir",
                size: arena_needed as u64,
                limit: 1 << OFFSET_BITS_MAX,
            });
        }
        let full = self.count + 1 > self.slots.len() * 17 / 20;
        let slots = if full {
            (self.slots.len() * 5 / 4).max(self.count + 2).max(SLOTS_MIN)
        } else {
            self.slots.len()
        };
        if full || collect || offset_bits != self.offset_bits {
            self.rebuild(hasher, slots, offset_bits, collect, |_| true);
        }
        if self.arena.is_empty() {
            self.arena.push(0);
        }
        if self.arena.capacity() - self.arena.len() < entry_bytes {
            self.arena.reserve_exact(entry_bytes.max(self.arena.len() / 16));
        }
        Ok(())
    }

    /// Makes the table anew, and with `collect` the arena too, without its garbage.
    fn rebuild(
        &mut self,
        hasher: &RandomState,
        slots: usize,
        offset_bits: u32,
        collect: bool,
        keep: impl Fn(&Location) -> bool,
    ) {
        let entries = self.entry_offsets();
        self.slots = vec![0; slots].into_boxed_slice();
        self.offset_bits = offset_bits;
        self.count = 0;
        let mut arena = Vec::new();
        if collect {
            arena.reserve_exact(self.entry_bytes() + self.entry_bytes() / 16);
            arena.push(0);
        }
        for at in entries {
            let entry = self.entry(at);
            if !keep(&entry.location) {
                continue;
            }
            let hash = hasher.hash_one(&self.arena[entry.key_start..entry.key_end]);
            let offset = if collect { arena.len() } else { at };
            if collect {
                arena.extend_from_slice(&self.arena[at..entry.key_end]);
            }
            self.fill_slot(hash, offset);
            self.count += 1;
        }
        if collect {
            self.arena = arena;
            self.garbage_bytes = 0;
        }
    }

    /// Where the entries are. Without garbage they lie end to end, and are found faster one after
    /// the other than in the order of their slots.
    fn entry_offsets(&self) -> Vec<usize> {
        let mut offsets = Vec::with_capacity(self.count);
        if self.garbage_bytes > 0 {
            offsets.extend(self.slots.iter().filter(|slot| **slot != 0).map(|&s| self.offset(s)));
            return offsets;
        }
        let mut at = ARENA_START;
        while at < self.arena.len() {
            offsets.push(at);
            at = self.entry(at).key_end;
        }
        offsets
    }
}
