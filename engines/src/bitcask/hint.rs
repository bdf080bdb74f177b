//! The hint file: the keydir image of one data file, all integers big-endian.
//!
//! ```text
//! for each record of the data file, in its order:
//!   0   u32  timestamp
//!   4   u16  key size
//!   6   u32  size of the whole record in the data file
//!   10  u64  top bit: the record is a tombstone; 63 bits: its offset in the data file
//!   18       key
//! trailer:
//!       u32  0
//!       u16  0
//!       u32  CRC-32 of everything before the trailer
//!       u64  2^63 - 1
//! ```
//! Bitcask before version 1.6 wrote no trailer. Such a hint file is not believed: nothing would tell
//! of a flipped bit in a key.
//!
//! A hint file is believed only if its records lie end to end from the first byte of the data file
//! to the last. That catches what a checksum cannot: an old hint that lost its tail, one that
//! stands beside another data file, and data that was lost after its hint was written. Whoever
//! finds it not so reads the data file, which is only slower.

use std::path::Path;

use super::names::{self, FileId};
use super::record::{HEADER_BYTES, Header};
use crate::Result;
use crate::fs::{Create, FileSystem, WriteFile};

/// The bytes before the key, and of the trailer.
const ENTRY_BYTES: usize = 18;
const TOMBSTONE_BIT: u64 = 1 << 63;
const TRAILER_OFFSET: u64 = TOMBSTONE_BIT - 1;

/// What is gathered before a write.
const WRITE_BYTES: usize = 1 << 20;

/// One record of the data file, as its hint tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hint<'a> {
    pub(super) timestamp: u32,
    pub(super) record_bytes: u32,
    pub(super) is_tombstone: bool,
    pub(super) offset: u64,
    pub(super) key: &'a [u8],
}

impl Hint<'_> {
    fn header_bytes(&self, key_size: u16) -> [u8; ENTRY_BYTES] {
        let tombstone = if self.is_tombstone { TOMBSTONE_BIT } else { 0 };
        entry_bytes(self.timestamp, key_size, self.record_bytes, tombstone | self.offset)
    }
}

/// Whole entries of a hint file that lie one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Piece {
    /// Where in the hint file.
    pub(super) offset: usize,
    pub(super) length: usize,
    /// The number of entries.
    pub(super) count: usize,
}

impl Piece {
    /// The bytes of the keys.
    pub(super) fn key_bytes(&self) -> usize {
        self.length - self.count * ENTRY_BYTES
    }
}

/// How many entries a piece has at most.
const PIECE_ENTRIES: usize = 64 << 10;

/// Checks the content of a hint file against the length of its data file; returns its entries
/// in pieces.
///
/// # Errors
/// Why the hint file cannot be used, in words.
pub(super) fn check(
    content: &[u8],
    data_length: u64,
) -> std::result::Result<Vec<Piece>, &'static str> {
    let mut rest = content;
    let mut data_end = 0;
    let (mut pieces, mut piece) = (Vec::new(), Piece::default());
    loop {
        let (raw, after) = RawEntry::split(rest).ok_or("it ends without a trailer")?;
        if raw.offset == TRAILER_OFFSET && raw.key_size == 0 {
            let entries = &content[..content.len() - rest.len()];
            if !after.is_empty() {
                return Err("something follows the trailer");
            }
            if crc32fast::hash(entries) != raw.record_bytes {
                return Err("the checksum does not match");
            }
            break;
        }
        let smallest = HEADER_BYTES as u64 + u64::from(raw.key_size);
        if u64::from(raw.record_bytes) < smallest {
            return Err("a record is smaller than its key");
        }
        if raw.offset & !TOMBSTONE_BIT != data_end {
            return Err("its records do not lie end to end");
        }
        data_end += u64::from(raw.record_bytes);
        rest = after.get(usize::from(raw.key_size)..).ok_or("a key is cut short")?;
        piece.length += ENTRY_BYTES + usize::from(raw.key_size);
        piece.count += 1;
        if piece.count == PIECE_ENTRIES {
            pieces.push(piece);
            piece = Piece { offset: piece.offset + piece.length, ..Piece::default() };
        }
    }
    if data_end != data_length {
        return Err("it does not end where the data file ends");
    }
    pieces.push(piece);
    Ok(pieces)
}

