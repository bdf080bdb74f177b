//! From a directory to what was in it.
//!
//! 1. Look what is there, without touching anything: another engine's data, or data whose CURRENT
//!    is missing, is refused; what a crash left of a database in the making is no data.
//! 2. CURRENT names the manifest, the manifest tells tables, logs and counters.
//! 3. Logs that are still needed are replayed, oldest first, into memtables and from there into
//!    level-0 tables. No log is ever appended to again: where a torn record ends is not certain.
//! 4. A new log and a new manifest with all of that are written; then CURRENT is pointed to it.
//! 5. What nothing refers to any more, of the files that are surely ours, is removed.
//!
//! An error on the way leaves everything that was there.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::core::{FileNumbers, Home};
use super::edit::{COMPARATOR, LEVEL_COUNT, TableInfo, VersionEdit};
use super::filename::{FileKind, FileNumber, parse_current};
use super::flush::write_memtable;
use super::inventory::Inventory;
use super::key::Sequence;
use super::log::{LogReader, OnCorruption, Tail, Torn, TornKind};
use super::memtable::Memtable;
use super::version::{TableFile, Version};
use super::write::insert;
use super::write_batch::{HEADER_BYTES, WriteBatch};
use crate::fs::Access;
use crate::{Error, Result};

/// What was found.
pub(crate) struct Recovered {
    /// The tables of the manifest and those made of the logs.
    pub(crate) version: Version,
    pub(crate) last_sequence: Sequence,
    pub(crate) file_numbers: FileNumbers,
    /// Records of logs that were replayed.
    pub(crate) replayed_count: u64,
    /// Logs that ended in a torn record, described.
    pub(crate) torn_logs: Vec<String>,
}

impl Recovered {
    /// For the details of [`Stats`](crate::Stats).
    pub(super) fn describe(&self) -> Vec<(String, String)> {
        vec![
            ("replayed log records".to_owned(), self.replayed_count.to_string()),
            ("torn logs".to_owned(), self.torn_logs.join("; ")),
        ]
    }
}

/// Tells of repair where it helps.
pub(super) fn suggest_repair(error: Error) -> Error {
    match error {
        Error::Corruption { file, offset, problem } => Error::Corruption {
            file,
            offset,
            problem: format!("{problem}; repairing the directory saves what can be read"),
        },
        other => other,
    }
}

/// Reads the database in `home`, or makes an empty one of nothing. Tables made of logs are on
/// disk, and their names not yet synced.
pub(crate) fn recover(home: &Home, inventory: &Inventory) -> Result<Recovered> {
    let (manifest, mut replay) = read(home, inventory, true)?;
    replay.flush()?;
    Ok(replay.end(manifest)?.0)
}

/// Reads the database in `home` without writing anything: what is in logs comes in a memtable.
pub(super) fn read_all(home: &Home, inventory: &Inventory) -> Result<(Recovered, Memtable)> {
    let (manifest, replay) = read(home, inventory, false)?;
    replay.end(manifest)
}

/// Reads the manifest and the logs; full memtables go to tables if it `flushes`.
fn read<'a>(
    home: &'a Home,
    inventory: &Inventory,
    flushes: bool,
) -> Result<(ManifestContent, Replay<'a>)> {
    let manifest = match inventory.has_current() {
        true => read_manifest(home, inventory)?,
        false => ManifestContent::default(),
    };
    let next = manifest.next_file_number.max(inventory.largest_number().next().unwrap_or_default());
    let mut replay = Replay {
        home,
        flushes,
        file_numbers: FileNumbers::new(next.max(FileNumber(1))),
        last_sequence: manifest.last_sequence,
        memtable: Memtable::new(),
        tables: Vec::new(),
        replayed_count: 0,
        torn_logs: Vec::new(),
    };
    for log in inventory.logs().into_iter().filter(|log| manifest.needs_log(*log)) {
        replay.log(log)?;
    }
    Ok((manifest, replay))
}

/// All that a manifest tells, its edits applied in order.
#[derive(Debug, Default)]
pub(super) struct ManifestContent {
    path: std::path::PathBuf,
    pub(super) log_number: FileNumber,
    previous_log_number: FileNumber,
    next_file_number: FileNumber,
    pub(super) last_sequence: Sequence,
    pointers: [Vec<u8>; LEVEL_COUNT],
    pub(super) tables: [BTreeMap<FileNumber, TableInfo>; LEVEL_COUNT],
    told: Told,
}

