//! What is stored: `varied` JSON values of 2,656 bytes under random keys, made outside the clock.

use std::time::{Duration, Instant};

use engines::Engine;
use harness::workload::keys::{Key, Keys};
use harness::workload::values::{Corpus, Framing, Values};

/// Records made at once: about 54 MB.
const CHUNK: u64 = 20_000;

/// The records by number.
pub(crate) struct Records {
    keys: Keys,
    values: Values,
}

impl Records {
    /// The records of a seed: another one gives other values under the same keys.
    pub(crate) fn new(seed: u64) -> Self {
        Self { keys: Keys::new(1), values: Values::new(Corpus::Varied, Framing::Json, seed) }
    }

    pub(crate) fn key(&self, index: u64) -> Key {
        self.keys.key(index)
    }

    pub(crate) fn value(&self, index: u64) -> Vec<u8> {
        let mut value = Vec::new();
        self.values.write(index, &mut value);
        value
    }

    /// Puts records 0 to `count`; returns the time that the puts took.
    pub(crate) fn load(&self, store: &dyn Engine, count: u64) -> engines::Result<Duration> {
        let (mut took, mut start) = (Duration::ZERO, 0);
        while start < count {
            let end = count.min(start + CHUNK);
            let chunk: Vec<_> =
                (start..end).map(|index| (self.key(index), self.value(index))).collect();
            let began = Instant::now();
            for (key, value) in &chunk {
                store.put(key, value)?;
            }
            took += began.elapsed();
            start = end;
        }
        Ok(took)
    }

    /// Whether `store` holds the right value for record `index`.
    pub(crate) fn check(&self, store: &dyn Engine, index: u64) -> engines::Result<()> {
        let expected = self.value(index);
        let mut right = false;
        store.get(&self.key(index), &mut |value| right = value == expected)?;
        if right {
            return Ok(());
        }
        Err(engines::Error::InvalidArgument(format!(
            "{} holds no or a wrong value for record {index}",
            store.description().engine
        )))
    }
}
