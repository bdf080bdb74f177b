//! Keys: random UUIDs as 32 lower-case hexadecimal digits, as the published test used.
//!
//! Key N is N put through a seeded permutation of the 122 free bits of a UUID of version 4, so no
//! two keys can be equal, none has to be stored, and a key that an engine returns tells its number.
//! ```text
//! bits of N:  0 … 0 | 3 bits | 61 bits          a Feistel network over two halves of 61 bits
//! digits:     xxxxxxxx xxxx 4xxx yxxx xxxxxxxxxxxx      y is one of 8, 9, a, b
//! ```

use super::rng::mix;

/// The length of every key in bytes.
pub const KEY_BYTES: usize = 32;

/// One key.
pub type Key = [u8; KEY_BYTES];

/// The keys of a seed.
#[derive(Debug, Clone)]
pub struct Keys {
    round_keys: [u64; ROUNDS],
}

const ROUNDS: usize = 4;
const HALF_BITS: u32 = 61;
const HALF_MASK: u64 = (1 << HALF_BITS) - 1;

impl Keys {
    /// The keys of `seed`.
    pub fn new(seed: u64) -> Self {
        let mut rng = super::rng::SplitMix64::for_index(seed, u64::from_le_bytes(*b"the keys"));
        Self { round_keys: std::array::from_fn(|_| rng.next_u64()) }
    }

    /// The key of record `index`.
    pub fn key(&self, index: u64) -> Key {
        let (mut left, mut right) = (index >> HALF_BITS, index & HALF_MASK);
        for round_key in self.round_keys {
            (left, right) = (right, left ^ (mix(right ^ round_key) & HALF_MASK));
        }
        to_hex(to_uuid(left, right))
    }

    /// The record whose key this is; `None` if no record has it.
    pub fn index_of(&self, key: &[u8]) -> Option<u64> {
        let (mut left, mut right) = from_uuid(from_hex(key)?)?;
        for round_key in self.round_keys.into_iter().rev() {
            (left, right) = (right ^ (mix(left ^ round_key) & HALF_MASK), left);
        }
        let number = (u128::from(left) << HALF_BITS) | u128::from(right);
        u64::try_from(number).ok()
    }
}

const VERSION_4: u64 = 0x4000;
const VARIANT: u64 = 0b10 << 62;

/// Spreads 122 bits over a UUID: 48, version, 12, variant, 62.
fn to_uuid(left: u64, right: u64) -> (u64, u64) {
    let high = left >> 1;
    let low = ((left & 1) << HALF_BITS) | right;
    (((high >> 12) << 16) | VERSION_4 | (high & 0xfff), VARIANT | low)
}

fn from_uuid((high, low): (u64, u64)) -> Option<(u64, u64)> {
    if high & 0xf000 != VERSION_4 || low & (0b11 << 62) != VARIANT {
        return None;
    }
    let left = ((high >> 16) << 13) | ((high & 0xfff) << 1) | ((low >> HALF_BITS) & 1);
    Some((left, low & HALF_MASK))
}

/// The digit of the lowest four bits.
pub(super) fn hex_digit(number: u64) -> u8 {
    DIGITS[usize::from(number.to_le_bytes()[0] & 0xf)]
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

fn to_hex((high, low): (u64, u64)) -> Key {
    let mut key = [0; KEY_BYTES];
    for (half, number) in [high, low].into_iter().enumerate() {
        for (at, byte) in number.to_be_bytes().into_iter().enumerate() {
            key[half * 16 + at * 2] = hex_digit(u64::from(byte >> 4));
            key[half * 16 + at * 2 + 1] = hex_digit(byte.into());
        }
    }
    key
}

/// Reads lower-case digits only: an engine that changed the case changed the key.
fn from_hex(key: &[u8]) -> Option<(u64, u64)> {
    let key: &Key = key.try_into().ok()?;
    let mut number = 0u128;
    for &digit in key {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        number = (number << 4) | u128::from(value);
    }
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of 128 bits")]
    {
        Some(((number >> 64) as u64, number as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_million_keys_are_distinct_uuids_that_tell_their_number() {
        let keys = Keys::new(42);
        let mut seen = HashSet::new();
        for index in 0..1_000_000 {
            let key = keys.key(index);
            assert_eq!(key[12], b'4');
            assert!(b"89ab".contains(&key[16]));
            assert!(key.iter().all(|digit| DIGITS.contains(digit)));
            assert_eq!(keys.index_of(&key), Some(index));
            assert!(seen.insert(key), "key {index} is there twice");
        }
    }

    #[test]
    fn the_largest_numbers_have_keys_too() {
        let keys = Keys::new(0);
        for index in [u64::MAX, u64::MAX - 1, 1 << 61, (1 << 61) - 1, 1 << 63] {
            assert_eq!(keys.index_of(&keys.key(index)), Some(index));
        }
    }

    #[test]
    fn neighbours_share_nothing_and_each_digit_is_used_about_equally() {
        let keys = Keys::new(1);
        let mut counts = [[0u32; 16]; KEY_BYTES];
        for index in 0..16_000 {
            for (place, digit) in keys.key(index).into_iter().enumerate() {
                let value = DIGITS.iter().position(|&known| known == digit).unwrap();
                counts[place][value] += 1;
            }
        }
        for (place, counts) in counts.iter().enumerate() {
            if place != 12 && place != 16 {
                assert!(counts.iter().all(|c| (800..1_200).contains(c)), "{place}: {counts:?}");
            }
        }
    }

    #[test]
    fn what_is_no_key_of_ours_has_no_number() {
        let keys = Keys::new(9);
        let key = keys.key(5);
        let mut upper = key;
        upper.make_ascii_uppercase();
        let mut version = key;
        version[12] = b'5';
        for wrong in [&key[..31], b"", &upper, &version, &[0xff; KEY_BYTES]] {
            assert_eq!(keys.index_of(wrong), None);
        }
        assert_ne!(Keys::new(10).index_of(&key), Some(5));
    }
}
