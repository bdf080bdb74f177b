//! The one source of randomness of the workloads: SplitMix64 (Steele, Lea, Flood, 2014).
//!
//! Small enough to be started anew for every record, so that record N is derived without the
//! records before it; and its stream is fixed for ever, so that a seed in an old result still
//! means the same data.

/// A stream of pseudo-random numbers.
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl SplitMix64 {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The stream of record `index` under `seed`: another one for every index.
    pub fn for_index(seed: u64, index: u64) -> Self {
        Self(mix(mix(seed).wrapping_add(STEP) ^ index))
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number below `bound`, which is not zero. The bias of the multiplication is below
    /// `bound` / 2^64.
    pub fn below(&mut self, bound: usize) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "below `bound`, which is a usize")]
        {
            self.below_u64(bound as u64) as usize
        }
    }

    /// The same of numbers of records and operations, whatever the machine's size of a pointer.
    pub fn below_u64(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.next_u64()) * u128::from(bound);
        (product >> 64) as u64
    }

    /// A number from 0 up to, but without, 1.
    pub fn fraction(&mut self) -> f64 {
        const STEPS: f64 = (1u64 << 53) as f64;
        (self.next_u64() >> 11) as f64 / STEPS
    }

    /// Puts `items` in random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// A bijection of the 64-bit numbers in which every output bit depends on every input bit.
pub fn mix(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first five numbers of seed 1234567 as other implementations print them.
    #[test]
    fn the_stream_is_the_published_one() {
        let mut rng = SplitMix64::new(1_234_567);
        let stream: Vec<u64> = (0..5).map(|_| rng.next_u64()).collect();
        assert_eq!(
            stream,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821,
            ]
        );
    }

    #[test]
    fn numbers_below_a_bound_reach_all_of_them_about_equally() {
        let mut rng = SplitMix64::new(7);
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[rng.below(10)] += 1;
        }
        assert!(counts.iter().all(|&count| (9_500..10_500).contains(&count)), "{counts:?}");
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        SplitMix64::new(3).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
