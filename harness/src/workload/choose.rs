//! Which record an operation is about: YCSB's request distributions, which other workloads draw
//! from too.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::rng::{SplitMix64, mix};
use super::zipf::{GrayZipfian, TrueZipfian};

/// How records are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Every record as often as any other.
    Uniform,
    /// YCSB's scrambled zipfian: ranks are drawn among ten thousand million, and hashed onto the
    /// records. So the popular records are scattered, and the skew is weaker than its exponent.
    Zipfian,
    /// Zipfian over exactly the records that there are, scattered without collisions.
    TrueZipfian,
    /// The newest records most, by a zipfian distance from the newest.
    Latest,
    /// A share of the operations goes to a share of the records, equally within both parts.
    Hotspot,
    /// One after the other, from the beginning again after the last.
    Sequential,
    /// By an exponential distance from the newest.
    Exponential,
}

impl Distribution {
    /// Every distribution.
    pub const ALL: [Self; 7] = [
        Self::Uniform,
        Self::Zipfian,
        Self::TrueZipfian,
        Self::Latest,
        Self::Hotspot,
        Self::Sequential,
        Self::Exponential,
    ];
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Uniform => "uniform",
            Self::Zipfian => "zipfian",
            Self::TrueZipfian => "truezipfian",
            Self::Latest => "latest",
            Self::Hotspot => "hotspot",
            Self::Sequential => "sequential",
            Self::Exponential => "exponential",
        })
    }
}

impl FromStr for Distribution {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|distribution| distribution.to_string() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(|distribution| distribution.to_string());
            format!("no distribution is called {text:?}; there are: {}", names.join(", "))
        })
    }
}

/// YCSB draws zipfian ranks among so many items, whatever the records, so that the popular ones
/// stay popular when records are inserted.
const SCRAMBLED_ITEMS: u64 = 10_000_000_000;

/// The sum that belongs to them.
const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

/// Chooses records.
#[derive(Debug, Clone)]
pub(super) enum Chooser {
    Uniform { items: u64 },
    Zipfian { ranks: GrayZipfian, items: u64 },
    TrueZipfian { ranks: TrueZipfian, scatter: Scatter },
    Latest { distances: GrayZipfian },
    Hotspot { hot: u64, items: u64, hot_operations: f64 },
    Sequential { items: u64 },
    Exponential { gamma: f64 },
}

/// What a chooser is made for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) distribution: Distribution,
    /// Records that were loaded.
    pub(super) records: u64,
    /// Records that will probably be inserted: YCSB takes twice as many.
    pub(super) expected_inserts: u64,
    pub(super) hot_records: f64,
    pub(super) hot_operations: f64,
    /// The exponent of the true zipfian distribution.
    pub(super) theta: f64,
    pub(super) seed: u64,
}

impl Chooser {
    pub(super) fn new(wanted: &Wanted) -> Self {
        let items = wanted.records.max(1);
        match wanted.distribution {
            Distribution::Uniform => Self::Uniform { items },
            Distribution::Zipfian => Self::Zipfian {
                // YCSB's range has both of its ends in it, here and below.
                ranks: GrayZipfian::with_zeta(SCRAMBLED_ITEMS + 1, SCRAMBLED_ZETA),
                items: items + 2 * wanted.expected_inserts + 1,
            },
            Distribution::TrueZipfian => Self::TrueZipfian {
                ranks: TrueZipfian::new(items, wanted.theta),
                scatter: Scatter::new(items, wanted.seed),
            },
            Distribution::Latest => {
                Self::Latest { distances: GrayZipfian::new(items.saturating_sub(1).max(1)) }
            }
            Distribution::Hotspot => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a share of a count"
                )]
                let hot = (items as f64 * wanted.hot_records) as u64;
                Self::Hotspot { hot, items, hot_operations: wanted.hot_operations }
            }
            Distribution::Sequential => Self::Sequential { items },
            Distribution::Exponential => {
                // 95 % of the operations go to the newest 6/7 of the records.
                let range = items as f64 * 0.857_142_857_1;
                Self::Exponential { gamma: -(1.0f64 - 0.95).ln() / range }
            }
        }
    }

    /// The record for `step`, none newer than `newest`.
    pub(super) fn choose(&mut self, rng: &mut SplitMix64, step: u64, newest: u64) -> u64 {
        loop {
            if let Some(record) = self.draw(rng, step, newest).filter(|&record| record <= newest) {
                return record;
            }
        }
    }

    fn draw(&mut self, rng: &mut SplitMix64, step: u64, newest: u64) -> Option<u64> {
        Some(match self {
            Self::Uniform { items } => rng.below_u64(*items),
            Self::Zipfian { ranks, items } => fnv(ranks.next(rng)) % *items,
            Self::TrueZipfian { ranks, scatter } => scatter.place(ranks.next(rng)),
            Self::Latest { distances } => {
                distances.grow(newest);
                newest.checked_sub(distances.next(rng))?
            }
            Self::Hotspot { hot, items, hot_operations } => {
                let is_hot = rng.fraction() < *hot_operations;
                match (is_hot && *hot > 0) || hot == items {
                    true => rng.below_u64(*hot),
                    false => *hot + rng.below_u64(*items - *hot),
                }
            }
            Self::Sequential { items } => step % *items,
            Self::Exponential { gamma } => {
                // The fraction may be 0; its logarithm is not wanted.
                let distance = -(1.0 - rng.fraction()).ln() / *gamma;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "not negative, and saturates"
                )]
                newest.checked_sub(distance as u64)?
            }
        })
    }
}

