//! How many different keys some tables hold together, about, without reading them.
//!
//! Nobody can tell from outside whether tables hold different keys or the same ones again and again.
//! So each table keeps a sketch of its keys from the time when it was written (HyperLogLog; Flajolet
//! and others, 2007): for each of 4096 groups of hashes the longest run of zeros that a hash began
//! with. The sketch of several tables together is the largest of each; it is off by about 1.6 %.

use super::table_filter::KeyHash;

const GROUP_BITS: u32 = 12;
const GROUP_COUNT: usize = 1 << GROUP_BITS;

/// The keys of a table or of several.
#[derive(Debug, Clone)]
pub(crate) struct KeySketch {
    /// For each group one more than the longest run of zeros; 0 without a hash.
    longest: Box<[u8]>,
    /// Keys as they were added, in each table anew.
    added: u64,
}

impl Default for KeySketch {
    fn default() -> Self {
        Self { longest: vec![0; GROUP_COUNT].into(), added: 0 }
    }
}

impl KeySketch {
    pub(crate) fn add(&mut self, user_key: &[u8]) {
        let hash = KeyHash::new(user_key).bits64();
        let group = usize::try_from(hash >> (u64::BITS - GROUP_BITS)).unwrap_or_default();
        // What is left has 52 bits; the one put behind them ends every run.
        let run = (hash << GROUP_BITS | 1 << (GROUP_BITS - 1)).leading_zeros();
        let longest = &mut self.longest[group];
        *longest = (*longest).max(u8::try_from(run + 1).unwrap_or(u8::MAX));
        self.added += 1;
    }

    /// Takes in the keys of another table.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (own, other) in self.longest.iter_mut().zip(&other.longest) {
            *own = (*own).max(*other);
        }
        self.added += other.added;
    }

    /// Keys that were added, each as often as it was.
    #[expect(clippy::cast_precision_loss, reason = "compared with an estimate")]
    pub(crate) fn added(&self) -> f64 {
        self.added as f64
    }

    /// Different keys, about.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(crate) fn distinct(&self) -> f64 {
        let groups = GROUP_COUNT as f64;
        let mut groups_of_run = [0u32; 1 << u8::BITS];
        self.longest.iter().for_each(|run| groups_of_run[usize::from(*run)] += 1);
        let shares = groups_of_run.iter().zip(std::iter::successors(Some(1.0), |s| Some(s / 2.0)));
        let sum: f64 = shares.map(|(groups, share)| f64::from(*groups) * share).sum();
        let empty = groups_of_run[0];
        let estimate = 0.7213 / (1.0 + 1.079 / groups) * groups * groups / sum;
        // Of few keys the groups that got none tell more.
        let is_small = estimate <= 2.5 * groups && empty > 0;
        if is_small { groups * (groups / f64::from(empty)).ln() } else { estimate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(keys: impl IntoIterator<Item = u64>) -> KeySketch {
        let mut sketch = KeySketch::default();
        keys.into_iter().for_each(|key| sketch.add(&key.to_be_bytes()));
        sketch
    }

    #[test]
    fn different_keys_are_counted_within_a_tenth() {
        assert_eq!(sketch([]).distinct(), 0.0);
        for count in [1u32, 10, 500, 2000, 3000, 100_000, 1_000_000] {
            let counted = sketch(0..u64::from(count)).distinct();
            let error = counted / f64::from(count) - 1.0;
            assert!(error.abs() < 0.1, "{count} counted as {counted}");
        }
    }

    #[test]
    fn what_tables_share_is_repeated() {
        for (other, expected) in [(50_000, 0.0), (25_000, 0.25), (0, 0.5)] {
            let mut all = sketch(0..50_000);
            all.merge(&sketch(other..other + 50_000));
            let repeated = 1.0 - all.distinct() / all.added();
            assert!((repeated - expected).abs() < 0.05, "{other}: {repeated}");
        }
    }
}