/// Which of the counters that every manifest must tell were told.
#[derive(Debug, Default)]
struct Told {
    log_number: bool,
    next_file_number: bool,
    last_sequence: bool,
}

/// The manifest that CURRENT names.
pub(super) fn read_current(home: &Home) -> Result<FileNumber> {
    let current = home.path(FileKind::Current);
    let mut scratch = Vec::new();
    let file = home.fs.open(&current, Access::Positioned)?;
    // A name and a newline are short; whatever is longer is wrong, and told as such.
    let length = usize::try_from(file.length()?.min(1024)).unwrap_or_default();
    let content = file.read_at(0, length, &mut scratch)?;
    parse_current(content).map_err(|problem| Error::corruption(&current, 0, problem))
}

fn read_manifest(home: &Home, inventory: &Inventory) -> Result<ManifestContent> {
    let kind = FileKind::Manifest(read_current(home)?);
    if !inventory.has(kind) {
        let problem = format!("it names {kind}, which is not there");
        return Err(Error::corruption(home.path(FileKind::Current), 0, problem));
    }
    let manifest = ManifestContent::read(home, inventory, kind)?;
    manifest.check_files(inventory)?;
    Ok(manifest)
}

impl ManifestContent {
    /// Reads a manifest to its end.
    pub(super) fn read(home: &Home, inventory: &Inventory, kind: FileKind) -> Result<Self> {
        let path = home.path(kind);
        let file = home.fs.open(&path, Access::Positioned)?;
        let mut reader = LogReader::new(file, &path, OnCorruption::Fail)?;
        let mut manifest = Self { path: path.clone(), ..Self::default() };
        while let Some(record) = reader.next()? {
            let edit = VersionEdit::decode(record.bytes)
                .map_err(|malformed| malformed.in_file(&path, record.offset))?;
            manifest.apply(home, edit)?;
        }
        if let Some(Tail::Torn(torn)) = reader.tail() {
            manifest.check_torn(inventory, torn)?;
        }
        manifest.check_told()?;
        Ok(manifest)
    }

    /// Whether the log holds what the tables do not.
    pub(super) fn needs_log(&self, log: FileNumber) -> bool {
        log >= self.log_number || log == self.previous_log_number
    }

    fn apply(&mut self, home: &Home, edit: VersionEdit) -> Result<()> {
        let told = &mut self.told;
        if let Some(found) = edit.comparator
            && found != COMPARATOR
        {
            return Err(Error::ComparatorMismatch {
                directory: home.directory.clone(),
                found,
                wanted: COMPARATOR.to_owned(),
            });
        }
        if let Some(number) = edit.log_number {
            (self.log_number, told.log_number) = (number, true);
        }
        if let Some(number) = edit.previous_log_number {
            self.previous_log_number = number;
        }
        if let Some(number) = edit.next_file_number {
            (self.next_file_number, told.next_file_number) = (number, true);
        }
        if let Some(sequence) = edit.last_sequence {
            (self.last_sequence, told.last_sequence) = (sequence, true);
        }
        for (level, key) in edit.compact_pointers {
            self.pointers[level] = key;
        }
        for (level, number) in edit.deleted_files {
            self.tables[level].remove(&number);
        }
        for (level, table) in edit.new_files {
            self.tables[level].insert(table.number, table);
        }
        Ok(())
    }

    /// A manifest may end in a record that a crash cut short: then nothing that came after it
    /// was done. If something was, the record had been whole, and is damaged now.
    fn check_torn(&self, inventory: &Inventory, torn: &Torn) -> Result<()> {
        let is_damage = torn.kind == TornKind::Garbage
            || torn.records_follow
            || !inventory.has(FileKind::Log(self.log_number));
        if is_damage {
            return Err(Error::corruption(&self.path, torn.offset, torn.problem.clone()));
        }
        Ok(())
    }

