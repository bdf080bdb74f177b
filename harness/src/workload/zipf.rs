//! Zipfian numbers: item of rank r is drawn in proportion to 1 / r^theta.
//!
//! - [`GrayZipfian`] is what YCSB draws with: the approximation of Gray, Sundaresan, Englert,
//!   Baclawski and Weinberger ("Quickly Generating Billion-Record Synthetic Databases", 1994). The
//!   first two ranks are exact.
//! - [`TrueZipfian`] is exact for every rank: rejection-inversion after Hörmann and Derflinger
//!   ("Rejection-inversion to generate variates from monotone discrete distributions", 1996).

use super::rng::SplitMix64;

/// The exponent of all YCSB workloads.
pub(super) const THETA: f64 = 0.99;

/// The sum of 1 / r^theta over the ranks from 1 to `count`: term by term for the first ones, by
/// the formula of Euler and Maclaurin for the others, so that nobody waits for billions of terms.
pub(super) fn zeta(count: u64, theta: f64) -> f64 {
    const TERMS: u64 = 1_000;
    let first: f64 = (1..=count.min(TERMS)).map(|rank| (rank as f64).powf(-theta)).sum();
    if count <= TERMS {
        return first;
    }
    let (from, to) = (TERMS as f64, count as f64);
    let area = (to.powf(1.0 - theta) - from.powf(1.0 - theta)) / (1.0 - theta);
    let ends = (to.powf(-theta) - from.powf(-theta)) / 2.0;
    let slopes = theta / 12.0 * (from.powf(-theta - 1.0) - to.powf(-theta - 1.0));
    first + area + ends + slopes
}

/// YCSB's generator over a number of items that may grow.
#[derive(Debug, Clone)]
pub(super) struct GrayZipfian {
    items: u64,
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl GrayZipfian {
    /// Over `items` items.
    pub(super) fn new(items: u64) -> Self {
        Self::with_zeta(items, zeta(items, THETA))
    }

    /// With a sum that is known already.
    pub(super) fn with_zeta(items: u64, zeta: f64) -> Self {
        let mut zipfian = Self { items, zeta, alpha: 1.0 / (1.0 - THETA), eta: 0.0 };
        zipfian.set_eta();
        zipfian
    }

    fn set_eta(&mut self) {
        let two = 1.0 + 0.5f64.powf(THETA);
        let share = (2.0 / self.items as f64).powf(1.0 - THETA);
        self.eta = (1.0 - share) / (1.0 - two / self.zeta);
    }

    /// Makes it one over `items` items, more than before.
    pub(super) fn grow(&mut self, items: u64) {
        if items <= self.items {
            return;
        }
        for rank in self.items + 1..=items {
            self.zeta += (rank as f64).powf(-THETA);
        }
        self.items = items;
        self.set_eta();
    }

    /// A rank from 0.
    pub(super) fn next(&self, rng: &mut SplitMix64) -> u64 {
        self.at(rng.fraction())
    }

    /// The rank for a fraction.
    fn at(&self, fraction: f64) -> u64 {
        let scaled = fraction * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(THETA) {
            return 1;
        }
        let part = (self.eta * fraction - self.eta + 1.0).powf(self.alpha);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below items")]
        let rank = (self.items as f64 * part) as u64;
        rank.min(self.items.saturating_sub(1))
    }
}

/// The exact generator.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrueZipfian {
    items: u64,
    theta: f64,
    at_half: f64,
    at_end: f64,
    /// Where the first rank needs no second look.
    squeeze: f64,
}

impl TrueZipfian {
    /// Over `items` items; `theta` is over 0.
    pub(super) fn new(items: u64, theta: f64) -> Self {
        Self {
            items,
            theta,
            at_half: area(1.5, theta) - 1.0,
            at_end: area(items as f64 + 0.5, theta),
            squeeze: 2.0 - area_inverse(area(2.5, theta) - 2.0f64.powf(-theta), theta),
        }
    }

    /// Makes it one over `items` items.
    pub(super) fn set_items(&mut self, items: u64) {
        if items != self.items {
            self.items = items;
            self.at_end = area(items as f64 + 0.5, self.theta);
        }
    }

    /// A rank from 0.
    pub(super) fn next(&self, rng: &mut SplitMix64) -> u64 {
        let theta = self.theta;
        loop {
            let drawn = self.at_end + rng.fraction() * (self.at_half - self.at_end);
            let place = area_inverse(drawn, theta);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "over 0.5")]
            let rank = (place.round() as u64).clamp(1, self.items);
            let at = rank as f64;
            if at - place <= self.squeeze || drawn >= area(at + 0.5, theta) - at.powf(-theta) {
                return rank - 1;
            }
        }
    }
}

