//! The keydir: every live key in memory, and where its newest record lies.
//!
//! Keys are spread over shards, each behind a lock of its own that is held for a look-up or a
//! change in memory only, never across I/O: readers do not wait for the writer's disk.

mod arena;
mod location;
mod shard;

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;
use parking_lot::RwLock;

use crate::Result;
use shard::Shard;

pub(super) use location::Location;

/// Few enough that an empty keydir is small, enough that a shard of a keydir with many millions of
/// entries grows within a millisecond.
pub(super) const SHARD_COUNT: usize = 256;

/// See the module.
#[derive(Debug)]
pub(super) struct Keydir {
    shards: Box<[RwLock<Arc<Shard>>]>,
    /// Seeded at random, so that nobody can choose keys that collide.
    hasher: RandomState,
    longest_growth_us: AtomicU64,
}

/// The hash of a key, by the seed of one keydir.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyHash(u64);

impl KeyHash {
    /// The shard that the key belongs to: by the top bits. The shard itself uses the others.
    pub(super) fn shard(self) -> usize {
        (self.0 >> 56) as usize
    }
}

const _: () = assert!(SHARD_COUNT == 1 << 8, "the shard is chosen by eight bits");

impl Keydir {
    pub(super) fn new() -> Self {
        let shards = (0..SHARD_COUNT).map(|_| RwLock::default()).collect();
        Self { shards, hasher: RandomState::default(), longest_growth_us: AtomicU64::new(0) }
    }

    /// Where `key` lies.
    pub(super) fn get(&self, key: &[u8]) -> Option<Location> {
        let hash = self.hash(key);
        self.shards[hash.shard()].read().get(hash.0, key)
    }

    /// Sets where `key` lies and returns where it lay.
    ///
    /// # Errors
    /// [`Error::TooLarge`](crate::Error::TooLarge) if the keydir is full.
    pub(super) fn insert(&self, key: &[u8], location: Location) -> Result<Option<Location>> {
        let hash = self.hash(key);
        self.change(hash, |shard| shard.insert(&self.hasher, hash.0, key, location, |_| true))
    }

    /// Sets where `key` lies if it did not lie in a newer place: files may be loaded in any order.
    /// Returns the older of two places, which counts no more.
    pub(super) fn insert_if_newer(
        &self,
        key: &[u8],
        location: Location,
    ) -> Result<Option<Location>> {
        let hash = self.hash(key);
        self.change(hash, |shard| shard.insert_if_newer(&self.hasher, hash.0, key, location))
    }

    /// The same for many keys of one shard.
    pub(super) fn insert_all_if_newer<'a>(
        &self,
        shard: usize,
        entries: impl Iterator<Item = (KeyHash, &'a [u8], Location)>,
        mut older: impl FnMut(Location),
    ) -> Result<()> {
        let mut guard = self.shards[shard].write();
        let shard = Arc::make_mut(&mut guard);
        for (hash, key, location) in entries {
            if let Some(loser) = shard.insert_if_newer(&self.hasher, hash.0, key, location)? {
                older(loser);
            }
        }
        Ok(())
    }

    /// Moves `key` if it still lies at `from`; says whether it did.
    pub(super) fn relocate(&self, key: &[u8], from: Location, to: Location) -> Result<bool> {
        let hash = self.hash(key);
        self.change(hash, |shard| {
            if shard.get(hash.0, key) != Some(from) {
                return Ok(false);
            }
            shard.insert(&self.hasher, hash.0, key, to, |_| true).map(|_| true)
        })
    }

    /// Removes `key` and returns where it lay.
    pub(super) fn remove(&self, key: &[u8]) -> Option<Location> {
        let hash = self.hash(key);
        self.change(hash, |shard| shard.remove(&self.hasher, hash.0, key))
    }

    /// Removes `key` if it still lies at `from`; says whether it did.
    pub(super) fn remove_at(&self, key: &[u8], from: Location) -> bool {
        let hash = self.hash(key);
        self.change(hash, |shard| {
            shard.get(hash.0, key) == Some(from)
                && shard.remove(&self.hasher, hash.0, key).is_some()
        })
    }

