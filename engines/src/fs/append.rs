//! Appending small records at the price of their bytes.
//!
//! A system call for each record is what level `process` asks for. What makes it dear is not the
//! call: it is that the kernel finds a block on disk and a page of memory for every few kilobytes.
//! Both are had cheaper in bulk, so [`Appender`]
//! - reserves disk space far ahead, and
//! - prepares the file: whenever a record passes the prepared end, everything up to the next
//!   multiple of 64 KiB is written along, as filler. The kernel gives such a write one large piece
//!   of the page cache, and the records that follow are copied into what is there already.
//!
//! So a file that is being appended to is up to 64 KiB longer than its records, and a file whose
//! writer died stays so. The filler is chosen so that the original programs take it for what a
//! crash leaves: see [`Filler`]. [`Appender::finish`] cuts it off.

use std::io::IoSlice;
use std::sync::Arc;

use super::WriteFile;
use crate::Result;

/// The file is prepared up to a multiple of this.
const PREPARED_BYTES: usize = 64 << 10;

/// How far ahead disk space is reserved: as much as the file holds, within these bounds.
const RESERVED_BYTES_MIN: u64 = 1 << 20;
const RESERVED_BYTES_MAX: u64 = 64 << 20;

/// What lies behind the last record of a file that is being appended to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filler {
    /// Zeros. LevelDB passes over them in a log: it has written logs with space set aside itself.
    Zeros,
    /// Bytes 0xff. Basho's Bitcask finds in them the header of a record with a key of 65,535 bytes,
    /// for which no room is left in the file, and discards it as one that was not written to its
    /// end. (In zeros it would find records with an empty key.)
    Ones,
}

static ZEROS: [u8; PREPARED_BYTES] = [0; PREPARED_BYTES];
static ONES: [u8; PREPARED_BYTES] = [0xff; PREPARED_BYTES];

impl Filler {
    /// There is never so much of it.
    pub(crate) const MAX_BYTES: usize = PREPARED_BYTES;

    fn bytes(self) -> &'static [u8; PREPARED_BYTES] {
        match self {
            Self::Zeros => &ZEROS,
            Self::Ones => &ONES,
        }
    }

    /// Whether `tail`, the rest of a file, is nothing but filler.
    pub(crate) fn is_all_of(self, tail: &[u8]) -> bool {
        self.bytes().get(..tail.len()).is_some_and(|filler| tail == filler)
    }
}

/// Appends to a file that it alone writes to.
#[derive(Debug)]
pub(crate) struct Appender {
    file: Arc<dyn WriteFile>,
    /// `None`: nothing is written but the records, and nothing reserved.
    filler: Option<Filler>,
    /// Where the next bytes go.
    end: u64,
    /// Up to here the file holds filler behind `end`; not before `end`.
    prepared_end: u64,
    reserved_end: u64,
}

impl Appender {
    /// Appends to `file` from `end` on, with nothing behind it.
    pub(crate) fn new(file: Arc<dyn WriteFile>, end: u64, filler: Filler) -> Self {
        Self { file, filler: Some(filler), end, prepared_end: end, reserved_end: end }
    }

    /// The same without preparing anything: for files that seldom grow.
    pub(crate) fn exact(file: Arc<dyn WriteFile>, end: u64) -> Self {
        Self { file, filler: None, end, prepared_end: end, reserved_end: end }
    }

    /// Where the next bytes go: the length of the file without filler.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The file, for syncing beside appending.
    pub(crate) fn file(&self) -> &Arc<dyn WriteFile> {
        &self.file
    }

