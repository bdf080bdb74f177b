//! Numbers and strings as the files hold them, and the checksum over them.
//!
//! ```text
//! fixed32, fixed64   little-endian
//! varint32, varint64 seven bits a byte, low bits first, the top bit set on all but the last byte
//! prefixed           varint32 length, then that many bytes
//! checksum           CRC32C, rotated right by 15 bits, plus 0xa282ead8 (wrapping), as fixed32
//! ```
//! The rotation keeps a checksum of bytes that hold checksums themselves from degenerating.

use std::path::Path;

use crate::Error;

/// The largest number of bytes of a varint32.
pub(crate) const MAX_VARINT32_BYTES: usize = 5;
/// The largest number of bytes of a varint64.
pub(crate) const MAX_VARINT64_BYTES: usize = 10;

const CHECKSUM_DELTA: u32 = 0xa282_ead8;

/// Bytes that are not what the format says: what is wrong, and where in the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// The position in the bytes that were decoded.
    pub(crate) at: usize,
    /// What is wrong there.
    pub(crate) problem: String,
}

impl Malformed {
    pub(crate) fn new(at: usize, problem: impl Into<String>) -> Self {
        Self { at, problem: problem.into() }
    }

    /// The error to report if the decoded bytes lie at `base` in `file`.
    pub(crate) fn in_file(self, file: &Path, base: u64) -> Error {
        Error::corruption(file, base.saturating_add(self.at as u64), self.problem)
    }
}

/// Reads bytes from front to back. Every method names what it is after, for the error.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How many bytes have been read.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// The bytes that have not been read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// Whether everything has been read.
    pub(crate) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// The next `length` bytes.
    pub(crate) fn take(&mut self, length: usize, what: &str) -> Result<&'a [u8], Malformed> {
        let (taken, _) = self.rest().split_at_checked(length).ok_or_else(|| {
            let left = self.rest().len();
            Malformed::new(self.at, format!("{what} of {length} bytes, but {left} are left"))
        })?;
        self.at += length;
        Ok(taken)
    }

    /// One byte.
    pub(crate) fn byte(&mut self, what: &str) -> Result<u8, Malformed> {
        Ok(self.array::<1>(what)?[0])
    }

    pub(crate) fn fixed32(&mut self, what: &str) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub(crate) fn fixed64(&mut self, what: &str) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    #[inline]
    pub(crate) fn varint32(&mut self, what: &str) -> Result<u32, Malformed> {
        // Most are short: this is the inner loop of every search in a block.
        match self.bytes.get(self.at..) {
            Some([first @ 0..0x80, ..]) => {
                self.at += 1;
                Ok(u32::from(*first))
            }
            Some([first, second @ 0..0x80, ..]) => {
                self.at += 2;
                Ok(u32::from(first & 0x7f) | u32::from(*second) << 7)
            }
            _ => self.long_varint32(what),
        }
    }

    pub(crate) fn varint64(&mut self, what: &str) -> Result<u64, Malformed> {
        self.varint(MAX_VARINT64_BYTES, what)
    }

    fn long_varint32(&mut self, what: &str) -> Result<u32, Malformed> {
        let start = self.at;
        let number = self.varint(MAX_VARINT32_BYTES, what)?;
        u32::try_from(number)
            .map_err(|_| Malformed::new(start, format!("{what} does not fit 32 bits")))
    }

    /// A varint32 length and that many bytes.
    pub(crate) fn prefixed(&mut self, what: &str) -> Result<&'a [u8], Malformed> {
        let length = self.varint32(what)?;
        let length = usize::try_from(length)
            .map_err(|_| Malformed::new(self.at, format!("{what} of {length} bytes")))?;
        self.take(length, what)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Malformed> {
        match self.rest().first_chunk::<N>() {
            Some(array) => {
                self.at += N;
                Ok(*array)
            }
            None => Err(self.truncated(what)),
        }
    }

    fn varint(&mut self, max_bytes: usize, what: &str) -> Result<u64, Malformed> {
        let mut number = 0u64;
        for (index, &byte) in self.rest().iter().take(max_bytes).enumerate() {
            let bits = u64::from(byte & 0x7f);
            let shift = 7 * index;
            if bits << shift >> shift != bits {
                return Err(Malformed::new(self.at, format!("{what} does not fit 64 bits")));
            }
            number |= bits << shift;
            if byte < 0x80 {
                self.at += index + 1;
                return Ok(number);
            }
        }
        if self.rest().len() < max_bytes {
            return Err(self.truncated(what));
        }
        Err(Malformed::new(self.at, format!("{what} takes more than {max_bytes} bytes")))
    }

    fn truncated(&self, what: &str) -> Malformed {
        Malformed::new(self.at, format!("the bytes end inside {what}"))
    }
}

