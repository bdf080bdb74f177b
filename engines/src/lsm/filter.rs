//! Filters: which user keys a stretch of a table surely does not hold.
//!
//! The filter block, stored as it is, without compression:
//! ```text
//! filter 0, filter 1, ...
//! fixed32 for each filter: where it starts
//! fixed32 where those start
//! u8      base log: filter i covers the data blocks that start in the i-th 2^base log bytes
//! ```
//! A filter is a Bloom filter: the bits, then one byte that tells how many bits of them a key
//! sets. An empty filter covers no key.

use super::block::Origin;
use super::coding::Cursor;
use crate::{Error, Result};

/// The filter block's key in the metaindex block.
pub(crate) const FILTER_NAME: &[u8] = b"filter.leveldb.BuiltinBloomFilter2";

/// The one base log that is ever written.
const BASE_LOG: u8 = 11;
const HASH_SEED: u32 = 0xbc9f_1d34;
/// A stored count of probes over this is left for other filters to come.
const MAX_PROBES: u8 = 30;

/// Builds the filter block of a table.
#[derive(Debug)]
pub(crate) struct FilterBlockBuilder {
    bits_per_key: u32,
    /// The hashes of the keys since the last filter.
    hashes: Vec<u32>,
    out: Vec<u8>,
    offsets: Vec<u32>,
}

impl FilterBlockBuilder {
    pub(crate) fn new(bits_per_key: u32) -> Self {
        Self { bits_per_key, hashes: Vec::new(), out: Vec::new(), offsets: Vec::new() }
    }

    /// Tells where the next data block starts in the file.
    pub(crate) fn start_block(&mut self, offset: u64) {
        while (self.offsets.len() as u64) < offset >> BASE_LOG {
            self.end_filter();
        }
    }

    /// Adds a key of the current data block.
    pub(crate) fn add(&mut self, user_key: &[u8]) {
        self.hashes.push(bloom_hash(user_key));
    }

    /// Ends the block and returns it.
    pub(crate) fn finish(&mut self) -> &[u8] {
        if !self.hashes.is_empty() {
            self.end_filter();
        }
        let offsets_start = u32::try_from(self.out.len()).unwrap_or(u32::MAX);
        for offset in self.offsets.iter().chain([&offsets_start]) {
            self.out.extend_from_slice(&offset.to_le_bytes());
        }
        self.out.push(BASE_LOG);
        &self.out
    }

    fn end_filter(&mut self) {
        // A filter block of 4 GiB would take over a billion keys in one table.
        self.offsets.push(u32::try_from(self.out.len()).unwrap_or(u32::MAX));
        if !self.hashes.is_empty() {
            push_bloom(&mut self.out, &self.hashes, self.bits_per_key);
            self.hashes.clear();
        }
    }
}

/// The filter block of a table.
#[derive(Debug)]
pub(crate) struct FilterBlock {
    bytes: Vec<u8>,
    /// Where the offsets start.
    offsets: usize,
    filter_count: usize,
}

impl FilterBlock {
    /// # Errors
    /// [`Error::Corruption`] if the parts do not fit.
    pub(crate) fn new(bytes: Vec<u8>, origin: &Origin) -> Result<Self> {
        Self::split(&bytes)
            .map(|(offsets, filter_count)| Self { bytes, offsets, filter_count })
            .map_err(|problem| Error::corruption(origin.path.as_path(), origin.offset, problem))
    }

    /// Whether the data block that starts at `block_offset` may hold `user_key`.
    pub(crate) fn may_match(&self, block_offset: u64, user_key: &[u8]) -> bool {
        let index = usize::try_from(block_offset >> BASE_LOG).unwrap_or(usize::MAX);
        if index >= self.filter_count {
            // Not told of: LevelDB looks into the block then.
            return true;
        }
        match self.filter(index) {
            Some([]) => false,
            Some(filter) => bloom_may_match(filter, user_key),
            None => true,
        }
    }

