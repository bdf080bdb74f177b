//! Whether two sides differ at all, where many figures are looked at.
//!
//! Of a hundred figures of two runs of one and the same thing, five leave their 95 % interval by
//! chance, and with three runs a side the interval of a bootstrap is narrower than it should be.
//! So a change is told only where Welch's test (1947) of the logarithms finds a difference that
//! outlives Holm's correction (1979) for the number of figures.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The chance of a difference of the means of the logarithms as large as this one, if there is
/// none; `None` with fewer than two samples a side, or where one is not above zero.
pub fn p_value(a: &[f64], b: &[f64]) -> Option<f64> {
    let (a, b) = (Logs::of(a)?, Logs::of(b)?);
    let difference = (a.mean - b.mean).abs();
    let (of_a, of_b) = (a.variance / a.count, b.variance / b.count);
    let variance = of_a + of_b;
    if variance == 0.0 {
        return Some(if difference == 0.0 { 1.0 } else { 0.0 });
    }
    // Welch and Satterthwaite's degrees of freedom.
    let share = |of: f64, count: f64| of * of / (count - 1.0);
    let freedom = variance * variance / (share(of_a, a.count) + share(of_b, b.count));
    let distribution = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(2.0 * distribution.sf(difference / variance.sqrt()))
}

/// Holm's procedure: which differences are there, if the chance of a single wrong one among all
/// of them is to be at most `alpha`. In the order of `p_values`.
pub fn holm(p_values: &[f64], alpha: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut is_there = vec![false; p_values.len()];
    for (rank, &at) in order.iter().enumerate() {
        if p_values[at] > alpha / (p_values.len() - rank) as f64 {
            break;
        }
        is_there[at] = true;
    }
    is_there
}

struct Logs {
    count: f64,
    mean: f64,
    variance: f64,
}

impl Logs {
    fn of(samples: &[f64]) -> Option<Self> {
        if samples.len() < 2 || samples.iter().any(|sample| !sample.is_finite() || *sample <= 0.0) {
            return None;
        }
        let count = samples.len() as f64;
        let mean = samples.iter().map(|sample| sample.ln()).sum::<f64>() / count;
        let squares = samples.iter().map(|sample| (sample.ln() - mean).powi(2)).sum::<f64>();
        // What equal samples differ by when their mean is rounded is no spread.
        let variance = if samples.iter().all(|sample| *sample == samples[0]) {
            0.0
        } else {
            squares / (count - 1.0)
        };
        Some(Self { count, mean, variance })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exp<const N: usize>(samples: [f64; N]) -> Vec<f64> {
        samples.iter().map(|sample: &f64| sample.exp()).collect()
    }

    /// By hand: means 2 and 5, variances 1 and 1, so t = 3 / sqrt(2 / 3) = 3.6742 with 4 degrees of
    /// freedom. The distribution has a closed form there: with s = t / sqrt(t² + 4), the chance of
    /// more than t either way is 1 - s (3 - s²) / 2 = 0.02131.
    #[test]
    fn the_chance_is_that_of_the_closed_form() {
        let p = p_value(&exp([1.0, 2.0, 3.0]), &exp([4.0, 5.0, 6.0])).unwrap();
        let s = (13.5f64 / 17.5).sqrt();
        assert!((p - (1.0 - s * (3.0 - s * s) / 2.0)).abs() < 1e-9, "{p}");
        assert!((p - 0.02131).abs() < 1e-5, "{p}");
    }

    #[test]
    fn without_spread_only_equality_is_no_difference() {
        assert_eq!(p_value(&[3.1; 3], &[3.1; 3]), Some(1.0));
        assert_eq!(p_value(&[3.1; 3], &[3.2; 3]), Some(0.0));
        assert_eq!(p_value(&[3.1], &[3.1, 3.2]), None);
        assert_eq!(p_value(&[0.0, 1.0], &[3.1, 3.2]), None);
    }

    /// Holm's own rule by hand: 0.01 <= 0.05 / 4 and 0.013 <= 0.05 / 3, but 0.03 > 0.05 / 2, and
    /// what comes after is not there either.
    #[test]
    fn the_first_that_may_be_chance_ends_it() {
        assert_eq!(holm(&[0.03, 0.01, 0.04, 0.013], 0.05), [false, true, false, true]);
        assert_eq!(holm(&[0.04], 0.05), [true]);
        assert_eq!(holm(&[], 0.05), [false; 0]);
    }
}
