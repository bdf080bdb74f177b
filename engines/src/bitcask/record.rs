//! The record of a data file, all integers big-endian:
//!
//! ```text
//! 0   u32  CRC-32 (IEEE) of everything after it
//! 4   u32  timestamp, seconds since 1970, unsigned
//! 8   u16  key size
//! 10  u32  value size
//! 14       key, value
//! ```
//! A deletion is a record whose value is a [tombstone](super::tombstone).

use std::ops::Range;

use super::tombstone;
use crate::{Error, Result};

const CRC: Range<usize> = 0..4;
const TIMESTAMP: Range<usize> = CRC.end..CRC.end + 4;
const KEY_SIZE: Range<usize> = TIMESTAMP.end..TIMESTAMP.end + 2;
const VALUE_SIZE: Range<usize> = KEY_SIZE.end..KEY_SIZE.end + 4;

/// The bytes before the key.
pub(super) const HEADER_BYTES: usize = VALUE_SIZE.end;
const _: () = assert!(HEADER_BYTES == 14);

/// Key and value together: hint files give the size of the whole record 32 bits.
const MAX_BODY_BYTES: u32 = u32::MAX - 14;
/// The longest key that the format holds.
pub(super) const MAX_KEY_BYTES: usize = u16::MAX as usize;

/// The fixed part of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) crc: u32,
    pub(super) timestamp: u32,
    pub(super) key_size: u16,
    pub(super) value_size: u32,
}

impl Header {
    /// The header of a record to be written.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for what the format cannot hold.
    pub(super) fn new(timestamp: u32, key: &[u8], value: &[u8]) -> Result<Self> {
        let mut header = Self::without_crc(timestamp, key, value)?;
        let mut crc = crc32fast::Hasher::new();
        crc.update(&header.to_bytes()[TIMESTAMP.start..]);
        crc.update(key);
        crc.update(value);
        header.crc = crc.finalize();
        Ok(header)
    }

    /// The same with a CRC of 0.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(super) fn without_crc(timestamp: u32, key: &[u8], value: &[u8]) -> Result<Self> {
        let key_size = u16::try_from(key.len()).map_err(|_| Error::TooLarge {
            what: "key",
            size: key.len() as u64,
            limit: MAX_KEY_BYTES as u64,
        })?;
        let value_limit = MAX_BODY_BYTES - u32::from(key_size);
        let value_size = u32::try_from(value.len())
            .ok()
            .filter(|size| *size <= value_limit)
            .ok_or_else(|| Error::TooLarge {
                what: "value",
                size: value.len() as u64,
                limit: value_limit.into(),
            })?;
        Ok(Self { crc: 0, timestamp, key_size, value_size })
    }

    /// Reads a header; `None` if there are not enough bytes.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (bytes, _) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let [c0, c1, c2, c3, t0, t1, t2, t3, k0, k1, v0, v1, v2, v3] = *bytes;
        Some(Self {
            crc: u32::from_be_bytes([c0, c1, c2, c3]),
            timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
            key_size: u16::from_be_bytes([k0, k1]),
            value_size: u32::from_be_bytes([v0, v1, v2, v3]),
        })
    }

    pub(super) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[CRC].copy_from_slice(&self.crc.to_be_bytes());
        bytes[TIMESTAMP].copy_from_slice(&self.timestamp.to_be_bytes());
        bytes[KEY_SIZE].copy_from_slice(&self.key_size.to_be_bytes());
        bytes[VALUE_SIZE].copy_from_slice(&self.value_size.to_be_bytes());
        bytes
    }

    /// The size of the whole record. A damaged header may claim more than 32 bits hold.
    pub(super) fn record_bytes(self) -> u64 {
        HEADER_BYTES as u64 + u64::from(self.key_size) + u64::from(self.value_size)
    }
}

/// A whole record whose checksum is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) timestamp: u32,
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
}

impl<'a> Record<'a> {
    /// Reads the record that `bytes` starts with and checks its CRC; what follows it is ignored.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub(super) fn decode(bytes: &'a [u8]) -> std::result::Result<Self, &'static str> {
        let header = Header::parse(bytes).ok_or("the record's header is cut short")?;
        let size = usize::try_from(header.record_bytes())
            .ok()
            .filter(|size| *size <= bytes.len())
            .ok_or("the record is longer than its place")?;
        if crc32fast::hash(&bytes[CRC.end..size]) != header.crc {
            return Err("the record's checksum does not match");
        }
        let (key, value) = bytes[HEADER_BYTES..size].split_at(usize::from(header.key_size));
        Ok(Self { timestamp: header.timestamp, key, value })
    }

    /// Whether the record deletes its key.
    pub(super) fn is_tombstone(&self) -> bool {
        tombstone::is_tombstone(self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "key" -> "value" at second 0x01020304. The CRC is that of the 18 bytes after it, computed
    /// with another implementation (zlib).
    const RECORD: &[u8] = b"\xab\xeb\x3d\xf4\x01\x02\x03\x04\x00\x03\x00\x00\x00\x05keyvalue";

    #[test]
    fn the_bytes_of_a_record() {
        let header = Header::new(0x0102_0304, b"key", b"value").unwrap();
        assert_eq!([&header.to_bytes()[..], b"keyvalue"].concat(), RECORD);
        assert_eq!(header.record_bytes(), 22);
        let record = Record { timestamp: 0x0102_0304, key: b"key", value: b"value" };
        assert_eq!(Record::decode(RECORD), Ok(record));
        assert_eq!(Record::decode(&[RECORD, b"next"].concat()), Ok(record));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        for bit in 0..RECORD.len() * 8 {
            let mut bytes = RECORD.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Record::decode(&bytes).is_err(), "bit {bit}");
        }
        for length in 0..RECORD.len() {
            assert!(Record::decode(&RECORD[..length]).is_err(), "length {length}");
        }
    }

    #[test]
    fn what_the_format_cannot_hold_is_refused() {
        let key = vec![0; MAX_KEY_BYTES + 1];
        assert!(Header::new(0, &key[1..], b"").is_ok());
        assert!(matches!(
            Header::new(0, &key, b""),
            Err(Error::TooLarge { what: "key", size: 65_536, limit: 65_535 })
        ));
    }
}