    /// The bytes of memory that the filter takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    fn filter(&self, index: usize) -> Option<&[u8]> {
        // The offset behind the last one is where the offsets start.
        let mut cursor = Cursor::new(self.bytes.get(self.offsets + 4 * index..)?);
        let mut offset = || usize::try_from(cursor.fixed32("").ok()?).ok();
        let (start, end) = (offset()?, offset()?);
        self.bytes.get(start..end.min(self.offsets))
    }

    fn split(bytes: &[u8]) -> std::result::Result<(usize, usize), String> {
        let Some((rest, [s0, s1, s2, s3, base_log])) = bytes.split_last_chunk::<5>() else {
            return Err(format!("a filter block of {} bytes", bytes.len()));
        };
        if *base_log != BASE_LOG {
            return Err(format!("filter block: base log {base_log}, not {BASE_LOG}"));
        }
        let offsets = usize::try_from(u32::from_le_bytes([*s0, *s1, *s2, *s3]))
            .ok()
            .filter(|offsets| *offsets <= rest.len() && (rest.len() - offsets) % 4 == 0)
            .ok_or("filter block: the offsets do not fit")?;
        let mut previous = 0;
        for offset in rest[offsets..].as_chunks::<4>().0 {
            let offset = u32::from_le_bytes(*offset);
            if offset < previous || u64::from(offset) > offsets as u64 {
                return Err("filter block: a filter outside the block".to_owned());
            }
            previous = offset;
        }
        Ok((offsets, (rest.len() - offsets) / 4))
    }
}

/// Appends the Bloom filter of the keys with these hashes.
fn push_bloom(out: &mut Vec<u8>, hashes: &[u32], bits_per_key: u32) {
    // 0.69 is close to the natural logarithm of 2, where the fewest keys pass wrongly.
    let probes = u64::from(bits_per_key) * 69 / 100;
    let probes = u8::try_from(probes).unwrap_or(MAX_PROBES).clamp(1, MAX_PROBES);
    // A short filter would let nearly everything pass.
    let bits = (hashes.len() as u64).saturating_mul(bits_per_key.into()).max(64);
    let byte_count = bits.div_ceil(8);
    let bits = byte_count * 8;
    let start = out.len();
    out.resize(start + usize::try_from(byte_count).unwrap_or(usize::MAX), 0);
    for &hash in hashes {
        for bit in probe_bits(hash, probes, bits) {
            out[start + (bit >> 3)] |= 1 << (bit & 7);
        }
    }
    out.push(probes);
}

fn bloom_may_match(filter: &[u8], user_key: &[u8]) -> bool {
    let Some((&probes, bits)) = filter.split_last() else { return false };
    if bits.is_empty() {
        return false;
    }
    if probes > MAX_PROBES {
        return true;
    }
    probe_bits(bloom_hash(user_key), probes, bits.len() as u64 * 8)
        .all(|bit| bits[bit >> 3] & 1 << (bit & 7) != 0)
}

/// The bits of a key: steps of a rotated hash from the hash on.
fn probe_bits(hash: u32, probes: u8, bits: u64) -> impl Iterator<Item = usize> {
    let delta = hash.rotate_right(17);
    let mut at = hash;
    (0..probes).map(move |_| {
        #[expect(clippy::cast_possible_truncation, reason = "less than the filter's length")]
        let bit = (u64::from(at) % bits) as usize;
        at = at.wrapping_add(delta);
        bit
    })
}

