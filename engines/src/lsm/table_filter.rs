//! A filter over a whole table, beside the filters that LevelDB reads.
//!
//! LevelDB's filters cover 2 KiB of a file each, so the index must be searched before one of them
//! can be asked. This one is asked first: most lookups of missing keys end after one cache line.
//! It is stored under a name of its own in the metaindex, where LevelDB passes over it. The block,
//! stored without compression:
//! ```text
//! lines   64 bytes each: eight fixed64
//! u8      how many bits of its line a key sets, 1 to 7
//! ```
//! A key has one line and sets bits in that line only (a blocked Bloom filter, Putze, Sanders and
//! Singler, 2007). With `h` the 64-bit hash of the user key and `mul(a, b)` the exclusive or of
//! both halves of the 128-bit product, the line is `(h >> 32) * lines >> 32`, and the bits are the
//! 9-bit pieces of `mul(h, BITS)`, the lowest first.

use super::block::Origin;
use crate::{Error, Result};

/// The filter's key in the metaindex block. A filter that is made otherwise takes another number.
pub(crate) const TABLE_FILTER_NAME: &[u8] = b"enginelab.filter1";

const LINE_BYTES: usize = 64;
const LINE_BITS: u64 = 512;
const PIECE_BITS: u32 = 9;
/// As many pieces as a number of 64 bits has.
const MAX_PROBES: u8 = 7;

/// The three numbers are the first digits of pi, made odd; any odd ones would do.
const SEED: u64 = 0x243f_6a88_85a3_08d3;
const WORD: u64 = 0x1319_8a2e_0370_7345;
const BITS: u64 = 0xa409_3822_299f_31d1;

/// What the filter knows of a user key. Persisted by way of the filter: do not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyHash(u64);

impl KeyHash {
    pub(crate) fn new(user_key: &[u8]) -> Self {
        let mut hash = SEED ^ (user_key.len() as u64).wrapping_mul(WORD);
        let (words, rest) = user_key.as_chunks::<8>();
        for word in words {
            hash = mul(hash ^ u64::from_le_bytes(*word), WORD);
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        Self(mul(mul(hash ^ u64::from_le_bytes(last), WORD), SEED))
    }

    /// All of it, as even as a hash is.
    pub(crate) fn bits64(self) -> u64 {
        self.0
    }

    fn line(self, line_count: usize) -> usize {
        let line = (u128::from(self.0 >> 32) * line_count as u128) >> 32;
        usize::try_from(line).unwrap_or_default()
    }

    /// The bits of the line, each as word and bit of it.
    fn bits(self, probes: u8) -> impl Iterator<Item = (usize, u64)> {
        let mut pieces = mul(self.0, BITS);
        (0..probes).map(move |_| {
            let piece = pieces % LINE_BITS;
            pieces >>= PIECE_BITS;
            ((piece / 64) as usize % 8, 1 << (piece % 64))
        })
    }
}

fn mul(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of 128 bits")]
    {
        product as u64 ^ (product >> 64) as u64
    }
}

/// One cache line of bits.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Line([u64; 8]);

/// Collects the keys of a table.
#[derive(Debug)]
pub(crate) struct TableFilterBuilder {
    bits_per_key: u32,
    hashes: Vec<KeyHash>,
}

impl TableFilterBuilder {
    pub(crate) fn new(bits_per_key: u32) -> Self {
        Self { bits_per_key, hashes: Vec::new() }
    }

    pub(crate) fn add(&mut self, user_key: &[u8]) {
        let hash = KeyHash::new(user_key);
        // The versions of a key follow one another.
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
    }

