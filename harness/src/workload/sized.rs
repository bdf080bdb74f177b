//! Values of any size, each derived from its record's number, its version and its size.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::keys::hex_digit;
use super::rng::{SplitMix64, mix};
use super::texts::Texts;

/// What values are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Bacon text, which compresses to about a third.
    #[default]
    Text,
    /// Random bytes, which nothing compresses.
    Random,
}

impl Content {
    /// In a word or two.
    pub fn words(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Random => "random bytes",
        }
    }
}

/// The longest key: Bitcask's format has 16 bits for its length.
pub const MOST_KEY_BYTES: u32 = 65_535;

/// The largest value: those of one round lie in memory.
pub const MOST_VALUE_BYTES: u32 = 16 << 20;

/// The values of a seed.
///
/// A value of text begins with 16 hexadecimal digits that tell versions and records apart, as far
/// as it is so long: else the check could not tell an old value from a new one.
pub(super) struct SizedValues {
    seed: u64,
    texts: Option<Texts>,
}

const DIGITS: usize = 16;

impl SizedValues {
    /// The values of `seed`. Writes the paragraphs that texts are made of: some 50 ms.
    pub(super) fn new(content: Content, seed: u64) -> Self {
        let texts = (content == Content::Text).then(|| Texts::new(seed, b"\n"));
        Self { seed: mix(seed), texts }
    }

    /// Appends the value of `bytes` bytes that `record` has at `version`.
    pub(super) fn write(&self, record: u64, version: u64, bytes: usize, out: &mut Vec<u8>) {
        let end = out.len() + bytes;
        let number = mix(mix(record ^ self.seed).wrapping_add(version));
        match &self.texts {
            Some(texts) => {
                let mut rest = number;
                out.extend([0; DIGITS].map(|_| {
                    rest = rest.rotate_left(4);
                    hex_digit(rest)
                }));
                let mut text = number;
                while out.len() < end {
                    texts.write(text, out);
                    text = text.wrapping_add(1);
                }
            }
            None => {
                let mut rng = SplitMix64::new(number);
                while out.len() < end {
                    out.extend_from_slice(&rng.next_u64().to_le_bytes());
                }
            }
        }
        out.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_size_and_differ_by_record_version_and_seed() {
        for content in [Content::Text, Content::Random] {
            let (values, others) = (SizedValues::new(content, 42), SizedValues::new(content, 43));
            let value = |values: &SizedValues, record, version, bytes| {
                let mut value = b"before".to_vec();
                values.write(record, version, bytes, &mut value);
                assert!(value.starts_with(b"before"));
                value.split_off(6)
            };
            for bytes in [0, 1, 15, 16, 17, 2_616, 2_617, 2_618, 10_000] {
                assert_eq!(value(&values, 3, 5, bytes).len(), bytes);
            }
            let mut seen = std::collections::HashSet::new();
            for record in 0..50 {
                for version in 0..50 {
                    assert!(seen.insert(value(&values, record, version, 12)));
                }
            }
            assert!(seen.insert(value(&others, 0, 0, 12)));
            // The beginning of a longer value is the shorter one: a size is no seed.
            assert!(value(&values, 7, 1, 5_000).starts_with(&value(&values, 7, 1, 3_000)));
        }
    }

    #[test]
    fn text_compresses_and_random_bytes_do_not() {
        for (content, least, most) in [(Content::Text, 0.2, 0.6), (Content::Random, 1.0, 1.1)] {
            let values = SizedValues::new(content, 42);
            let mut bytes = Vec::new();
            (0..100).for_each(|record| values.write(record, 0, 3_000, &mut bytes));
            let compressed = snap::raw::Encoder::new().compress_vec(&bytes).unwrap();
            let ratio = compressed.len() as f64 / bytes.len() as f64;
            assert!((least..most).contains(&ratio), "{content:?}: {ratio}");
        }
    }
}