/// Appends a varint32.
pub(crate) fn push_varint32(out: &mut Vec<u8>, number: u32) {
    push_varint64(out, number.into());
}

/// Appends a varint64.
pub(crate) fn push_varint64(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push((number & 0x7f) as u8);
}

/// Appends `bytes` with their length before them. Under 4 GiB, or nothing reads it back.
pub(crate) fn push_prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    debug_assert!(u32::try_from(bytes.len()).is_ok());
    push_varint64(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// The checksum, as it is stored, over `parts` one after the other.
pub(crate) fn checksum(parts: &[&[u8]]) -> u32 {
    mask(parts.iter().fold(0, |crc, part| crc32c::crc32c_append(crc, part)))
}

/// The length of the shortest start of `bytes` that its checksum, as it is stored, follows; at
/// least `least` bytes. What lies behind them is found so when nothing tells where it begins.
pub(crate) fn checksummed_length(bytes: &[u8], least: usize) -> Option<usize> {
    let mut crc = crc32c::crc32c(bytes.get(..least)?);
    for (at, window) in bytes.get(least..)?.windows(4).enumerate() {
        let [a, b, c, d] = *window else { return None };
        if u32::from_le_bytes([a, b, c, d]) == mask(crc) {
            return Some(least + at);
        }
        crc = crc32c::crc32c_append(crc, &[a]);
    }
    None
}

/// How a CRC is stored.
pub(crate) fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(CHECKSUM_DELTA)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_checksum_of_a_known_string_is_the_published_one() {
        // CRC32C's check value, then the mask by hand: e3069283 ror 15 = 2507c60d.
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(mask(0xe306_9283), 0x2507_c60du32.wrapping_add(0xa282_ead8));
        assert_eq!(checksum(&[b"1234", b"", b"56789"]), checksum(&[b"123456789"]));
    }

    #[test]
    fn varints_have_the_documented_bytes() {
        let mut out = Vec::new();
        for number in [0, 127, 128, 300, 1 << 21] {
            push_varint32(&mut out, number);
        }
        assert_eq!(out, b"\x00\x7f\x80\x01\xac\x02\x80\x80\x80\x01");
        out.clear();
        push_varint64(&mut out, u64::MAX);
        assert_eq!(out, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    }

    #[test]
    fn what_is_truncated_or_too_large_is_told_with_its_place() {
        let mut cursor = Cursor::new(b"\x01\x80");
        assert_eq!(cursor.byte("tag"), Ok(1));
        let error = cursor.varint32("file number").unwrap_err();
        assert_eq!(error, Malformed::new(1, "the bytes end inside file number"));
        assert_eq!(cursor.position(), 1);
        assert!(Cursor::new(b"\xff\xff\xff\xff\x1f").varint32("n").is_err());
        assert!(Cursor::new(b"\xff\xff\xff\xff\xff\x01").varint32("n").is_err());
        assert!(Cursor::new(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02").varint64("n").is_err());
        assert!(Cursor::new(b"\xff\xff\xff\xff\x7fshort").prefixed("name").is_err());
        let error = Cursor::new(b"\x05shor").prefixed("name").unwrap_err();
        assert_eq!(error, Malformed::new(1, "name of 5 bytes, but 4 are left"));
        assert!(Cursor::new(b"1234567").fixed64("tag").is_err());
    }

    proptest! {
        #[test]
        fn what_is_pushed_is_read_back(small: u32, large: u64, bytes: Vec<u8>) {
            let mut out = Vec::new();
            push_varint32(&mut out, small);
            push_varint64(&mut out, large);
            push_prefixed(&mut out, &bytes);
            let mut cursor = Cursor::new(&out);
            prop_assert_eq!(cursor.varint32("small"), Ok(small));
            prop_assert_eq!(cursor.varint64("large"), Ok(large));
            prop_assert_eq!(cursor.prefixed("bytes"), Ok(&bytes[..]));
            prop_assert!(cursor.is_empty());
        }
    }
}
