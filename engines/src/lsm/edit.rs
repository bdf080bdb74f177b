//! Version edits: what one record of a manifest holds.
//!
//! A list of fields, each a varint32 tag and its content:
//! ```text
//! 1  comparator       prefixed name
//! 2  log number       varint64: logs below it are not needed
//! 3  next file        varint64: the next free file number
//! 4  last sequence    varint64
//! 5  compact pointer  varint32 level, prefixed internal key
//! 6  deleted file     varint32 level, varint64 number
//! 7  new file         varint32 level, varint64 number, varint64 size,
//!                     prefixed smallest internal key, prefixed largest internal key
//! 9  previous log     varint64: a log below the log number that is needed too; 0 for none
//! ```

use std::cmp::Ordering;

use super::coding::{Cursor, Malformed, push_prefixed, push_varint32, push_varint64};
use super::filename::FileNumber;
use super::key::{ParsedKey, Sequence, compare};

/// The number of levels; a manifest names no level at or above it.
pub(crate) const LEVEL_COUNT: usize = 7;

/// The order of user keys that we have, as it is named in manifests.
pub(crate) const COMPARATOR: &str = "leveldb.BytewiseComparator";

/// A change of the table set and of the counters beside it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct VersionEdit {
    pub(crate) comparator: Option<String>,
    pub(crate) log_number: Option<FileNumber>,
    pub(crate) previous_log_number: Option<FileNumber>,
    pub(crate) next_file_number: Option<FileNumber>,
    pub(crate) last_sequence: Option<Sequence>,
    /// Where the next compaction of a level starts: level, internal key.
    pub(crate) compact_pointers: Vec<(usize, Vec<u8>)>,
    /// Level, number. Applied before the new files: a file may move to another level.
    pub(crate) deleted_files: Vec<(usize, FileNumber)>,
    pub(crate) new_files: Vec<(usize, TableInfo)>,
}

/// A table as the manifest describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableInfo {
    pub(crate) number: FileNumber,
    /// The file's size in bytes.
    pub(crate) size: u64,
    /// The first internal key.
    pub(crate) smallest: Vec<u8>,
    /// The last internal key.
    pub(crate) largest: Vec<u8>,
}

/// The tags of the fields. Persisted: do not renumber.
mod tag {
    pub(super) const COMPARATOR: u32 = 1;
    pub(super) const LOG_NUMBER: u32 = 2;
    pub(super) const NEXT_FILE_NUMBER: u32 = 3;
    pub(super) const LAST_SEQUENCE: u32 = 4;
    pub(super) const COMPACT_POINTER: u32 = 5;
    pub(super) const DELETED_FILE: u32 = 6;
    pub(super) const NEW_FILE: u32 = 7;
    // 8 was used for large values, long ago.
    pub(super) const PREVIOUS_LOG_NUMBER: u32 = 9;
}