    /// Removes the entries whose location `keep` refuses.
    pub(super) fn retain(&self, keep: impl Fn(&Location) -> bool) {
        for shard in &self.shards {
            let mut shard = shard.write();
            if shard.iter().any(|(_, location)| !keep(&location)) {
                Arc::make_mut(&mut shard).retain(&self.hasher, &keep);
            }
        }
    }

    /// Makes room for so many more keys of so many bytes in all.
    pub(super) fn reserve(&self, count: usize, key_bytes: usize) -> Result<()> {
        let (count, key_bytes) = (count.div_ceil(SHARD_COUNT), key_bytes.div_ceil(SHARD_COUNT));
        self.shards.iter().try_for_each(|shard| {
            Arc::make_mut(&mut shard.write()).reserve(&self.hasher, count, key_bytes)
        })
    }

    /// Removes the tombstones that loading left in a shard, and the room that was not needed.
    pub(super) fn finish_loading(&self, shard: usize) {
        Arc::make_mut(&mut self.shards[shard].write()).finish_loading(&self.hasher);
    }

    /// Every key and where it lies at this moment. As long as nothing is changed meanwhile, it
    /// shares the memory of the keydir; a shard that is changed is copied before.
    pub(super) fn snapshot(&self) -> KeydirSnapshot {
        KeydirSnapshot(self.shards.iter().map(|shard| shard.read().clone()).collect())
    }

    /// The number of keys.
    pub(super) fn count(&self) -> u64 {
        self.shards.iter().map(|shard| shard.read().count() as u64).sum()
    }

    /// The bytes allocated for all of it.
    pub(super) fn memory_bytes(&self) -> u64 {
        let shard_bytes = |shard: &RwLock<Arc<Shard>>| {
            size_of::<Shard>() + ARC_BYTES + shard.read().memory_bytes()
        };
        let shards: usize = self.shards.iter().map(shard_bytes).sum();
        (shards + size_of_val(&*self.shards)) as u64
    }

    /// The longest time in microseconds that a change waited because a shard grew.
    pub(super) fn longest_growth_us(&self) -> u64 {
        self.longest_growth_us.load(Ordering::Relaxed)
    }

    pub(super) fn hash(&self, key: &[u8]) -> KeyHash {
        KeyHash(self.hasher.hash_one(key))
    }

    fn change<T>(&self, hash: KeyHash, change: impl FnOnce(&mut Shard) -> T) -> T {
        let mut guard = self.shards[hash.shard()].write();
        let shard = Arc::make_mut(&mut guard);
        let changed = change(shard);
        if let Some(growth) = shard.take_growth() {
            let us = u64::try_from(growth.as_micros()).unwrap_or(u64::MAX);
            self.longest_growth_us.fetch_max(us, Ordering::Relaxed);
        }
        changed
    }
}

/// The two counters beside what an `Arc` holds.
const ARC_BYTES: usize = 2 * size_of::<usize>();

/// See [`Keydir::snapshot`].
#[derive(Debug)]
pub(super) struct KeydirSnapshot(Vec<Arc<Shard>>);

