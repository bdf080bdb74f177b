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
use std::time::{Duration, Instant};

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
/// The table is full when so many of so many parts of its slots are taken.
const FULL_COUNT: usize = 17;
const FULL_PARTS: usize = 20;
/// What an entry takes besides its key, for making room ahead.
const TYPICAL_HEAD_BYTES: usize = 8;
/// Garbage in the arena is collected when it is over one part in this many.
const GARBAGE_PART: usize = 8;

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Shard {
    slots: Box<[u32]>,
    arena: Vec<u8>,
    /// How many low bits of a slot are the entry's place.
    offset_bits: u32,
    count: usize,
    garbage_bytes: usize,
    /// Tombstones were put in, which is done only while files are loaded.
    has_tombstones: bool,
    /// How long the last growth took, until somebody asks.
    growth: Option<Duration>,
}

/// An entry in the arena, taken apart.
struct Entry {
    at: usize,
    location: Location,
    location_width: usize,
    key_start: usize,
    key_end: usize,
}

impl Default for Shard {
    fn default() -> Self {
        Self {
            slots: Box::default(),
            arena: Vec::new(),
            offset_bits: OFFSET_BITS_MIN,
            count: 0,
            garbage_bytes: 0,
            has_tombstones: false,
            growth: None,
        }
    }
}

impl Shard {
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

    /// Sets where `key` lies if it did not lie in a newer place; returns the older of two places.
    pub(super) fn insert_if_newer(
        &mut self,
        hasher: &RandomState,
        hash: u64,
        key: &[u8],
        location: Location,
    ) -> Result<Option<Location>> {
        self.has_tombstones |= location.is_tombstone();
        let old = self.insert(hasher, hash, key, location, |old| old < location)?;
        Ok(old.map(|old| old.min(location)))
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

    /// Makes room for so many more keys of so many bytes in all.
    pub(super) fn reserve(
        &mut self,
        hasher: &RandomState,
        count: usize,
        key_bytes: usize,
    ) -> Result<()> {
        // Keys do not spread evenly: this many more fit into all shards but a few.
        let count = self.count + count + 2 * count.isqrt();
        let arena_bytes = key_bytes + key_bytes / 64 + count * TYPICAL_HEAD_BYTES;
        let offset_bits = self.offset_bits_for(self.arena.len() + arena_bytes)?;
        let slots = (count * FULL_PARTS / FULL_COUNT + 1).max(self.slots.len());
        self.rebuild(hasher, slots, offset_bits, false, |_| true);
        self.arena.reserve_exact(arena_bytes);
        Ok(())
    }

    /// Removes tombstones, and room that was not needed.
    pub(super) fn finish_loading(&mut self, hasher: &RandomState) {
        let needed = (self.count * FULL_PARTS / FULL_COUNT + 1).max(SLOTS_MIN);
        let too_large = self.slots.len() > needed * 5 / 4;
        if self.has_tombstones || too_large {
            let slots = if too_large { needed } else { self.slots.len() };
            let collect = self.has_tombstones || self.garbage_bytes > 0;
            self.rebuild(hasher, slots, self.offset_bits, collect, |at| !at.is_tombstone());
            self.has_tombstones = false;
        }
        if self.arena.capacity() > self.arena.len() + self.arena.len() / 16 {
            self.arena.shrink_to(self.arena.len() + self.arena.len() / 32);
        }
        self.growth = None;
    }

    /// How long the last growth took; tells each once.
    pub(super) fn take_growth(&mut self) -> Option<Duration> {
        self.growth.take()
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
        offset_in(slot, self.offset_bits)
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
        let offset_bits = self.offset_bits_for(arena_needed)?;
        let full = self.count + 1 > self.slots.len() * FULL_COUNT / FULL_PARTS;
        let slots = if full {
            (self.slots.len() * 5 / 4).max(self.count + 2).max(SLOTS_MIN)
        } else {
            self.slots.len()
        };
        if full || collect || offset_bits != self.offset_bits {
            let began = Instant::now();
            self.rebuild(hasher, slots, offset_bits, collect, |_| true);
            self.growth = Some(began.elapsed());
        }
        if self.arena.is_empty() {
            self.arena.push(0);
        }
        if self.arena.capacity() - self.arena.len() < entry_bytes {
            self.arena.reserve_exact(entry_bytes.max(self.arena.len() / 16));
        }
        Ok(())
    }

    /// How many bits of a slot are needed to tell places in an arena of this length.
    fn offset_bits_for(&self, arena_bytes: usize) -> Result<u32> {
        let mut offset_bits = self.offset_bits;
        while arena_bytes >> offset_bits != 0 {
            offset_bits += 1;
        }
        if offset_bits > OFFSET_BITS_MAX {
            return Err(Error::TooLarge {
                what: "keydir",
                size: arena_bytes as u64,
                limit: 1 << OFFSET_BITS_MAX,
            });
        }
        Ok(offset_bits)
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
        let old_slots = std::mem::replace(&mut self.slots, vec![0; slots].into_boxed_slice());
        let old_offset_bits = std::mem::replace(&mut self.offset_bits, offset_bits);
        self.count = 0;
        let mut fresh = Vec::new();
        if collect {
            fresh.reserve_exact(self.entry_bytes() + self.entry_bytes() / 16);
            fresh.push(0);
        }
        let mut place = |shard: &mut Self, at: usize| {
            let entry = shard.entry(at);
            if keep(&entry.location) {
                let hash = hasher.hash_one(&shard.arena[entry.key_start..entry.key_end]);
                let offset = if collect { fresh.len() } else { at };
                if collect {
                    fresh.extend_from_slice(&shard.arena[at..entry.key_end]);
                }
                shard.fill_slot(hash, offset);
                shard.count += 1;
            }
            entry.key_end
        };
        if self.garbage_bytes > 0 {
            for slot in old_slots.into_iter().filter(|slot| *slot != 0) {
                place(self, offset_in(slot, old_offset_bits));
            }
        } else {
            // Without garbage the entries lie end to end, and are found faster one after the other
            // than in the order of their slots.
            let mut at = ARENA_START;
            while at < self.arena.len() {
                at = place(self, at);
            }
        }
        if collect {
            self.arena = fresh;
            self.garbage_bytes = 0;
        }
    }
}

/// The place in the arena that a slot tells.
fn offset_in(slot: u32, offset_bits: u32) -> usize {
    (slot & ((1 << offset_bits) - 1)) as usize
}