/// LevelDB's hash, related to Murmur's.
fn bloom_hash(key: &[u8]) -> u32 {
    const MULTIPLIER: u32 = 0xc6a4_a793;
    #[expect(clippy::cast_possible_truncation, reason = "as LevelDB does")]
    let length = key.len() as u32;
    let mut hash = HASH_SEED ^ length.wrapping_mul(MULTIPLIER);
    let (words, rest) = key.as_chunks::<4>();
    for word in words {
        hash = hash.wrapping_add(u32::from_le_bytes(*word)).wrapping_mul(MULTIPLIER);
        hash ^= hash >> 16;
    }
    if !rest.is_empty() {
        let last = rest.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        hash = hash.wrapping_add(last).wrapping_mul(MULTIPLIER);
        hash ^= hash >> 24;
    }
    hash
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    fn open(bytes: &[u8]) -> Result<FilterBlock> {
        let path = Arc::new(PathBuf::from("000005.ldb"));
        FilterBlock::new(bytes.to_vec(), &Origin { path, offset: 77 })
    }

    fn key(number: u32) -> [u8; 4] {
        number.to_le_bytes()
    }

    #[test]
    fn the_hash_is_leveldbs() {
        for (key, hash) in [
            (&b""[..], 0xbc9f_1d34),
            (b"\x62", 0xef13_45c4),
            (b"\xc3\x97", 0x5b66_3814),
            (b"\xe2\x99\xa5", 0x323c_078f),
            (b"\xe1\x80\xb9\x32", 0xed21_633a),
        ] {
            assert_eq!(bloom_hash(key), hash, "{key:?}");
        }
    }

    #[test]
    fn every_added_key_may_match_and_few_others() {
        for count in [1, 10, 100, 10_000] {
            let mut filter = Vec::new();
            let hashes: Vec<_> = (0..count).map(|number| bloom_hash(&key(number))).collect();
            push_bloom(&mut filter, &hashes, 10);
            assert!(filter.len() <= count as usize * 10 / 8 + 40);
            assert!((0..count).all(|number| bloom_may_match(&filter, &key(number))));
            let passed = (0..10_000)
                .filter(|number| bloom_may_match(&filter, &key(number + 1_000_000_000)))
                .count();
            assert!(passed < 200, "{passed} of 10000 pass with {count} keys");
        }
    }

    #[test]
    fn an_empty_filter_block_has_the_documented_bytes() {
        let mut builder = FilterBlockBuilder::new(10);
        assert_eq!(builder.finish(), b"\0\0\0\0\x0b");
        assert!(open(b"\0\0\0\0\x0b").unwrap().may_match(0, b"any"));
    }

    #[test]
    fn filters_cover_2_kib_of_file_each() {
        let mut builder = FilterBlockBuilder::new(10);
        for (offset, keys) in [(0, [1, 2]), (2000, [3, 4]), (3100, [5, 6]), (9000, [7, 8])] {
            builder.start_block(offset);
            keys.iter().for_each(|number| builder.add(&key(*number)));
        }
        let block = open(builder.finish()).unwrap();
        // Offsets under 2048 share the first filter, 3100 has the second, 9000 the fifth.
        assert_eq!(block.filter_count, 5);
        for (offset, number, expected) in [
            (0, 1, true),
            (0, 4, true),
            (2000, 4, true),
            (0, 5, false),
            (3100, 5, true),
            (3100, 1, false),
            (4096, 1, false),
            (9000, 8, true),
            (9000, 6, false),
            // Past the last filter nothing is known.
            (10_240, 1, true),
            (u64::MAX, 1, true),
        ] {
            assert_eq!(block.may_match(offset, &key(number)), expected, "{offset} {number}");
        }
    }

    #[test]
    fn a_damaged_block_is_refused_and_an_unknown_filter_lets_pass() {
        for wrong in [
            &b""[..],
            b"\0\0\0\x0b",
            b"\0\0\0\0\x0c",
            b"\x01\0\0\0\x0b",
            b"\xff\xff\xff\xff\x0b",
            b"\x09\0\0\0\0\0\0\0\x0b",
            b"\0\0\0\0\xff",
            b"ab\x01\0\0\0\x02\0\0\0\x03\x0b",
        ] {
            let error = open(wrong).unwrap_err();
            assert!(error.is_corruption() && error.to_string().contains("77"), "{error}");
        }
        assert!(bloom_may_match(b"\0\0\0\0\0\0\0\0\x1f", b"any"));
        assert!(!bloom_may_match(b"\0\0\0\0\0\0\0\0\x1e", b"any"));
        assert!(!bloom_may_match(b"\x06", b"any"));
    }

    proptest! {
        #[test]
        fn random_bytes_are_taken_or_refused(mut bytes: Vec<u8>, offset: u64) {
            bytes.push(11);
            if let Ok(block) = open(&bytes) {
                for offset in [0, 2048, 4096, offset] {
                    let _ = block.may_match(offset, b"key");
                }
            }
        }
    }
}
