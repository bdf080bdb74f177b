//! One shard of the keydir: a hash table of 32-bit slots over an arena of entries.
//!
//! ```text
//! entry  location (three varints, see `Location`), varint key length, key
//! slot   0: free; else the entry's place in the arena in the low bits, and as many bits of the
//!        key's hash as there is room for above them, so that most wrong entries are passed over
//!        without a look at the arena
//! ```
//! A key of 32 bytes takes 32 + 1 for itself, about 7 for its location (8 from the 128th file on),
//! 4 / 0.57 to 4 / 0.85 for its slot, and less than 1 for what is left free in chunks: 45 to 48
//! bytes. Each further byte of key adds one. Collisions are resolved by linear probing, deletions
//! shift back what follows, and the table grows by half, so that it is never much larger than
//! needed.

use std::hash::BuildHasher;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;

use super::arena::Arena;
use super::location::{Location, MAX_ENCODED_BYTES, put_varint, take_varint};
use crate::{Error, Result};

const PLACE_BITS_MIN: u32 = 12;
/// Half a terabyte of keys in all shards together.
const PLACE_BITS_MAX: u32 = 31;
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
    arena: Arena,
    /// How many low bits of a slot are the entry's place.
    place_bits: u32,
    count: usize,
    garbage_bytes: usize,
    /// Tombstones were put in, which is done only while files are loaded.
    has_tombstones: bool,
    /// How long the last growth took, until somebody asks.
    growth: Option<Duration>,
}

/// An entry in the arena, taken apart.
struct Entry<'a> {
    location: Location,
    location_width: usize,
    key: &'a [u8],
    /// Of all of it.
    length: usize,
}

impl<'a> Entry<'a> {
    fn parse(bytes: &'a [u8]) -> Self {
        let (location, location_width) = Location::decode(bytes);
        let (key_length, width) = take_varint(&bytes[location_width..]);
        let key_start = location_width + width;
        #[expect(clippy::cast_possible_truncation, reason = "the length of a key in memory")]
        let length = key_start + key_length as usize;
        Self { location, location_width, key: &bytes[key_start..length], length }
    }
}

/// An entry that was looked for.
struct Found {
    slot: usize,
    place: usize,
    location: Location,
    location_width: usize,
    length: usize,
}

