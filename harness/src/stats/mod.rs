//! What can be concluded from a few runs.
//!
//! The bootstrap (Efron, 1979) asks for no shape of the noise: runs are drawn again from those that
//! there are, with repetition, and the middle 95 % of what comes out is the interval. With three
//! runs of each side that is nearly the whole range from the lowest to the highest ratio; with
//! fewer it says nothing, and none is given.

pub mod steady;
pub mod welch;

use crate::workload::rng::SplitMix64;

/// The ratio of two medians.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The median of the one side by that of the other.
    pub ratio: f64,
    /// The bounds of its 95 % interval; absent with fewer than [`FEWEST`] runs on a side.
    pub interval: Option<[f64; 2]>,
}

/// Runs that each side of an interval needs.
pub const FEWEST: usize = 3;

const RESAMPLES: usize = 4_000;

impl Ratio {
    /// The median of `of` by that of `by`; `None` if a side is empty or not above zero.
    pub fn new(of: &[f64], by: &[f64]) -> Option<Self> {
        if of.iter().chain(by).any(|sample| !sample.is_finite() || *sample <= 0.0) {
            return None;
        }
        let ratio = median(of)? / median(by)?;
        let enough = of.len().min(by.len()) >= FEWEST;
        Some(Self { ratio, interval: enough.then(|| bootstrap(of, by)).flatten() })
    }

    /// Whether the two cannot be told apart: the interval has 1 in it.
    pub fn is_tie(&self) -> bool {
        self.interval.is_some_and(|[low, high]| low <= 1.0 && 1.0 <= high)
    }
}

fn bootstrap(of: &[f64], by: &[f64]) -> Option<[f64; 2]> {
    // Always the same draws: a report that is made again says the same.
    let mut rng = SplitMix64::new(RESAMPLES as u64);
    let mut ratios = Vec::with_capacity(RESAMPLES);
    let mut drawn = Vec::new();
    for _ in 0..RESAMPLES {
        let mut resampled = |samples: &[f64]| {
            drawn.clear();
            drawn.extend((0..samples.len()).map(|_| samples[rng.below(samples.len())]));
            median(&drawn)
        };
        ratios.push(resampled(of)? / resampled(by)?);
    }
    ratios.sort_by(f64::total_cmp);
    let tail = RESAMPLES / 40;
    Some([*ratios.get(tail)?, *ratios.get(RESAMPLES - 1 - tail)?])
}

/// The middle one, or the mean of the two middle ones; `None` of nothing.
pub fn median(samples: &[f64]) -> Option<f64> {
    let mut samples = samples.to_vec();
    samples.sort_by(f64::total_cmp);
    let (lower, upper) = (samples.len().checked_sub(1)? / 2, samples.len() / 2);
    Some(f64::midpoint(*samples.get(lower)?, *samples.get(upper)?))
}

/// Cliff's delta, the size of an effect whatever its unit: how much more often a sample of `a` is
/// above one of `b` than below it, from -1 (always below) to 1 (always above).
pub fn effect_size(a: &[f64], b: &[f64]) -> Option<f64> {
    let pairs = a.iter().flat_map(|a| b.iter().map(move |b| a.total_cmp(b) as i32));
    let count = a.len() * b.len();
    (count > 0).then(|| f64::from(pairs.sum::<i32>()) / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_lies_in_its_interval_and_needs_three_runs() {
        let ratio = Ratio::new(&[2.0, 2.2, 1.9], &[1.0, 1.1, 0.9]).unwrap();
        assert_eq!(ratio.ratio, 2.0);
        // The widest that three runs allow: 1.9 / 1.1 to 2.2 / 0.9.
        assert_eq!(ratio.interval, Some([1.9 / 1.1, 2.2 / 0.9]));
        assert!(!ratio.is_tie());
        let few = Ratio::new(&[2.0, 2.2], &[1.0, 1.1, 0.9]).unwrap();
        assert_eq!(few.interval, None);
        assert_eq!(Ratio::new(&[], &[1.0]), None);
        assert_eq!(Ratio::new(&[1.0], &[0.0]), None);
    }

    #[test]
    fn more_runs_make_the_interval_narrow() {
        let noisy = |seed: u64, count: u64, middle: f64| -> Vec<f64> {
            let noise = |at| SplitMix64::for_index(seed, at).below(1_000) as f64 / 10_000.0 - 0.05;
            (0..count).map(|at| middle * (1.0 + noise(at))).collect()
        };
        let width = |count| {
            let ratio = Ratio::new(&noisy(1, count, 3.0), &noisy(2, count, 2.0)).unwrap();
            let [low, high] = ratio.interval.unwrap();
            assert!(low <= 1.5 && 1.5 <= high, "{count}: {ratio:?}");
            high - low
        };
        assert!(width(50) < width(5) / 2.0, "{} {}", width(50), width(5));
    }

    /// Of pairs of samples with one and the same noise, about one in twenty may seem different.
    #[test]
    fn equal_sides_are_seldom_told_apart() {
        let noise = |seed, at| 1.0 + SplitMix64::for_index(seed, at).below(100) as f64 / 1_000.0;
        let wrong = (0..200u64)
            .filter(|&seed| {
                let side =
                    |which| -> Vec<f64> { (0..7).map(|at| noise(seed * 2 + which, at)).collect() };
                !Ratio::new(&side(0), &side(1)).unwrap().is_tie()
            })
            .count();
        assert!(wrong <= 24, "{wrong} of 200");
    }

    #[test]
    fn an_effect_is_counted_by_pairs() {
        assert_eq!(effect_size(&[3.0, 4.0], &[1.0, 2.0]), Some(1.0));
        assert_eq!(effect_size(&[1.0, 4.0], &[2.0, 3.0]), Some(0.0));
        assert_eq!(effect_size(&[1.0], &[1.0, 2.0]), Some(-0.5));
        assert_eq!(effect_size(&[], &[1.0]), None);
    }
}
