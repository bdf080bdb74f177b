//! Where a phase has become steady: found on its time line.
//!
//! The beginning is cut off where the mean of the rest becomes most certain (the marginal standard
//! error rule, White 1997). The rest is steady if its two halves are alike.

/// What a time line shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steady {
    /// Buckets before it became steady.
    pub warm_up: usize,
    /// The mean of the buckets after those.
    pub mean: f64,
    /// How much more the second half of them has than the first: 0.1 is a tenth.
    pub drift: f64,
}

/// Buckets without which nothing is said: two seconds of them.
const FEWEST: usize = 20;

/// Halves that differ by more are not alike.
const MOST_DRIFT: f64 = 0.1;

impl Steady {
    /// Looks at a time line; `None` if it is too short. Its last bucket is seldom a whole one, and
    /// is left out.
    pub fn of(timeline: &[u64]) -> Option<Self> {
        let (_, whole) = timeline.split_last()?;
        if whole.len() < FEWEST {
            return None;
        }
        // At least half of it must be left, or the rule finds the quietest end of anything.
        let cuts = 0..=whole.len() / 2;
        let warm_up = cuts.min_by(|&a, &b| error(&whole[a..]).total_cmp(&error(&whole[b..])))?;
        let rest = &whole[warm_up..];
        let (first, second) = rest.split_at(rest.len() / 2);
        let drift =
            if mean(first) > 0.0 { mean(second) / mean(first) - 1.0 } else { f64::INFINITY };
        Some(Self { warm_up, mean: mean(rest), drift })
    }

    /// Whether it became steady.
    pub fn is_steady(&self) -> bool {
        self.drift.abs() <= MOST_DRIFT
    }
}

fn mean(counts: &[u64]) -> f64 {
    counts.iter().sum::<u64>() as f64 / counts.len().max(1) as f64
}

/// The square of the standard error of the mean.
fn error(counts: &[u64]) -> f64 {
    let mean = mean(counts);
    let squares: f64 = counts.iter().map(|&count| (count as f64 - mean).powi(2)).sum();
    squares / (counts.len() as f64).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_beginning_is_cut_off() {
        let line: Vec<u64> =
            (0..60).map(|at| if at < 10 { at * 100 } else { 1_000 + at % 3 }).collect();
        let steady = Steady::of(&line).unwrap();
        assert!((9..=11).contains(&steady.warm_up), "{steady:?}");
        assert!(steady.is_steady() && (steady.mean - 1_001.0).abs() < 2.0, "{steady:?}");
    }

    #[test]
    fn what_slows_down_all_the_time_is_not_steady() {
        let line: Vec<u64> = (0..100).map(|at| 2_000 - at * 15).collect();
        let steady = Steady::of(&line).unwrap();
        assert!(!steady.is_steady() && steady.drift < 0.0, "{steady:?}");
        assert_eq!(Steady::of(&line[..20]), None);
        assert_eq!(Steady::of(&[]), None);
    }
}