/// FNV-1a of 64 bits over the 8 bytes of `number`, low byte first, as a number that is not
/// negative: Java's `Math.abs` of the hash.
pub(super) fn fnv(mut number: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for _ in 0..8 {
        hash ^= number & 0xff;
        hash = hash.wrapping_mul(0x100_0000_01b3);
        number >>= 8;
    }
    hash.cast_signed().wrapping_abs().cast_unsigned()
}

/// A permutation of the numbers below a count: a Feistel network over enough bits, gone through
/// again until the number is below the count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scatter {
    count: u64,
    half_bits: u32,
    seed: u64,
}

const ROUNDS: u64 = 4;

impl Scatter {
    pub(super) fn new(count: u64, seed: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        Self { count, half_bits: bits.div_ceil(2).max(1), seed }
    }

    /// Where `number`, which is below the count, goes.
    pub(super) fn place(&self, mut number: u64) -> u64 {
        let mask = self.mask();
        loop {
            let (mut left, mut right) = (number >> self.half_bits, number & mask);
            for round in 0..ROUNDS {
                (left, right) = (right, left ^ self.mixed(round, right));
            }
            number = (left << self.half_bits) | right;
            if number < self.count {
                return number;
            }
        }
    }

    /// The number that goes to `place`, which is below the count.
    pub(super) fn number(&self, mut place: u64) -> u64 {
        let mask = self.mask();
        loop {
            let (mut left, mut right) = (place >> self.half_bits, place & mask);
            for round in (0..ROUNDS).rev() {
                (left, right) = (right ^ self.mixed(round, left), left);
            }
            place = (left << self.half_bits) | right;
            if place < self.count {
                return place;
            }
        }
    }

    fn mask(&self) -> u64 {
        (1 << self.half_bits) - 1
    }

