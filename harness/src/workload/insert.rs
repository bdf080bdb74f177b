//! The insert workload: N new records under random keys, as the published comparison did.

use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;

use engines::Batch;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::keys::{KEY_BYTES, Key, Keys};
use super::values::{Corpus, Framing, Values};

/// The parameters of the workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Insert {
    /// Records to insert.
    pub items: NonZeroU64,
    /// Records a call: 1 is a put each, more are batches.
    pub batch: NonZeroU32,
    /// Client threads, which share the records.
    pub threads: NonZeroU32,
    /// What the values are made of.
    pub corpus: Corpus,
    /// What is around them.
    pub framing: Framing,
    /// What keys and values are derived from.
    pub seed: u64,
}

impl Insert {
    /// The bytes of all keys and values together.
    pub fn data_bytes(&self) -> u64 {
        let record = KEY_BYTES + self.framing.value_bytes();
        self.items.get().saturating_mul(record as u64)
    }
}

/// Every record of the workload by number: what is inserted, and what must be read back.
pub struct Oracle {
    keys: Keys,
    values: Values,
}

impl Oracle {
    /// The records of `insert`.
    pub fn new(insert: &Insert) -> Self {
        Self {
            keys: Keys::new(insert.seed),
            values: Values::new(insert.corpus, insert.framing, insert.seed),
        }
    }

    /// The number of the record that has this key.
    pub fn index_of(&self, key: &[u8]) -> Option<u64> {
        self.keys.index_of(key)
    }

    /// Appends the value of record `index`.
    pub fn write_value(&self, index: u64, out: &mut Vec<u8>) {
        self.values.write(index, out);
    }
}

/// A run of records, generated ahead so that making them costs the engine nothing.
#[derive(Default)]
pub struct Records {
    keys: Vec<Key>,
    values: Vec<u8>,
    /// Where each value ends.
    ends: Vec<usize>,
}

impl Records {
    /// Replaces the records by those of `range`.
    pub fn fill(&mut self, oracle: &Oracle, range: Range<u64>) {
        self.keys.clear();
        self.values.clear();
        self.ends.clear();
        for index in range {
            self.keys.push(oracle.keys.key(index));
            oracle.values.write(index, &mut self.values);
            self.ends.push(self.values.len());
        }
    }

    /// The keys and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut start = 0;
        self.keys.iter().zip(&self.ends).map(move |(key, &end)| {
            let value = &self.values[start..end];
            start = end;
            (key.as_slice(), value)
        })
    }

    /// The records as batches of `size`, the last one smaller where they do not divide.
    ///
    /// # Errors
    /// As [`Batch::put`].
    pub fn batches(&self, size: NonZeroU32) -> engines::Result<Vec<Batch>> {
        let mut batches = Vec::with_capacity(self.keys.len() / size.get() as usize + 1);
        let mut batch = Batch::new();
        for (key, value) in self.iter() {
            batch.put(key, value)?;
            if batch.count() == size.get() {
                batches.push(std::mem::take(&mut batch));
            }
        }
        if !batch.is_empty() {
            batches.push(batch);
        }
        Ok(batches)
    }

    /// The hash of putting these records, in any order and by any number of threads.
    pub fn hash(&self) -> OperationsHash {
        let mut hash = OperationsHash::default();
        for (key, value) in self.iter() {
            hash.add_put(key, value);
        }
        hash
    }
}

/// The hash of an operation stream: equal for two engines if, and in practice only if, both were
/// given the same operations. It sums over the operations, so that threads need no common order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OperationsHash {
    sum: u64,
    count: u64,
}

impl OperationsHash {
    /// Adds one put.
    pub fn add_put(&mut self, key: &[u8], value: &[u8]) {
        self.sum = self.sum.wrapping_add(xxh3_64_with_seed(value, xxh3_64(key)));
        self.count += 1;
    }

    /// Adds the operations of another part of the stream.
    pub fn merge(&mut self, other: Self) {
        self.sum = self.sum.wrapping_add(other.sum);
        self.count += other.count;
    }

    /// The operations added so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// As results have it.
    pub fn digest(&self) -> String {
        format!("xxh3-sum:{:016x}", self.sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(corpus: Corpus) -> Insert {
        Insert {
            items: NonZeroU64::new(100).unwrap(),
            batch: NonZeroU32::MIN,
            threads: NonZeroU32::MIN,
            corpus,
            framing: Framing::Json,
            seed: 42,
        }
    }

    fn records(oracle: &Oracle, range: Range<u64>) -> Records {
        let mut records = Records::default();
        records.fill(oracle, range);
        records
    }

    #[test]
    fn records_are_the_same_however_they_are_cut() {
        let oracle = Oracle::new(&insert(Corpus::Varied));
        let whole = records(&oracle, 0..100);
        let mut parts = records(&oracle, 0..37);
        let mut all: Vec<_> = parts.iter().map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
        let mut hash = records(&oracle, 37..100).hash();
        hash.merge(parts.hash());
        parts.fill(&oracle, 37..100);
        all.extend(parts.iter().map(|(k, v)| (k.to_vec(), v.to_vec())));
        let expected: Vec<_> = whole.iter().map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
        assert_eq!(all, expected);
        assert_eq!(hash, whole.hash());
        assert_eq!(hash.count(), 100);
    }

    #[test]
    fn the_hash_tells_streams_apart() {
        let oracle = Oracle::new(&insert(Corpus::Fixed));
        let hash = records(&oracle, 0..10).hash();
        assert_ne!(hash, records(&oracle, 0..9).hash());
        assert_ne!(hash, records(&oracle, 1..11).hash());
        // The values of two keys exchanged.
        let (mut straight, mut crossed) = (OperationsHash::default(), OperationsHash::default());
        straight.add_put(b"a", b"1");
        straight.add_put(b"b", b"2");
        crossed.add_put(b"a", b"2");
        crossed.add_put(b"b", b"1");
        assert_ne!(straight, crossed);
    }

    #[test]
    fn batches_hold_every_record_once_in_order() {
        let oracle = Oracle::new(&insert(Corpus::Varied));
        let records = records(&oracle, 0..10);
        let batches = records.batches(NonZeroU32::new(4).unwrap()).unwrap();
        assert_eq!(batches.iter().map(Batch::count).collect::<Vec<_>>(), [4, 4, 2]);
        let keys: Vec<_> = batches.iter().flat_map(Batch::iter).map(|o| o.key()).collect();
        assert_eq!(keys, records.iter().map(|(key, _)| key).collect::<Vec<_>>());
    }

    #[test]
    fn the_oracle_finds_a_record_by_its_key() {
        let oracle = Oracle::new(&insert(Corpus::Varied));
        let records = records(&oracle, 5..6);
        let (key, value) = records.iter().next().unwrap();
        let mut again = Vec::new();
        oracle.write_value(oracle.index_of(key).unwrap(), &mut again);
        assert_eq!(again, value);
    }
}