impl KeydirSnapshot {
    /// Visits every key and where it lies, in no particular order, letting go of each shard when it
    /// is through with it.
    pub(super) fn for_each(self, mut visit: impl FnMut(&[u8], Location)) {
        for shard in self.0 {
            for (key, location) in shard.iter() {
                visit(key, location);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn at(file: u32, offset: u64) -> Location {
        Location { file, offset, size: 20 }
    }

    fn entries(keydir: &Keydir) -> BTreeMap<Vec<u8>, Location> {
        let mut found = BTreeMap::new();
        keydir.snapshot().for_each(|key, location| {
            assert!(found.insert(key.to_vec(), location).is_none());
        });
        found
    }

    #[derive(Debug, Clone)]
    enum Step {
        Insert(u16, Location),
        Newer(u16, Location),
        Relocate(u16, Location),
        RemoveAt(u16, Location),
        Remove(u16),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let location = || {
            (0..3u32, any::<u64>(), 14..u32::MAX, 0..60).prop_map(|(file, offset, size, shift)| {
                Location { file: file << (shift / 2), offset: offset >> shift, size }
            })
        };
        let key = || 0..400u16;
        proptest::collection::vec(
            prop_oneof![
                4 => (key(), location()).prop_map(|(key, at)| Step::Insert(key, at)),
                1 => (key(), location()).prop_map(|(key, at)| Step::Newer(key, at)),
                1 => (key(), location()).prop_map(|(key, at)| Step::Relocate(key, at)),
                1 => (key(), location()).prop_map(|(key, at)| Step::RemoveAt(key, at)),
                2 => key().prop_map(Step::Remove),
            ],
            0..3_000,
        )
    }

    /// Keys of many lengths, the empty one too, in few shards so that collisions abound.
    fn key(number: u16) -> Vec<u8> {
        number.to_be_bytes().repeat(usize::from(number) % 70)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_keydir_is_a_map(steps in steps()) {
            let keydir = Keydir::new();
            let mut model = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Insert(number, to) => {
                        let old = keydir.insert(&key(number), to).unwrap();
                        prop_assert_eq!(old, model.insert(key(number), to));
                    }
                    Step::Newer(number, to) => {
                        let older = keydir.insert_if_newer(&key(number), to).unwrap();
                        let old = model.get(&key(number)).copied();
                        prop_assert_eq!(older, old.map(|old| old.min(to)));
                        let at = model.entry(key(number)).or_insert(to);
                        *at = (*at).max(to);
                    }
                    Step::Relocate(number, to) => {
                        let from = model.get(&key(number)).copied().unwrap_or(at(9, 9));
                        let moved = keydir.relocate(&key(number), from, to).unwrap();
                        prop_assert_eq!(moved, model.contains_key(&key(number)));
                        prop_assert!(!keydir.relocate(&key(number), at(77, 7), to).unwrap());
                        if moved {
                            model.insert(key(number), to);
                        }
                    }
                    Step::RemoveAt(number, elsewhere) => {
                        let from = model.get(&key(number)).copied();
                        if from != Some(elsewhere) {
                            prop_assert!(!keydir.remove_at(&key(number), elsewhere));
                        }
                        if let Some(from) = from.filter(|_| number % 2 == 0) {
                            prop_assert!(keydir.remove_at(&key(number), from));
                            model.remove(&key(number));
                        }
                    }
                    Step::Remove(number) => {
                        prop_assert_eq!(keydir.remove(&key(number)), model.remove(&key(number)));
                    }
                }
            }
            prop_assert_eq!(keydir.count(), model.len() as u64);
            for (key, location) in &model {
                prop_assert_eq!(keydir.get(key), Some(*location));
            }
            prop_assert_eq!(entries(&keydir), model);
        }
    }

    #[test]
    fn tombstones_are_dropped_after_loading() {
        let keydir = Keydir::new();
        let tombstone = |file| Location { file, offset: 0, size: 0 };
        keydir.insert_if_newer(b"a", tombstone(2)).unwrap();
        keydir.insert_if_newer(b"a", at(1, 0)).unwrap();
        keydir.insert_if_newer(b"b", tombstone(2)).unwrap();
        keydir.insert_if_newer(b"b", at(3, 0)).unwrap();
        (0..SHARD_COUNT).for_each(|shard| keydir.finish_loading(shard));
        assert_eq!(entries(&keydir), BTreeMap::from([(b"b".to_vec(), at(3, 0))]));
    }

    /// Everything allocated is counted: slots, arena, growth ahead, the shards themselves.
    #[test]
    fn an_entry_with_a_key_of_32_bytes_takes_at_most_48_bytes() {
        let keydir = Keydir::new();
        for number in 0..1_000_000u64 {
            let key = format!("{number:032x}");
            let offset = number * 2_702 % (256 << 20);
            let file = u32::try_from(number / 99_346).unwrap();
            let location = Location { file, offset, size: 2_702 };
            keydir.insert(key.as_bytes(), location).unwrap();
        }
        let bytes_an_entry = keydir.memory_bytes() as f64 / 1_000_000.0;
        assert!(bytes_an_entry <= 48.0, "{bytes_an_entry}");
    }
}
