//! The entries, as db_bench makes them.
//!
//! ```text
//! key    0000000000000123        the number in 16 decimal digits
//! value  pieces of 100 bytes, each some random printable characters and their repetition, so that
//!        it compresses to the ratio asked for
//! ```
//! db_bench takes its values from one megabyte of such pieces, over and over; here every value has
//! pieces of its own, which no engine has seen before.

use std::io::Write;

use crate::workload::job::Records;
use crate::workload::rng::SplitMix64;

/// Digits of every key.
pub(super) const KEY_BYTES: u64 = 16;

/// Bytes of the values of `fill100K`.
pub(super) const LARGE_VALUE_BYTES: u64 = 100_000;

/// The bytes of a piece.
const PIECE_BYTES: usize = 100;

/// A number with this bit stands for a key that is not there: that of the number, less its last
/// digit.
const MISSING: u64 = 1 << 63;

/// Steps that a phase can have; a version tells phase and step.
const STEP_BITS: u32 = 40;

/// More entries would have versions that are not told apart.
pub(super) const MOST_ENTRIES: u64 = 1 << STEP_BITS;

/// A version with this bit was put by the thread beside.
const BESIDE: u64 = 1 << 62;

/// The number of a key that is never put.
pub(super) fn missing(number: u64) -> u64 {
    number | MISSING
}

/// The number of an entry, there or not.
pub(super) fn number(record: u64) -> u64 {
    record & !MISSING
}

/// What step `step` of phase number `phase` puts.
pub(super) fn version(phase: usize, step: u64) -> u64 {
    ((phase as u64) << STEP_BITS) | step
}

/// The same of the thread beside. It may do more steps than a phase has: only the value repeats.
pub(super) fn version_beside(phase: usize, step: u64) -> u64 {
    version(phase, step % MOST_ENTRIES) | BESIDE
}

/// The entries of a seed.
pub(super) struct Entries {
    pub(super) seed: u64,
    pub(super) compression_ratio: f64,
    /// Bytes of the values that each phase puts.
    pub(super) value_bytes: Vec<u64>,
}

impl Records for Entries {
    fn write_key(&self, record: u64, out: &mut Vec<u8>) {
        // Writing to memory does not fail.
        let _ = write!(out, "{:016}", number(record));
        if record & MISSING != 0 {
            out.pop();
        }
    }

    fn write_value(&self, record: u64, version: u64, out: &mut Vec<u8>) {
        let phase = usize::try_from((version & !BESIDE) >> STEP_BITS).unwrap_or(usize::MAX);
        let bytes = self.value_bytes.get(phase).copied().unwrap_or(0);
        let end = out.len() + usize::try_from(bytes).unwrap_or(0);
        let mut rng = SplitMix64::for_index(self.seed ^ version, record);
        while out.len() < end {
            let piece = PIECE_BYTES.min(end - out.len());
            write_piece(&mut rng, piece, self.compression_ratio, out);
        }
    }

    fn record_of(&self, key: &[u8]) -> Option<u64> {
        let digits = key.len() as u64 == KEY_BYTES && key.iter().all(u8::is_ascii_digit);
        std::str::from_utf8(key).ok().filter(|_| digits)?.parse().ok()
    }
}

/// At least one random character, as db_bench.
fn write_piece(rng: &mut SplitMix64, bytes: usize, ratio: f64, out: &mut Vec<u8>) {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 100")]
    let random = ((bytes as f64 * ratio) as usize).clamp(1, bytes);
    let start = out.len();
    while out.len() < start + random {
        let characters = rng.next_u64().to_le_bytes().map(printable);
        out.extend_from_slice(&characters[..characters.len().min(start + random - out.len())]);
    }
    for at in 0..bytes - random {
        out.push(out[start + at]);
    }
}

/// One of the 95 characters from the space on.
fn printable(byte: u8) -> u8 {
    b' ' + u8::try_from((u16::from(byte) * 95) >> 8).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(compression_ratio: f64) -> Entries {
        Entries { seed: 42, compression_ratio, value_bytes: vec![100, 100_000, 30] }
    }

    fn value(ratio: f64, record: u64, version: u64) -> Vec<u8> {
        let mut value = Vec::new();
        entries(ratio).write_value(record, version, &mut value);
        value
    }

    #[test]
    fn keys_are_sixteen_digits_and_missing_ones_fifteen() {
        let key = |record| {
            let mut key = Vec::new();
            entries(0.5).write_key(record, &mut key);
            String::from_utf8(key).unwrap()
        };
        assert_eq!(key(123), "0000000000000123");
        assert_eq!(key(missing(123)), "000000000000012");
        assert_eq!(entries(0.5).record_of(b"0000000000000123"), Some(123));
        for wrong in ["000000000000012", "00000000000001x3", ""] {
            assert_eq!(entries(0.5).record_of(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn values_have_the_length_of_their_phase_and_every_version_is_another() {
        assert_eq!(value(0.5, 7, version(0, 9)).len(), 100);
        assert_eq!(value(0.5, 7, version(1, 9)).len(), 100_000);
        assert_eq!(value(0.5, 7, version_beside(2, 9)).len(), 30);
        let one = value(0.5, 7, version(0, 9));
        assert_eq!(one, value(0.5, 7, version(0, 9)));
        for other in [value(0.5, 8, version(0, 9)), value(0.5, 7, version(0, 10))] {
            assert_ne!(one, other);
        }
        assert_ne!(one, value(0.5, 7, version_beside(0, 9)));
        assert!(one.iter().all(|byte| (b' '..=b'~').contains(byte)));
        assert_eq!(one[..50], one[50..], "half of it, twice");
    }

    /// Snappy in blocks of 4 KiB, as LevelDB has them; each piece costs a few bytes more.
    #[test]
    fn values_compress_to_the_ratio() {
        for (ratio, least, most) in [(0.5, 0.5, 0.58), (0.25, 0.25, 0.34), (1.0, 0.99, 1.01)] {
            let block: Vec<u8> =
                (0..40).flat_map(|record| value(ratio, record, version(0, record))).collect();
            let compressed = snap::raw::Encoder::new().compress_vec(&block).unwrap();
            let measured = compressed.len() as f64 / block.len() as f64;
            assert!((least..most).contains(&measured), "{ratio}: {measured}");
        }
    }
}
