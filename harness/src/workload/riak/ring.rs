//! Riak's hash ring: which partitions hold a key.
//!
//! As in Riak, the ring is the 2^160 values of SHA-1, cut into `size` equal parts. What is hashed is
//! the pair of bucket and key in Erlang's external form:
//! ```text
//! 131 | 104 2 | 109, bucket length: u32 BE, bucket | 109, key length: u32 BE, key
//! ver.  tuple   binary                               binary
//! ```
//! Partition P begins at value P · 2^160 / size. The first copy is in the first partition that begins
//! after the hash, the others are in its successors, and partition 0 follows the last one.
//!
//! The name of the bucket was not published.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};

/// The ring, and the copies of every key on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ring {
    /// The partitions: a power of two, as Riak asks for.
    #[serde(rename = "ring_size")]
    pub size: NonZeroU32,
    /// The partitions that hold a key: `n_val`, at most all of them.
    pub copies: NonZeroU32,
}

/// The most partitions that Riak's documentation speaks of.
pub(super) const LARGEST: u32 = 1_024;

const BUCKET: &[u8] = b"items";

const EXTERNAL_FORM: u8 = 131;
const SMALL_TUPLE: u8 = 104;
const BINARY: u8 = 109;

impl Ring {
    /// The partition of the first copy of `key`.
    pub(super) fn first(self, key: &[u8]) -> u32 {
        let mut hash = Sha1::new_with_prefix([EXTERNAL_FORM, SMALL_TUPLE, 2]);
        for part in [BUCKET, key] {
            // A key of 4 GiB has no external form.
            let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
            hash.update([BINARY]);
            hash.update(length.to_be_bytes());
            hash.update(part);
        }
        let [a, b, c, d, ..] = hash.finalize().0;
        let place = u32::from_be_bytes([a, b, c, d]);
        // The size is a power of two, so the part of the ring is the highest bits.
        let part = (u64::from(place) * u64::from(self.size.get())) >> 32;
        self.successor(u32::try_from(part).unwrap_or(0), 1)
    }

    /// The partition `steps` after `partition`.
    pub(super) fn successor(self, partition: u32, steps: u32) -> u32 {
        let size = self.size.get();
        (partition % size + steps % size) % size
    }

    /// The partitions of all copies of `key`, the first one first.
    pub(super) fn holders(self, key: &[u8]) -> impl Iterator<Item = u32> {
        let first = self.first(key);
        (0..self.copies.get()).map(move |copy| self.successor(first, copy))
    }

    /// Which copy of `key` is in `partition`, from 0; `None` if none is.
    pub(super) fn copy_in(self, partition: u32, key: &[u8]) -> Option<u32> {
        let size = self.size.get();
        let steps = (partition + size - self.first(key)) % size;
        (steps < self.copies.get()).then_some(steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(size: u32, copies: u32) -> Ring {
        Ring { size: size.try_into().unwrap(), copies: copies.try_into().unwrap() }
    }

    fn holders(ring: Ring, key: &str) -> Vec<u32> {
        ring.holders(key.as_bytes()).collect()
    }

    /// By hand, from what this printed:
    /// `printf '\x83h\x02m\x00\x00\x00\x05itemsm\x00\x00\x00\x01KEY' | sha1sum`
    ///
    /// | key | hash begins with | its highest 6 bits | so the first copy is in |
    /// |---|---|---|---|
    /// | 0 | 049caffe | 1 | 2 |
    /// | 1 | 8935d598 | 34 | 35 |
    /// | 3 | f10594bf | 60 | 61 |
    /// | 4 | 69e08dcc | 26 | 27 |
    #[test]
    fn keys_are_where_riak_puts_them() {
        let riak = ring(64, 3);
        assert_eq!(holders(riak, "0"), [2, 3, 4]);
        assert_eq!(holders(riak, "1"), [35, 36, 37]);
        assert_eq!(holders(riak, "3"), [61, 62, 63]);
        assert_eq!(holders(riak, "4"), [27, 28, 29]);
        // The highest 4 bits of f1 and 69 are 15 and 6: past the last partition is the first.
        assert_eq!(holders(ring(16, 2), "3"), [0, 1]);
        assert_eq!(holders(ring(16, 2), "4"), [7, 8]);
        // All partitions, and one alone.
        assert_eq!(holders(ring(4, 4), "3"), [0, 1, 2, 3]);
        assert_eq!(holders(ring(1, 1), "3"), [0]);
    }

    #[test]
    fn a_partition_knows_which_copy_it_has() {
        let ring = ring(16, 3);
        for key in ["0", "1", "3", "4", ""] {
            let holders = holders(ring, key);
            for partition in 0..16 {
                let copy = holders.iter().position(|&holder| holder == partition);
                let copy = copy.map(|copy| u32::try_from(copy).unwrap());
                assert_eq!(ring.copy_in(partition, key.as_bytes()), copy, "{key} {partition}");
            }
        }
    }

    /// Within five standard deviations of a binomial distribution.
    #[test]
    fn every_partition_gets_its_share() {
        let ring = ring(64, 1);
        let mut counts = [0u32; 64];
        for number in 0..64_000 {
            counts[ring.first(format!("{number:032x}").as_bytes()) as usize] += 1;
        }
        assert!(counts.iter().all(|count| count.abs_diff(1_000) < 160), "{counts:?}");
    }
}