/// The entries of a checked piece, in the order of the data file.
pub(super) fn entries(piece: &[u8]) -> impl Iterator<Item = Hint<'_>> {
    let mut rest = piece;
    std::iter::from_fn(move || {
        let (raw, after) = RawEntry::split(rest)?;
        let (key, after) = after.split_at_checked(usize::from(raw.key_size))?;
        rest = after;
        Some(Hint {
            timestamp: raw.timestamp,
            record_bytes: raw.record_bytes,
            is_tombstone: raw.offset & TOMBSTONE_BIT != 0,
            offset: raw.offset & !TOMBSTONE_BIT,
            key,
        })
    })
}

struct RawEntry {
    timestamp: u32,
    key_size: u16,
    record_bytes: u32,
    /// The tombstone bit included.
    offset: u64,
}

impl RawEntry {
    fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (fixed, after) = bytes.split_first_chunk::<ENTRY_BYTES>()?;
        let [t0, t1, t2, t3, k0, k1, s0, s1, s2, s3, offset @ ..] = *fixed;
        let entry = Self {
            timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
            key_size: u16::from_be_bytes([k0, k1]),
            record_bytes: u32::from_be_bytes([s0, s1, s2, s3]),
            offset: u64::from_be_bytes(offset),
        };
        Some((entry, after))
    }
}

fn entry_bytes(timestamp: u32, key_size: u16, record_bytes: u32, offset: u64) -> [u8; ENTRY_BYTES] {
    let mut bytes = [0; ENTRY_BYTES];
    bytes[..4].copy_from_slice(&timestamp.to_be_bytes());
    bytes[4..6].copy_from_slice(&key_size.to_be_bytes());
    bytes[6..10].copy_from_slice(&record_bytes.to_be_bytes());
    bytes[10..].copy_from_slice(&offset.to_be_bytes());
    bytes
}

/// Writes a hint file under a temporary name, and gives it its own once it is whole and synced, so
/// that nobody finds half of one. The data file must have been synced before.
#[derive(Debug)]
pub(super) struct HintWriter<'a> {
    fs: &'a dyn FileSystem,
    directory: &'a Path,
    id: FileId,
    file: std::sync::Arc<dyn WriteFile>,
    written_bytes: u64,
    pending: Vec<u8>,
    crc: crc32fast::Hasher,
}

impl<'a> HintWriter<'a> {
    pub(super) fn create(fs: &'a dyn FileSystem, directory: &'a Path, id: FileId) -> Result<Self> {
        let file = fs.create(&names::temporary_hint(directory, id), Create::Replace)?;
        let (pending, crc) = (Vec::with_capacity(64 << 10), crc32fast::Hasher::new());
        Ok(Self { fs, directory, id, file, written_bytes: 0, pending, crc })
    }

    /// Adds the record with this header that lies at `offset`.
    pub(super) fn add(
        &mut self,
        header: Header,
        offset: u64,
        key: &[u8],
        is_tombstone: bool,
    ) -> Result<()> {
        // A record that we read or wrote is below 2^32 bytes; see `Header::new`.
        let record_bytes = u32::try_from(header.record_bytes()).map_err(|_| {
            crate::Error::corruption(
                names::data(self.directory, self.id),
                offset,
                "a record of 4 GiB or more",
            )
        })?;
        let entry = Hint { timestamp: header.timestamp, record_bytes, is_tombstone, offset, key };
        self.pending.extend_from_slice(&entry.header_bytes(header.key_size));
        self.pending.extend_from_slice(key);
        if self.pending.len() >= WRITE_BYTES { self.write_pending() } else { Ok(()) }
    }

    /// Ends the file. Its name survives power loss once the directory is synced.
    pub(super) fn finish(mut self) -> Result<()> {
        self.write_pending()?;
        let crc = self.crc.clone().finalize();
        self.pending.extend_from_slice(&entry_bytes(0, 0, crc, TRAILER_OFFSET));
        self.write_pending()?;
        self.file.sync()?;
        self.fs.rename(
            &names::temporary_hint(self.directory, self.id),
            &names::hint(self.directory, self.id),
        )
    }

    /// Takes back what was written so far.
    pub(super) fn abandon(self) {
        // Best effort: the next open removes it too.
        let _ = self.fs.remove(&names::temporary_hint(self.directory, self.id));
    }

