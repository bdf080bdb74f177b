//! Where a record lies, and how the keydir keeps that in few bytes.

use crate::bitcask::names::FileId;

/// Where the newest record of a key lies. Locations are ordered as they were written: a record in a
/// later file, or further back in the same file, is newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::bitcask) struct Location {
    pub(in crate::bitcask) file: FileId,
    pub(in crate::bitcask) offset: u64,
    /// The size of the whole record; 0 stands for a tombstone, which the keydir holds only while
    /// files are loaded.
    pub(in crate::bitcask) size: u32,
}

/// The most bytes that an encoded location takes.
pub(super) const MAX_ENCODED_BYTES: usize = 5 + 10 + 5;

impl Location {
    pub(in crate::bitcask) fn is_tombstone(&self) -> bool {
        self.size == 0
    }

    /// Encodes file, offset and size as varints, seven bits a byte, lowest first, a set top bit
    /// saying that more follow. Returns how many bytes of `out` that takes, of at most
    /// [`MAX_ENCODED_BYTES`].
    pub(super) fn encode(&self, out: &mut [u8]) -> usize {
        let mut length = 0;
        for number in [u64::from(self.file), self.offset, u64::from(self.size)] {
            length += put_varint(&mut out[length..], number);
        }
        length
    }

    /// Encodes into exactly the bytes of `place`, so that an entry can be changed where it is. The
    /// last number is padded with bytes that add nothing to it. `false` if it does not fit.
    pub(super) fn encode_into(&self, place: &mut [u8]) -> bool {
        let mut encoded = [0; MAX_ENCODED_BYTES];
        let length = self.encode(&mut encoded);
        let Some(padding) = place.len().checked_sub(length) else { return false };
        place[..length].copy_from_slice(&encoded[..length]);
        if padding > 0 {
            place[length - 1] |= 0x80;
            place[length..].fill(0x80);
            if let Some(last) = place.last_mut() {
                *last = 0;
            }
        }
        true
    }

    /// Reads a location that [`encode`](Self::encode) wrote, and its width.
    pub(super) fn decode(bytes: &[u8]) -> (Self, usize) {
        let (file, mut at) = take_varint(bytes);
        let (offset, width) = take_varint(&bytes[at..]);
        at += width;
        let (size, width) = take_varint(&bytes[at..]);
        #[expect(clippy::cast_possible_truncation, reason = "encoded from 32 bits")]
        let location = Self { file: file as u32, offset, size: size as u32 };
        (location, at + width)
    }
}

/// Writes a varint, returns its width.
pub(super) fn put_varint(out: &mut [u8], mut number: u64) -> usize {
    let mut width = 0;
    while number >= 0x80 {
        out[width] = (number & 0x7f) as u8 | 0x80;
        number >>= 7;
        width += 1;
    }
    out[width] = (number & 0x7f) as u8;
    width + 1
}

/// Reads a varint, returns its width too.
pub(super) fn take_varint(bytes: &[u8]) -> (u64, usize) {
    let (mut number, mut shift) = (0, 0);
    for (at, &byte) in bytes.iter().enumerate() {
        // Padding may be longer than 64 bits; it is all zeros.
        if shift < 64 {
            number |= u64::from(byte & 0x7f) << shift;
        }
        shift += 7;
        if byte < 0x80 {
            return (number, at + 1);
        }
    }
    (number, bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_is_read_back_and_padding_adds_nothing() {
        for location in [
            Location { file: 0, offset: 0, size: 0 },
            Location { file: 1, offset: 127, size: 128 },
            Location { file: u32::MAX, offset: u64::MAX, size: u32::MAX },
        ] {
            let mut encoded = [0; MAX_ENCODED_BYTES];
            let length = location.encode(&mut encoded);
            assert_eq!(Location::decode(&encoded[..length]), (location, length));
            for width in length..MAX_ENCODED_BYTES + 3 {
                let mut place = vec![0xff; width];
                assert!(location.encode_into(&mut place));
                assert_eq!(Location::decode(&place), (location, width));
            }
            assert!(!location.encode_into(&mut vec![0; length - 1]));
        }
    }

    #[test]
    fn the_usual_location_takes_seven_bytes() {
        let location = Location { file: 100, offset: 200 << 20, size: 2_702 };
        assert_eq!(location.encode(&mut [0; MAX_ENCODED_BYTES]), 7);
    }
}