impl VersionEdit {
    /// The record for the manifest.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(name) = &self.comparator {
            push_varint32(&mut out, tag::COMPARATOR);
            push_prefixed(&mut out, name.as_bytes());
        }
        for (tag, number) in [
            (tag::LOG_NUMBER, self.log_number.map(|file| file.0)),
            (tag::PREVIOUS_LOG_NUMBER, self.previous_log_number.map(|file| file.0)),
            (tag::NEXT_FILE_NUMBER, self.next_file_number.map(|file| file.0)),
            (tag::LAST_SEQUENCE, self.last_sequence.map(|sequence| sequence.0)),
        ] {
            if let Some(number) = number {
                push_varint32(&mut out, tag);
                push_varint64(&mut out, number);
            }
        }
        for (level, key) in &self.compact_pointers {
            push_tag_and_level(&mut out, tag::COMPACT_POINTER, *level);
            push_prefixed(&mut out, key);
        }
        for (level, file) in &self.deleted_files {
            push_tag_and_level(&mut out, tag::DELETED_FILE, *level);
            push_varint64(&mut out, file.0);
        }
        for (level, table) in &self.new_files {
            push_tag_and_level(&mut out, tag::NEW_FILE, *level);
            push_varint64(&mut out, table.number.0);
            push_varint64(&mut out, table.size);
            push_prefixed(&mut out, &table.smallest);
            push_prefixed(&mut out, &table.largest);
        }
        out
    }

    /// Decodes a record of a manifest.
    ///
    /// # Errors
    /// Truncation, an unknown tag, a level there is not, an internal key that is none, a table
    /// whose smallest key comes after its largest.
    pub(crate) fn decode(record: &[u8]) -> Result<Self, Malformed> {
        let mut edit = Self::default();
        let mut cursor = Cursor::new(record);
        while !cursor.is_empty() {
            edit.decode_field(&mut cursor)?;
        }
        Ok(edit)
    }

    fn decode_field(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        let at = cursor.position();
        match cursor.varint32("a tag")? {
            tag::COMPARATOR => {
                let name = cursor.prefixed("the comparator's name")?;
                self.comparator = Some(String::from_utf8_lossy(name).into_owned());
            }
            tag::LOG_NUMBER => {
                self.log_number = Some(FileNumber(cursor.varint64("the log number")?));
            }
            tag::PREVIOUS_LOG_NUMBER => {
                let number = cursor.varint64("the previous log's number")?;
                self.previous_log_number = Some(FileNumber(number));
            }
            tag::NEXT_FILE_NUMBER => {
                let number = cursor.varint64("the next file number")?;
                self.next_file_number = Some(FileNumber(number));
            }
            tag::LAST_SEQUENCE => self.last_sequence = Some(read_sequence(cursor)?),
            tag::COMPACT_POINTER => {
                let level = read_level(cursor)?;
                self.compact_pointers.push((level, read_key(cursor, "a compact pointer")?));
            }
            tag::DELETED_FILE => {
                let level = read_level(cursor)?;
                let number = FileNumber(cursor.varint64("a deleted file's number")?);
                self.deleted_files.push((level, number));
            }
            tag::NEW_FILE => {
                let level = read_level(cursor)?;
                self.new_files.push((level, read_table(cursor)?));
            }
            tag => return Err(Malformed::new(at, format!("unknown tag {tag} of a version edit"))),
        }
        Ok(())
    }
}

fn push_tag_and_level(out: &mut Vec<u8>, tag: u32, level: usize) {
    debug_assert!(level < LEVEL_COUNT);
    push_varint32(out, tag);
    push_varint64(out, level as u64);
}

fn read_sequence(cursor: &mut Cursor<'_>) -> Result<Sequence, Malformed> {
    let at = cursor.position();
    let sequence = Sequence(cursor.varint64("the last sequence")?);
    if sequence > Sequence::MAX {
        return Err(Malformed::new(at, format!("sequence {} takes over 56 bits", sequence.0)));
    }
    Ok(sequence)
}

fn read_level(cursor: &mut Cursor<'_>) -> Result<usize, Malformed> {
    let at = cursor.position();
    let level = cursor.varint32("a level")?;
    usize::try_from(level)
        .ok()
        .filter(|level| *level < LEVEL_COUNT)
        .ok_or_else(|| Malformed::new(at, format!("level {level}: the last one is 6")))
}

fn read_key(cursor: &mut Cursor<'_>, what: &str) -> Result<Vec<u8>, Malformed> {
    let at = cursor.position();
    let key = cursor.prefixed(what)?;
    match ParsedKey::parse(key) {
        Some(_) => Ok(key.to_vec()),
        None => Err(Malformed::new(at, format!("{what} is not an internal key"))),
    }
}

