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