impl Default for Shard {
    fn default() -> Self {
        Self {
            slots: Box::default(),
            arena: Arena::default(),
            place_bits: PLACE_BITS_MIN,
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

    /// Everything allocated.
    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.len() * size_of::<u32>() + self.arena.memory_bytes()
    }

    pub(super) fn get(&self, hash: u64, key: &[u8]) -> Option<Location> {
        self.find(hash, key).map(|found| found.location)
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
        let Some(found) = self.find(hash, key) else {
            self.push(hasher, hash, key, location)?;
            return Ok(None);
        };
        if replace(found.location) {
            let place = &mut self.arena.at_mut(found.place)[..found.location_width];
            if !location.encode_into(place) {
                // The wider entry goes to the end of the arena, for which room is made first. That
                // may move everything, so the key is looked up anew.
                self.make_room(hasher, key.len())?;
                self.remove(hasher, hash, key);
                self.push(hasher, hash, key, location)?;
            }
        }
        Ok(Some(found.location))
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
        let found = self.find(hash, key)?;
        self.garbage_bytes += found.length;
        self.count -= 1;
        self.free_slot(hasher, found.slot);
        Some(found.location)
    }

    /// Every key and where it lies, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], Location)> {
        self.slots.iter().filter(|slot| **slot != 0).map(|slot| {
            let entry = self.entry(self.place(*slot));
            (entry.key, entry.location)
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
        let place_bits = self.place_bits_for(self.arena.end_after(0) + arena_bytes)?;
        let slots = (count * FULL_PARTS / FULL_COUNT + 1).max(self.slots.len());
        self.rebuild(hasher, slots, place_bits, false, |_| true);
        self.arena.reserve(arena_bytes);
        Ok(())
    }

    /// Removes tombstones, and room that was not needed.
    pub(super) fn finish_loading(&mut self, hasher: &RandomState) {
        let needed = (self.count * FULL_PARTS / FULL_COUNT + 1).max(SLOTS_MIN);
        let too_large = self.slots.len() > needed * 5 / 4;
        if self.has_tombstones || too_large {
            let slots = if too_large { needed } else { self.slots.len() };
            let collect = self.has_tombstones || self.garbage_bytes > 0;
            self.rebuild(hasher, slots, self.place_bits, collect, |at| !at.is_tombstone());
            self.has_tombstones = false;
        }
        self.growth = None;
    }

    /// Removes the entries whose location `keep` refuses.
    pub(super) fn retain(&mut self, hasher: &RandomState, keep: impl Fn(&Location) -> bool) {
        self.rebuild(hasher, self.slots.len(), self.place_bits, true, keep);
    }

    /// How long the last growth took; tells each once.
    pub(super) fn take_growth(&mut self) -> Option<Duration> {
        self.growth.take()
    }

    fn find(&self, hash: u64, key: &[u8]) -> Option<Found> {
        if self.slots.is_empty() {
            return None;
        }
        let wanted = self.slot_value(hash, 0) >> self.place_bits;
        let mut at = self.home(hash);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            if slot >> self.place_bits == wanted {
                let place = self.place(slot);
                let Entry { location, location_width, key: found, length } = self.entry(place);
                if found == key {
                    return Some(Found { slot: at, place, location, location_width, length });
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

    fn slot_value(&self, hash: u64, place: usize) -> u32 {
        let tag = ((hash >> 32) as u32) << self.place_bits;
        #[expect(clippy::cast_possible_truncation, reason = "below 2^place_bits: `make_room`")]
        let place = place as u32;
        tag | place
    }

    fn place(&self, slot: u32) -> usize {
        place_in(slot, self.place_bits)
    }

    fn entry(&self, place: usize) -> Entry<'_> {
        Entry::parse(self.arena.at(place))
    }

    /// Adds an entry for a key that has none.
    fn push(
        &mut self,
        hasher: &RandomState,
        hash: u64,
        key: &[u8],
        location: Location,
    ) -> Result<()> {
        self.make_room(hasher, key.len())?;
        let mut head = [0; MAX_HEAD_BYTES];
        let width = location.encode(&mut head);
        let width = width + put_varint(&mut head[width..], key.len() as u64);
        let place = self.arena.push([&head[..width], key]);
        self.fill_slot(hash, place);
        self.count += 1;
        Ok(())
    }

    fn fill_slot(&mut self, hash: u64, place: usize) {
        let mut at = self.home(hash);
        while self.slots[at] != 0 {
            at = self.next(at);
        }
        self.slots[at] = self.slot_value(hash, place);
    }

    /// Frees a slot and closes the gap: an entry behind it that would be found only by passing
    /// over the gap moves into it, which leaves another gap.
    fn free_slot(&mut self, hasher: &RandomState, slot: usize) {
        let (mut gap, mut at) = (slot, self.next(slot));
        while self.slots[at] != 0 {
            let home = self.home(hasher.hash_one(self.entry(self.place(self.slots[at])).key));
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
        let place_bits = self.place_bits_for(self.arena.end_after(key_length + MAX_HEAD_BYTES))?;
        let collect = self.garbage_bytes > self.arena.used_bytes() / GARBAGE_PART + 4_096;
        let full = self.count + 1 > self.slots.len() * FULL_COUNT / FULL_PARTS;
        let slots = if full {
            (self.slots.len() * 3 / 2).max(self.count + 2).max(SLOTS_MIN)
        } else {
            self.slots.len()
        };
        if full || collect || place_bits != self.place_bits {
            let began = Instant::now();
            self.rebuild(hasher, slots, place_bits, collect, |_| true);
            self.growth = Some(began.elapsed());
        }
        Ok(())
    }

    /// How many bits of a slot are needed to tell places in an arena of this length.
    fn place_bits_for(&self, arena_bytes: usize) -> Result<u32> {
        let mut place_bits = self.place_bits;
        while arena_bytes >> place_bits != 0 {
            place_bits += 1;
        }
        if place_bits > PLACE_BITS_MAX {
            return Err(Error::TooLarge {
                what: "keydir",
                size: arena_bytes as u64,
                limit: 1 << PLACE_BITS_MAX,
            });
        }
        Ok(place_bits)
    }

    /// Makes the table anew, and with `collect` the arena too, without its garbage.
    fn rebuild(
        &mut self,
        hasher: &RandomState,
        slots: usize,
        place_bits: u32,
        collect: bool,
        keep: impl Fn(&Location) -> bool,
    ) {
        let old_slots = std::mem::replace(&mut self.slots, vec![0; slots].into_boxed_slice());
        let old_place_bits = std::mem::replace(&mut self.place_bits, place_bits);
        let old_arena = std::mem::take(&mut self.arena);
        let has_garbage = self.garbage_bytes > 0;
        self.count = 0;
        let mut fresh = Arena::default();
        let mut add = |place: usize, bytes: &[u8]| {
            let entry = Entry::parse(bytes);
            if keep(&entry.location) {
                let hash = hasher.hash_one(entry.key);
                let place = if collect { fresh.push([&bytes[..entry.length], &[]]) } else { place };
                self.fill_slot(hash, place);
                self.count += 1;
            }
            entry.length
        };
        if has_garbage {
            for slot in old_slots.into_iter().filter(|slot| *slot != 0) {
                let place = place_in(slot, old_place_bits);
                add(place, old_arena.at(place));
            }
        } else {
            // Without garbage the entries lie end to end, and are found faster one after the other
            // than in the order of their slots.
            old_arena.for_each(add);
        }
        self.arena = if collect { fresh } else { old_arena };
        if collect {
            self.garbage_bytes = 0;
        }
    }
}

/// The place in the arena that a slot tells.
fn place_in(slot: u32, place_bits: u32) -> usize {
    (slot & ((1 << place_bits) - 1)) as usize
}