/// The area under 1 / x^theta from 1 to `x`, and its inverse. Written so that they stay exact
/// where theta is near 1, and are the logarithm and its inverse at 1.
fn area(x: f64, theta: f64) -> f64 {
    let power = 1.0 - theta;
    if power == 0.0 { x.ln() } else { (power * x.ln()).exp_m1() / power }
}

fn area_inverse(area: f64, theta: f64) -> f64 {
    let power = 1.0 - theta;
    if power == 0.0 { area.exp() } else { ((area * power).ln_1p() / power).exp() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// YCSB's constant for the ten thousand million items of its scrambled generator.
    #[test]
    fn the_sum_is_the_published_one() {
        let published = 26.469_028_201_783_02;
        assert!((zeta(10_000_000_000, THETA) - published).abs() < 1e-6);
        let plain: f64 = (1..=5_000u64).map(|rank| (rank as f64).powf(-THETA)).sum();
        assert!((zeta(5_000, THETA) - plain).abs() < 1e-12);
        assert_eq!(zeta(1, THETA), 1.0);
    }

    /// Computed by hand from the formula: n = 1000, zeta = 7.728953, eta by definition.
    #[test]
    fn the_approximation_is_that_of_the_paper() {
        let zipfian = GrayZipfian::new(1_000);
        let sum: f64 = (1..=1_000u64).map(|rank| (rank as f64).powf(-0.99)).sum();
        assert_eq!(zipfian.at(0.0), 0);
        assert_eq!(zipfian.at(0.999 / sum), 0);
        assert_eq!(zipfian.at(1.001 / sum), 1);
        assert_eq!(zipfian.at((1.0 + 0.5f64.powf(0.99)) / sum + 1e-4), 2);
        let (two, alpha) = (1.0 + 0.5f64.powf(0.99), 100.0);
        let eta = (1.0 - 0.002f64.powf(0.01)) / (1.0 - two / sum);
        for fraction in [0.3f64, 0.5, 0.9, 0.999_999] {
            let expected = 1_000.0 * (eta * fraction - eta + 1.0f64).powf(alpha);
            assert_eq!(zipfian.at(fraction) as f64, expected.floor(), "{fraction}");
        }
    }

    #[test]
    fn growing_is_the_same_as_being_made_so_large() {
        let mut grown = GrayZipfian::new(10);
        grown.grow(700);
        grown.grow(2_000);
        let made = GrayZipfian::new(2_000);
        assert!((grown.zeta - made.zeta).abs() < 1e-9 && (grown.eta - made.eta).abs() < 1e-12);
    }

    fn counts(items: usize, mut next: impl FnMut() -> u64) -> Vec<f64> {
        let mut counts = vec![0.0; items];
        for _ in 0..1_000_000 {
            counts[usize::try_from(next()).unwrap()] += 1.0;
        }
        counts
    }

    /// Every rank's count is within five standard deviations of its expectation, or of one where
    /// hardly any is expected.
    #[test]
    fn the_exact_generator_is_exact() {
        let mut rng = SplitMix64::new(42);
        for theta in [0.1, 0.5, THETA, 0.999_999_999, 1.0, 1.2, 3.0] {
            let zipfian = TrueZipfian::new(500, theta);
            let counts = counts(500, || zipfian.next(&mut rng));
            let share = |rank: usize| (rank as f64).powf(-theta);
            let sum: f64 = (1..=500).map(share).sum();
            for (at, count) in counts.iter().enumerate() {
                let expected = 1e6 * share(at + 1) / sum;
                let allowed = 5.0 * expected.max(1.0).sqrt();
                assert!((count - expected).abs() < allowed, "{theta}, {at}: {count} {expected}");
            }
            let one = TrueZipfian::new(1, theta);
            assert!((0..100).all(|_| one.next(&mut rng) == 0));
        }
    }

    /// The two first ranks are exact, the others near: within a fifth of their expectation.
    #[test]
    fn the_approximation_is_near() {
        let mut rng = SplitMix64::new(42);
        let zipfian = GrayZipfian::new(500);
        let counts = counts(500, || zipfian.next(&mut rng));
        let sum = zeta(500, THETA);
        let expected = |at: usize| 1e6 * ((at + 1) as f64).powf(-THETA) / sum;
        for (at, &count) in counts.iter().enumerate().take(2) {
            let expected = expected(at);
            assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{at}: {count} {expected}");
        }
        for range in [2..10, 10..100, 100..500] {
            let count: f64 = counts[range.clone()].iter().sum();
            let expected: f64 = range.clone().map(expected).sum();
            assert!((count / expected - 1.0).abs() < 0.2, "{range:?}: {count} {expected}");
        }
    }
}
