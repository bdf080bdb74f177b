//! Bacon texts by number, so that the text of record N is derived without those before it.

use std::collections::HashSet;

use xxhash_rust::xxh3::xxh3_64;

use super::bacon::{PARAGRAPH_COUNT, write_paragraph};
use super::rng::SplitMix64;

/// Texts by number: millions of millions of them, each derived in the time of a few copies.
///
/// Every paragraph comes in [`VARIANTS`] variants, written once; a text is one variant of each.
/// So two texts of different numbers differ, and even the 24 texts in 64 KiB seldom share a
/// paragraph: they compress like texts that were each written anew.
pub struct Texts {
    seed: u64,
    /// One after the other all variants of the first paragraph, of the second, and so on.
    variants: Vec<u8>,
    /// Where each variant ends.
    ends: Vec<usize>,
}

/// The variants of each paragraph.
pub const VARIANTS: usize = 1 << VARIANT_BITS;
const VARIANT_BITS: u32 = 12;

/// The texts before they repeat: 2^60.
pub const TEXT_COUNT: u64 = 1 << (VARIANT_BITS as usize * PARAGRAPH_COUNT);

impl Texts {
    /// The texts of `seed`, with `newline` for every newline.
    pub fn new(seed: u64, newline: &[u8]) -> Self {
        let mut rng = SplitMix64::for_index(seed, u64::from_le_bytes(*b"the meat"));
        let (mut variants, mut ends) = (Vec::new(), Vec::new());
        for number in 0..PARAGRAPH_COUNT {
            let mut seen = HashSet::with_capacity(VARIANTS);
            while seen.len() < VARIANTS {
                let start = variants.len();
                write_paragraph(&mut rng, number, newline, &mut variants);
                if seen.insert(xxh3_64(&variants[start..])) {
                    ends.push(variants.len());
                } else {
                    variants.truncate(start);
                }
            }
        }
        Self { seed, variants, ends }
    }

    /// Appends text `number`; numbers that are equal modulo [`TEXT_COUNT`] have the same text.
    pub fn write(&self, number: u64, out: &mut Vec<u8>) {
        let mut choices = self.scramble(number % TEXT_COUNT);
        for paragraph in 0..PARAGRAPH_COUNT {
            #[expect(clippy::cast_possible_truncation, reason = "below the number of variants")]
            let variant = choices as usize % VARIANTS;
            choices >>= VARIANT_BITS;
            let at = paragraph * VARIANTS + variant;
            let start = if at == 0 { 0 } else { self.ends[at - 1] };
            out.extend_from_slice(&self.variants[start..self.ends[at]]);
        }
    }

    /// A bijection of the text numbers, so that neighbours have no paragraph in common.
    fn scramble(&self, number: u64) -> u64 {
        let mask = TEXT_COUNT - 1;
        let mut number = number.wrapping_add(self.seed) & mask;
        for _ in 0..2 {
            number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask;
            number ^= number >> 31;
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first texts of seed 42.
    fn texts(count: u64) -> impl Iterator<Item = String> {
        let texts = Texts::new(42, b"\n");
        (0..count).map(move |number| {
            let mut out = Vec::new();
            texts.write(number, &mut out);
            String::from_utf8(out).unwrap()
        })
    }

    #[test]
    fn every_text_has_the_published_size() {
        assert!(texts(500).all(|text| text.len() == crate::workload::bacon::TEXT_BYTES));
    }

    /// What sharing paragraphs saves a compressor must be lost in the noise. The expected ratios
    /// were measured on bacon text of another generator.
    #[test]
    fn texts_compress_like_texts_that_share_nothing() {
        let shared: String = texts(2_000).collect();
        let mut apart = Vec::new();
        let mut rng = SplitMix64::new(5);
        for _ in 0..2_000 {
            for number in 0..PARAGRAPH_COUNT {
                write_paragraph(&mut rng, number, b"\n", &mut apart);
            }
        }
        for (block, expected) in [(4 << 10, 2.56), (16 << 10, 3.04), (64 << 10, 3.19)] {
            let (ratio, apart) = (ratio(shared.as_bytes(), block), ratio(&apart, block));
            assert!((ratio / apart - 1.0).abs() < 0.01, "{block}: {ratio} against {apart}");
            assert!((ratio / expected - 1.0).abs() < 0.1, "{block}: {ratio}");
        }
    }

    /// The mean Snappy ratio of `bytes` cut into blocks.
    fn ratio(bytes: &[u8], block: usize) -> f64 {
        let compressed: usize = bytes
            .chunks_exact(block)
            .map(|block| snap::raw::Encoder::new().compress_vec(block).unwrap().len())
            .sum();
        (bytes.len() / block * block) as f64 / compressed as f64
    }

    #[test]
    fn no_two_of_many_texts_are_equal_and_neighbours_share_no_paragraph() {
        let mut seen = HashSet::new();
        let mut before: Vec<String> = Vec::new();
        let mut shared = 0;
        for text in texts(20_000) {
            assert!(seen.insert(xxh3_64(text.as_bytes())));
            let paragraphs: Vec<String> = text.split("\n\n").map(str::to_owned).collect();
            shared += paragraphs.iter().zip(&before).filter(|(a, b)| a == b).count();
            before = paragraphs;
        }
        // By chance 1 of 4,096 paragraphs is the one before: 24 of 100,000.
        assert!(shared < 60, "{shared} paragraphs are the same as in the text before");
    }

    #[test]
    fn the_numbers_are_scrambled_without_collision() {
        let texts = Texts { seed: 7, variants: Vec::new(), ends: Vec::new() };
        let edges = (0..1_000).chain(TEXT_COUNT - 1_000..TEXT_COUNT);
        let seen: HashSet<u64> = edges.map(|number| texts.scramble(number)).collect();
        assert_eq!(seen.len(), 2_000);
        assert!(seen.iter().all(|&number| number < TEXT_COUNT));
    }

    #[test]
    fn the_same_seed_writes_the_same_text_for_ever() {
        let mut out = Vec::new();
        Texts::new(42, b"\n").write(0, &mut out);
        assert_eq!(xxh3_64(&out), 7_016_043_897_303_293_304);
        let mut other = Vec::new();
        Texts::new(43, b"\n").write(0, &mut other);
        assert_ne!(out, other);
    }
}