    fn write_pending(&mut self) -> Result<()> {
        self.file.write_at(self.written_bytes, &self.pending)?;
        self.written_bytes += self.pending.len() as u64;
        self.crc.update(&self.pending);
        self.pending.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::RealFs;

    /// "key" put in 22 bytes at offset 0, then deleted in 39 bytes at offset 22; the trailer's CRC
    /// computed with another implementation (zlib).
    const HINT: &[u8] = b"\
        \x01\x02\x03\x04\x00\x03\x00\x00\x00\x16\x00\x00\x00\x00\x00\x00\x00\x00key\
        \x01\x02\x03\x05\x00\x03\x00\x00\x00\x27\x80\x00\x00\x00\x00\x00\x00\x16key\
        \x00\x00\x00\x00\x00\x00\x1b\xab\xe0\x0e\x7f\xff\xff\xff\xff\xff\xff\xff";
    const DATA_LENGTH: u64 = 22 + 39;

    #[test]
    fn the_bytes_of_a_hint_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = HintWriter::create(&RealFs, directory.path(), 3).unwrap();
        let put = Header { crc: 0, timestamp: 0x0102_0304, key_size: 3, value_size: 5 };
        let deletion = Header { crc: 0, timestamp: 0x0102_0305, key_size: 3, value_size: 22 };
        writer.add(put, 0, b"key", false).unwrap();
        writer.add(deletion, 22, b"key", true).unwrap();
        writer.finish().unwrap();
        assert_eq!(std::fs::read(directory.path().join("3.bitcask.hint")).unwrap(), HINT);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    fn trailer(entries: &[u8]) -> [u8; ENTRY_BYTES] {
        entry_bytes(0, 0, crc32fast::hash(entries), TRAILER_OFFSET)
    }

    #[test]
    fn a_hint_file_is_read_back() {
        let pieces = check(HINT, DATA_LENGTH).unwrap();
        assert_eq!(pieces, [Piece { offset: 0, length: 42, count: 2 }]);
        assert_eq!(pieces[0].key_bytes(), 6);
        let hints: Vec<_> = entries(&HINT[..42]).collect();
        let first = Hint {
            timestamp: 0x0102_0304,
            record_bytes: 22,
            is_tombstone: false,
            offset: 0,
            key: b"key",
        };
        let second = Hint {
            timestamp: 0x0102_0305,
            record_bytes: 39,
            is_tombstone: true,
            offset: 22,
            key: b"key",
        };
        assert_eq!(hints, [first, second]);
        // The CRC in this trailer is that of two entries.
        assert!(check(&HINT[HINT.len() - ENTRY_BYTES..], 0).is_err());
        assert_eq!(check(&trailer(b""), 0).unwrap(), [Piece::default()]);
    }

    #[test]
    fn a_long_hint_file_is_taken_in_pieces() {
        let mut content = Vec::new();
        let count = 2 * PIECE_ENTRIES + 3;
        for number in 0..count {
            content.extend(entry_bytes(7, 1, 20, number as u64 * 20));
            content.push(b'k');
        }
        content.extend(trailer(&content));
        let pieces = check(&content, count as u64 * 20).unwrap();
        let lengths = [PIECE_ENTRIES, PIECE_ENTRIES, 3].map(|count| (count, count * 19));
        assert_eq!(
            pieces.iter().map(|piece| (piece.count, piece.length)).collect::<Vec<_>>(),
            lengths
        );
        let mut next = 0;
        for piece in pieces {
            for hint in entries(&content[piece.offset..piece.offset + piece.length]) {
                assert_eq!((hint.offset, hint.key), (next, &b"k"[..]));
                next += 20;
            }
        }
        assert_eq!(next, count as u64 * 20);
    }

    #[test]
    fn a_hint_file_that_lies_is_not_believed() {
        for length in 0..HINT.len() {
            assert!(check(&HINT[..length], DATA_LENGTH).is_err(), "{length}");
        }
        for bit in 0..HINT.len() * 8 {
            let mut content = HINT.to_vec();
            content[bit / 8] ^= 1 << (bit % 8);
            // The two fields of the trailer that are zero by convention carry nothing.
            let unused = (HINT.len() - ENTRY_BYTES)..(HINT.len() - ENTRY_BYTES + 4);
            assert_eq!(
                check(&content, DATA_LENGTH).is_ok(),
                unused.contains(&(bit / 8)),
                "bit {bit}"
            );
        }
        for data_length in [0, 22, DATA_LENGTH - 1, DATA_LENGTH + 1, u64::MAX] {
            assert!(check(HINT, data_length).is_err());
        }
    }
}
