//! Shares of operations and values: drawing in proportion, and spreading evenly.

/// Things, each with its share.
#[derive(Debug, Clone)]
pub(super) struct Shares<T> {
    /// Each with the sum of the shares up to it; those without a share are left out.
    sums: Vec<(f64, T)>,
}

impl<T: Copy> Shares<T> {
    pub(super) fn new(shares: impl IntoIterator<Item = (T, f64)>) -> Self {
        let mut sum = 0.0;
        let shares = shares.into_iter().filter(|(_, share)| *share > 0.0);
        let sums = shares.map(|(thing, share)| {
            sum += share;
            (sum, thing)
        });
        Self { sums: sums.collect() }
    }

    /// What has a share.
    pub(super) fn things(&self) -> impl ExactSizeIterator<Item = T> {
        self.sums.iter().map(|(_, thing)| *thing)
    }

    /// The sum of all shares.
    pub(super) fn sum(&self) -> f64 {
        self.sums.last().map_or(0.0, |(sum, _)| *sum)
    }

    /// What lies at `place`, which is from 0 to their sum: the last of them where rounding has made
    /// the sum smaller. `None` if nothing has a share.
    pub(super) fn at(&self, place: f64) -> Option<T> {
        let found = self.sums.iter().find(|(sum, _)| place < *sum).or(self.sums.last());
        found.map(|(_, thing)| *thing)
    }
}

/// Of `part` steps that are spread evenly over `whole`, those before `step`; the first step is one.
pub(super) fn spread_before(step: u64, part: u64, whole: u64) -> u64 {
    let product = u128::from(step) * u128::from(part);
    u64::try_from(product.div_ceil(whole.into())).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_belong_to_shares_in_their_order() {
        let shares = Shares::new([('a', 0.5), ('b', 0.0), ('c', 0.25)]);
        assert_eq!((shares.sum(), shares.things().collect::<String>()), (0.75, "ac".into()));
        let found = [0.0, 0.49, 0.5, 0.74, 0.75, 1.0].map(|place| shares.at(place).unwrap());
        assert_eq!(found, ['a', 'a', 'c', 'c', 'c', 'c']);
        assert_eq!(Shares::<char>::new([]).at(0.0), None);
    }

    /// Of 3 in 10: the first, and then one in each third.
    #[test]
    fn parts_are_spread_evenly_and_begin_at_once() {
        let before: Vec<u64> = (0..=10).map(|step| spread_before(step, 3, 10)).collect();
        assert_eq!(before, [0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3]);
        assert_eq!(spread_before(u64::MAX, u64::MAX, u64::MAX), u64::MAX);
    }
}