    /// The block; `None` if no key was added.
    pub(crate) fn finish(&self) -> Option<Vec<u8>> {
        if self.hashes.is_empty() {
            return None;
        }
        // 0.69 is close to the natural logarithm of 2, where the fewest keys pass wrongly.
        let probes = u64::from(self.bits_per_key) * 69 / 100;
        let probes = u8::try_from(probes).unwrap_or(MAX_PROBES).clamp(1, MAX_PROBES);
        let bits = (self.hashes.len() as u64).saturating_mul(self.bits_per_key.into());
        let line_count = usize::try_from(bits.div_ceil(LINE_BITS)).unwrap_or(usize::MAX).max(1);
        let mut lines = vec![Line::default(); line_count];
        for hash in &self.hashes {
            let line = &mut lines[hash.line(line_count)].0;
            hash.bits(probes).for_each(|(word, bit)| line[word] |= bit);
        }
        let words = lines.iter().flat_map(|line| line.0);
        let mut block: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        block.push(probes);
        Some(block)
    }
}

/// The filter of an open table.
#[derive(Debug)]
pub(crate) struct TableFilter {
    lines: Vec<Line>,
    probes: u8,
}

impl TableFilter {
    /// # Errors
    /// [`Error::Corruption`] if the block is none that a builder makes.
    pub(crate) fn new(block: &[u8], origin: &Origin) -> Result<Self> {
        let fail = || {
            let problem = format!("a table filter of {} bytes that is none", block.len());
            Error::corruption(origin.path.as_path(), origin.offset, problem)
        };
        let (&probes, bits) = block.split_last().ok_or_else(fail)?;
        let (lines, rest) = bits.as_chunks::<LINE_BYTES>();
        if lines.is_empty() || !rest.is_empty() || !(1..=MAX_PROBES).contains(&probes) {
            return Err(fail());
        }
        let lines = lines.iter().map(|bytes| {
            let mut line = Line::default();
            for (word, bytes) in line.0.iter_mut().zip(bytes.as_chunks::<8>().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            line
        });
        Ok(Self { lines: lines.collect(), probes })
    }

    /// Whether the table may hold a key of this hash.
    pub(crate) fn may_match(&self, hash: KeyHash) -> bool {
        let line = &self.lines[hash.line(self.lines.len())].0;
        hash.bits(self.probes).all(|(word, bit)| line[word] & bit != 0)
    }

    /// The bytes of memory that the filter takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.lines.capacity() * LINE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::*;

    fn open(block: &[u8]) -> Result<TableFilter> {
        TableFilter::new(block, &Origin { path: Arc::new(PathBuf::from("t")), offset: 77 })
    }

    fn key(number: u32) -> Vec<u8> {
        format!("key {number}").into_bytes()
    }

    fn filter(bits_per_key: u32, count: u32) -> Vec<u8> {
        let mut builder = TableFilterBuilder::new(bits_per_key);
        (0..count).for_each(|number| builder.add(&key(number)));
        builder.finish().unwrap()
    }

    #[test]
    fn every_key_passes_and_few_others() {
        for count in [1, 10, 100, 1000, 100_000] {
            let block = filter(10, count);
            assert!(block.len() <= count as usize * 10 / 8 + LINE_BYTES + 1);
            let filter = open(&block).unwrap();
            let passes = |number| filter.may_match(KeyHash::new(&key(number)));
            assert!((0..count).all(passes));
            let wrong = (0..10_000).filter(|number| passes(number + 1_000_000)).count();
            assert!(wrong < 200, "{wrong} of 10000 pass with {count} keys");
        }
    }

    #[test]
    fn more_bits_let_fewer_pass_and_extreme_ones_work() {
        let wrong = |bits| {
            let filter = open(&filter(bits, 10_000)).unwrap();
            assert!((0..10_000).all(|number| filter.may_match(KeyHash::new(&key(number)))));
            let hashes = (1_000_000..1_020_000).map(|number| KeyHash::new(&key(number)));
            hashes.filter(|hash| filter.may_match(*hash)).count()
        };
        assert!(wrong(16) < wrong(10) && wrong(10) < wrong(4));
        assert!(wrong(1) > 0 && wrong(64) < 10);
    }

    /// Written tables hold these: computed by hand from the description above, in Python.
    #[test]
    fn the_hash_stays_what_it_is() {
        for (key, hash) in HASHES {
            assert_eq!(KeyHash::new(key).0, hash, "{key:?}");
        }
    }

    #[test]
    fn the_block_has_the_documented_bytes() {
        let mut builder = TableFilterBuilder::new(10);
        assert!(builder.finish().is_none());
        builder.add(b"a");
        builder.add(b"a");
        let block = builder.finish().unwrap();
        let mut expected = vec![0; LINE_BYTES + 1];
        BITS_OF_A.iter().for_each(|bit| expected[bit / 8] |= 1 << (bit % 8));
        expected[LINE_BYTES] = 6;
        assert_eq!(block, expected);
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        for wrong in [&b""[..], b"\x06", &[0; 64], &[0; 65], &[8; 65], &[1; 66]] {
            let error = open(wrong).unwrap_err();
            assert!(error.is_corruption() && error.to_string().contains("77"), "{error}");
        }
        assert!(!open(&[[0u8; 64].as_slice(), &[1]].concat()).unwrap().may_match(KeyHash(7)));
    }

    const HASHES: [(&[u8], u64); 4] = [
        (b"", 0x7e8c_a30e_340b_f1f0),
        (b"a", 0x0396_b1e1_77a9_1925),
        (b"12345678", 0x4e28_b807_c971_b6a9),
        (b"0123456789abcdef0", 0x2ce1_3edb_aed3_5712),
    ];
    const BITS_OF_A: [usize; 6] = [193, 418, 179, 375, 479, 44];
}