    fn mixed(&self, round: u64, half: u64) -> u64 {
        mix(half ^ mix(self.seed ^ (round << 56))) & self.mask()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::zipf::THETA;

    fn wanted(distribution: Distribution, records: u64) -> Wanted {
        Wanted {
            distribution,
            records,
            expected_inserts: 0,
            hot_records: 0.2,
            hot_operations: 0.8,
            theta: THETA,
            seed: 42,
        }
    }

    fn counts(distribution: Distribution, records: u64, draws: u64) -> Vec<f64> {
        let mut chooser = Chooser::new(&wanted(distribution, records));
        let mut counts = vec![0.0; usize::try_from(records).unwrap()];
        for step in 0..draws {
            let mut rng = SplitMix64::for_index(42, step);
            let record = chooser.choose(&mut rng, step, records - 1);
            counts[usize::try_from(record).unwrap()] += 1.0;
        }
        counts
    }

    #[test]
    fn names_are_read_back() {
        for distribution in Distribution::ALL {
            assert_eq!(distribution.to_string().parse(), Ok(distribution));
        }
        let error = "pareto".parse::<Distribution>().unwrap_err();
        assert!(error.contains("\"pareto\"") && error.contains("hotspot"), "{error}");
    }

    #[test]
    fn scattering_is_a_permutation() {
        for count in [1, 2, 3, 64, 65, 100, 1_000, 4_096, 5_000] {
            let scatter = Scatter::new(count, 7);
            let mut places: Vec<u64> = (0..count).map(|number| scatter.place(number)).collect();
            let in_place = (0..).zip(&places).filter(|(number, place)| number == *place).count();
            assert!(count < 64 || in_place < 16, "{count}: {in_place} stayed");
            let numbers: Vec<u64> = places.iter().map(|&place| scatter.number(place)).collect();
            assert_eq!(numbers, (0..count).collect::<Vec<_>>());
            places.sort_unstable();
            assert_eq!(places, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn uniform_and_sequential_treat_all_alike() {
        let counts_of = counts(Distribution::Uniform, 100, 100_000);
        // Five standard deviations of a count that is 1,000 in the mean.
        assert!(counts_of.iter().all(|count| (count - 1_000.0).abs() < 160.0), "{counts_of:?}");
        assert!(counts(Distribution::Sequential, 100, 1_000).iter().all(|&count| count == 10.0));
    }

    #[test]
    fn a_hotspot_gets_its_share() {
        let counts = counts(Distribution::Hotspot, 1_000, 100_000);
        let hot: f64 = counts[..200].iter().sum();
        assert!((hot / 100_000.0 - 0.8).abs() < 0.01, "{hot}");
        let coldest = counts[200..].iter().copied().fold(f64::INFINITY, f64::min);
        assert!(coldest > 0.0);
    }

    /// The most popular record is the one that rank 0 is hashed to, with the share that rank 0 has
    /// among ten thousand million: 1 / 26.469.
    #[test]
    fn scrambled_zipfian_is_hashed_onto_the_records() {
        let counts = counts(Distribution::Zipfian, 1_000, 200_000);
        let hottest = usize::try_from(fnv(0) % 1_001).unwrap();
        let share = counts[hottest] / 200_000.0;
        // Draws beyond the newest record are drawn again: one in a thousand. Others fall onto the
        // same record by chance: about another one in a thousand.
        assert!((share - 1.0 / 26.469).abs() < 0.004, "{share}");
        let most = counts.iter().copied().fold(0.0, f64::max);
        assert_eq!(counts[hottest], most);
        let second = usize::try_from(fnv(1) % 1_001).unwrap();
        let share = counts[second] / 200_000.0;
        assert!((share - 0.5f64.powf(0.99) / 26.469).abs() < 0.004, "{share}");
    }

    #[test]
    fn the_newest_are_the_most_popular_of_latest_and_follow_inserts() {
        let counts_of = counts(Distribution::Latest, 1_000, 100_000);
        assert!(counts_of[999] > counts_of[998] && counts_of[998] > counts_of[990]);
        let share = counts_of[999] / 100_000.0;
        let expected = 1.0 / super::super::zipf::zeta(999, 0.99);
        assert!((share - expected).abs() < 0.005, "{share} {expected}");
        let mut chooser = Chooser::new(&wanted(Distribution::Latest, 1_000));
        let later = (0..10_000)
            .filter(|&step| {
                chooser.choose(&mut SplitMix64::for_index(1, step), step, 1_500) == 1_500
            })
            .count() as f64;
        let expected = 10_000.0 / super::super::zipf::zeta(1_500, 0.99);
        assert!((later - expected).abs() < 150.0, "{later} {expected}");
    }

    #[test]
    fn an_exponential_distance_reaches_six_sevenths_with_its_percentile() {
        let counts = counts(Distribution::Exponential, 7_000, 100_000);
        let near: f64 = counts[1_000..].iter().sum();
        // Of those that are drawn at all within the records: 0.95 / (1 - 0.05^(7/6)).
        let expected = 0.95 / (1.0 - 0.05f64.powf(7.0 / 6.0));
        assert!((near / 100_000.0 - expected).abs() < 0.005, "{near} {expected}");
    }

    #[test]
    fn true_zipfian_has_the_popularity_of_its_ranks() {
        let mut counts = counts(Distribution::TrueZipfian, 1_000, 500_000);
        let first = usize::try_from(Scatter::new(1_000, 42).place(0)).unwrap();
        let share = counts[first] / 500_000.0;
        counts.sort_by(|a, b| b.total_cmp(a));
        assert_eq!(share, counts[0] / 500_000.0);
        let expected = 1.0 / super::super::zipf::zeta(1_000, 0.99);
        assert!((share - expected).abs() < 0.003, "{share} {expected}");
        let top_ten: f64 = counts[..10].iter().sum::<f64>() / 500_000.0;
        let expected = super::super::zipf::zeta(10, 0.99) / super::super::zipf::zeta(1_000, 0.99);
        assert!((top_ten - expected).abs() < 0.01, "{top_ten} {expected}");
    }
}