    fn check_told(&self) -> Result<()> {
        let told = &self.told;
        let missing = [
            ("log number", told.log_number),
            ("next file number", told.next_file_number),
            ("last sequence", told.last_sequence),
        ];
        match missing.iter().find(|(_, is_told)| !is_told) {
            None => Ok(()),
            Some((what, _)) => Err(Error::corruption(&self.path, 0, format!("it tells no {what}"))),
        }
    }

    /// Sees that the tables are there, and the log that the manifest names. That log's name is on
    /// disk before the manifest says so, here and in LevelDB. Later logs are not named anywhere:
    /// one that was removed is not noticed. (0 for the log is what LevelDB's repair writes.)
    fn check_files(&self, inventory: &Inventory) -> Result<()> {
        let log = FileKind::Log(self.log_number);
        if self.log_number != FileNumber(0) && !inventory.has(log) {
            let file = self.path.with_file_name(log.to_string());
            let problem = "the file is not there: what was written last is missing".to_owned();
            return Err(Error::corruption(file, 0, problem));
        }
        for table in self.tables.iter().flat_map(BTreeMap::values) {
            let problem = match inventory.table_length(table.number) {
                None => "the file is not there".to_owned(),
                Some(length) if length != table.size => {
                    format!("the file has {length} bytes, the manifest says {}", table.size)
                }
                Some(_) => continue,
            };
            let file = self.path.with_file_name(FileKind::Table(table.number).to_string());
            return Err(Error::corruption(file, 0, problem));
        }
        Ok(())
    }
}

/// Replays logs.
struct Replay<'a> {
    home: &'a Home,
    flushes: bool,
    file_numbers: FileNumbers,
    last_sequence: Sequence,
    memtable: Memtable,
    tables: Vec<Arc<TableFile>>,
    replayed_count: u64,
    torn_logs: Vec<String>,
}

impl Replay<'_> {
    fn log(&mut self, number: FileNumber) -> Result<()> {
        let kind = FileKind::Log(number);
        let path = self.home.path(kind);
        let file = self.home.fs.open(&path, Access::Positioned)?;
        let mut reader = LogReader::new(file, &path, OnCorruption::Fail)?;
        while let Some(record) = reader.next()? {
            let batch = WriteBatch::decode(record.bytes)
                .map_err(|malformed| malformed.in_file(&path, record.offset))?;
            let Some(last) = batch.last_sequence() else { continue };
            let operations = record.bytes.get(HEADER_BYTES..).unwrap_or_default();
            insert(&self.memtable, batch.first_sequence(), Bytes::copy_from_slice(operations))?;
            self.last_sequence = self.last_sequence.max(last);
            self.replayed_count += 1;
            if self.flushes && self.memtable.bytes() >= self.home.options.memtable_bytes {
                self.flush()?;
            }
        }
        if let Some(Tail::Torn(torn)) = reader.tail() {
            self.torn_logs.push(format!("{kind} at {}: {}", torn.offset, torn.problem));
        }
        Ok(())
    }

    /// What was found, and the memtable with what was not flushed.
    fn end(self, manifest: ManifestContent) -> Result<(Recovered, Memtable)> {
        let disposal = &self.home.disposal;
        let listed = manifest.tables.into_iter().enumerate().flat_map(|(level, tables)| {
            tables
                .into_values()
                .map(move |info| (level, TableFile::new(info, false, disposal.clone())))
        });
        let replayed = self.tables.into_iter().map(|table| (0, table));
        let mut version = Version::new(listed.chain(replayed))
            .map_err(|problem| Error::corruption(&manifest.path, 0, problem))?;
        for (level, key) in manifest.pointers.into_iter().enumerate() {
            version.set_pointer(level, key);
        }
        let recovered = Recovered {
            version,
            last_sequence: self.last_sequence,
            file_numbers: self.file_numbers,
            replayed_count: self.replayed_count,
            torn_logs: self.torn_logs,
        };
        Ok((recovered, self.memtable))
    }

    /// Writes the memtable to a level-0 table, newer than all before.
    fn flush(&mut self) -> Result<()> {
        let memtable = std::mem::take(&mut self.memtable);
        if !memtable.is_empty() {
            let number = self.file_numbers.take();
            self.tables.extend(write_memtable(self.home, &memtable, number, &[])?);
        }
        Ok(())
    }
}