fn read_table(cursor: &mut Cursor<'_>) -> Result<TableInfo, Malformed> {
    let at = cursor.position();
    let table = TableInfo {
        number: FileNumber(cursor.varint64("a new file's number")?),
        size: cursor.varint64("a new file's size")?,
        smallest: read_key(cursor, "a new file's smallest key")?,
        largest: read_key(cursor, "a new file's largest key")?,
    };
    if compare(&table.smallest, &table.largest) == Ordering::Greater {
        let problem = format!("table {}: its smallest key comes after its largest", table.number);
        return Err(Malformed::new(at, problem));
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BYTES: &[u8] = b"\x01\x04name\x02\x07\x09\x05\x03\xac\x02\x04\x80\x01\
        \x05\x01\x09k\x01\x05\0\0\0\0\0\0\
        \x06\x02\x08\
        \x07\x06\x09\x80\x20\x09a\x01\x02\0\0\0\0\0\0\x0abb\x00\x03\0\0\0\0\0\0";

    fn sample() -> VersionEdit {
        VersionEdit {
            comparator: Some("name".to_owned()),
            log_number: Some(FileNumber(7)),
            previous_log_number: Some(FileNumber(5)),
            next_file_number: Some(FileNumber(300)),
            last_sequence: Some(Sequence(128)),
            compact_pointers: vec![(1, b"k\x01\x05\0\0\0\0\0\0".to_vec())],
            deleted_files: vec![(2, FileNumber(8))],
            new_files: vec![(
                6,
                TableInfo {
                    number: FileNumber(9),
                    size: 4096,
                    smallest: b"a\x01\x02\0\0\0\0\0\0".to_vec(),
                    largest: b"bb\x00\x03\0\0\0\0\0\0".to_vec(),
                },
            )],
        }
    }

    #[test]
    fn the_bytes_are_the_documented_ones() {
        assert_eq!(sample().encode(), BYTES);
        assert_eq!(VersionEdit::decode(BYTES), Ok(sample()));
        assert_eq!(VersionEdit::decode(b""), Ok(VersionEdit::default()));
    }

    #[test]
    fn what_no_manifest_may_hold_is_refused_with_its_place() {
        for (bytes, at, problem) in [
            (&b"\x02\x07\x08\x01"[..], 2, "unknown tag 8"),
            (b"\x0a\x01", 0, "unknown tag 10"),
            (b"\x06\x07\x01", 1, "level 7"),
            (b"\x06\xff\xff\xff\xff\x0f\x01", 1, "level 4294967295"),
            (b"\x05\x01\x07sevenby", 2, "not an internal key"),
            (b"\x05\x01\x09k\x02\0\0\0\0\0\0\0", 2, "not an internal key"),
            (b"\x04\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 1, "56 bits"),
            (b"\x01\x05name", 2, "name of 5 bytes"),
        ] {
            let error = VersionEdit::decode(bytes).unwrap_err();
            assert_eq!(error.at, at, "{error:?}");
            assert!(error.problem.contains(problem), "{error:?}");
        }
        let mut swapped = sample();
        let table = &mut swapped.new_files[0].1;
        std::mem::swap(&mut table.smallest, &mut table.largest);
        let error = VersionEdit::decode(&swapped.encode()).unwrap_err();
        assert!(error.problem.contains("table 000009"), "{error:?}");
    }

    #[test]
    fn a_truncated_edit_is_refused_or_a_prefix_of_its_fields() {
        let mut accepted = 0;
        for length in 0..BYTES.len() {
            if let Ok(edit) = VersionEdit::decode(&BYTES[..length]) {
                assert_eq!(edit.encode(), BYTES[..length]);
                accepted += 1;
            }
        }
        // Between its eight fields only.
        assert_eq!(accepted, 8);
    }

    proptest! {
        #[test]
        fn random_bytes_are_decoded_or_refused(bytes: Vec<u8>) {
            let _ = VersionEdit::decode(&bytes);
        }

        #[test]
        fn what_is_encoded_is_decoded(
            numbers: (Option<u64>, Option<u64>, Option<u64>),
            sequence in prop::option::of(0..=Sequence::MAX.0),
            deleted in prop::collection::vec((0..LEVEL_COUNT, any::<u64>()), 0..5),
            tables in prop::collection::vec(
                (0..LEVEL_COUNT, any::<(u64, u64, Vec<u8>, Vec<u8>)>()), 0..5),
        ) {
            let key = |mut key: Vec<u8>| {
                key.extend_from_slice(&(7u64 << 8 | 1).to_le_bytes());
                key
            };
            let edit = VersionEdit {
                comparator: None,
                log_number: numbers.0.map(FileNumber),
                previous_log_number: numbers.1.map(FileNumber),
                next_file_number: numbers.2.map(FileNumber),
                last_sequence: sequence.map(Sequence),
                compact_pointers: Vec::new(),
                deleted_files: deleted.into_iter().map(|(l, n)| (l, FileNumber(n))).collect(),
                new_files: tables.into_iter().map(|(level, (number, size, a, b))| {
                    let (smallest, largest) = if a <= b { (a, b) } else { (b, a) };
                    let (smallest, largest) = (key(smallest), key(largest));
                    (level, TableInfo { number: FileNumber(number), size, smallest, largest })
                }).collect(),
            };
            prop_assert_eq!(VersionEdit::decode(&edit.encode()), Ok(edit));
        }
    }
}