    /// Hands `bytes` to the system in one call.
    ///
    /// # Errors
    /// A part of the bytes may be in the file then; [`finish`](Self::finish) cuts it off, and the
    /// next append writes over it.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.append_parts(&[IoSlice::new(bytes)])
    }

    /// The same with `parts` one after the other.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub(crate) fn append_parts(&mut self, parts: &[IoSlice<'_>]) -> Result<()> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let end = self.end + length as u64;
        match self.filler {
            Some(filler) if end > self.prepared_end => {
                self.reserve_up_to(end);
                self.prepared_end = self.write_and_prepare(parts, length, filler)?;
            }
            _ => self.write(parts)?,
        }
        self.end = end;
        Ok(())
    }

    /// Cuts the file off behind the last record: filler, what a failed append left, and reserved
    /// space.
    ///
    /// # Errors
    /// What the system says; the records are not touched.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.file.truncate(self.end)?;
        self.prepared_end = self.end;
        self.reserved_end = self.end;
        Ok(())
    }

    fn write(&self, parts: &[IoSlice<'_>]) -> Result<()> {
        match parts {
            [whole] => self.file.write_at(self.end, whole),
            parts => self.file.write_parts_at(self.end, parts),
        }
    }

    /// Returns up to where the file is prepared now.
    fn write_and_prepare(
        &self,
        parts: &[IoSlice<'_>],
        length: usize,
        filler: Filler,
    ) -> Result<u64> {
        let end = self.end + length as u64;
        if length < PREPARED_BYTES / 2 {
            let filler = usize::try_from(end.next_multiple_of(PREPARED_BYTES as u64) - end)
                .ok()
                .and_then(|length| filler.bytes().get(..length))
                .unwrap_or_default();
            let mut with_filler = Vec::with_capacity(parts.len() + 1);
            with_filler.extend(parts.iter().map(|part| IoSlice::new(part)));
            with_filler.push(IoSlice::new(filler));
            if self.file.write_parts_at(self.end, &with_filler).is_ok() {
                return Ok(end + filler.len() as u64);
            }
            // A disk that is nearly full may have room for the record alone.
        }
        // Large writes are given large pieces of the page cache anyway.
        self.write(parts)?;
        Ok(end)
    }

    fn reserve_up_to(&mut self, end: u64) {
        if end > self.reserved_end {
            let ahead = end.clamp(RESERVED_BYTES_MIN, RESERVED_BYTES_MAX);
            self.file.reserve(self.end, end - self.end + ahead);
            self.reserved_end = end + ahead;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::fs::{Create, FileSystem, RealFs};

    #[test]
    fn the_file_holds_the_records_then_filler_and_finishing_cuts_it_off() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        for (filler, byte) in [(Filler::Zeros, 0), (Filler::Ones, 0xff)] {
            let file = RealFs.create(&path, Create::Replace).unwrap();
            let mut appender = Appender::new(file, 0, filler);
            let mut expected = Vec::new();
            for length in [10, 0, 70_000, 3, 65_536, 30_000, 30_000, 5_000, 40_000, 1] {
                let record = vec![b'r'; length];
                let (head, tail) = record.split_at(length / 3);
                appender.append_parts(&[IoSlice::new(head), IoSlice::new(tail)]).unwrap();
                expected.extend_from_slice(&record);
                let content = fs::read(&path).unwrap();
                assert!(content.len() < expected.len() + PREPARED_BYTES);
                assert!(content.starts_with(&expected));
                assert!(content[expected.len()..].iter().all(|at| *at == byte));
                assert!(filler.is_all_of(&content[expected.len()..]));
            }
            appender.finish().unwrap();
            assert_eq!(fs::read(&path).unwrap(), expected);
            appender.append(b"more").unwrap();
            assert_eq!(appender.end(), expected.len() as u64 + 4);
        }
    }

    #[test]
    fn only_filler_of_a_length_that_is_written_is_told_as_filler() {
        assert!(Filler::Ones.is_all_of(&[]));
        assert!(Filler::Ones.is_all_of(&[0xff; PREPARED_BYTES]));
        assert!(!Filler::Ones.is_all_of(&[0xff; PREPARED_BYTES + 1]));
        assert!(!Filler::Ones.is_all_of(&[0xff, 0xfe]));
        assert!(!Filler::Zeros.is_all_of(&[0xff]));
    }
}
