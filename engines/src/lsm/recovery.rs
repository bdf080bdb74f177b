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

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::core::{FileNumbers, Home};
use super::edit::{COMPARATOR, LEVEL_COUNT, TableInfo, VersionEdit};
use super::filename::{FileKind, FileNumber, parse_current};
use super::flush::write_memtable;
use super::key::Sequence;
use super::log::{LogReader, OnCorruption, Tail, Torn, TornKind};
use super::memtable::Memtable;
use super::version::{TableFile, Version};
use super::write::insert;
use super::write_batch::{HEADER_BYTES, WriteBatch};
use crate::fs::{Access, FileSystem};
use crate::{Error, Result};

/// The files of a database that are there.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    /// Each with its length in bytes.
    files: HashMap<FileKind, u64>,
    /// Something only RocksDB leaves.
    rocksdb: Option<String>,
    /// A crash stopped the making of a database before CURRENT was there: nothing is in it.
    is_unborn: bool,
}

impl Inventory {
    /// Of a directory that may be missing.
    pub(crate) fn take(fs: &dyn FileSystem, directory: &Path) -> Result<Self> {
        let mut inventory = Self::default();
        if fs.entry(directory)?.is_none_or(|entry| !entry.is_directory) {
            return Ok(inventory);
        }
        for entry in fs.list(directory)? {
            let Some(name) = entry.name().filter(|_| !entry.is_directory) else { continue };
            if name == "IDENTITY" || name.starts_with("OPTIONS-") {
                inventory.rocksdb = Some(name.to_owned());
            }
            if let Some(kind) = FileKind::parse(name) {
                inventory.files.insert(kind, entry.length);
            }
        }
        inventory.is_unborn = inventory.is_unborn(fs, directory);
        Ok(inventory)
    }

    /// Whether no table is there nor a byte in a log, nor does a manifest tell of a table. In doubt
    /// there was data.
    fn is_unborn(&self, fs: &dyn FileSystem, directory: &Path) -> bool {
        !self.has_current()
            && self.data().all(|kind| match kind {
                FileKind::Log(_) => self.files.get(&kind) == Some(&0),
                FileKind::Manifest(_) => {
                    tells_of_no_table(fs, &directory.join(kind.to_string())).unwrap_or(false)
                }
                _ => false,
            })
    }

    pub(crate) fn has_current(&self) -> bool {
        self.files.contains_key(&FileKind::Current)
    }

    /// Whether this is a LevelDB database, or what is left of one: a manifest is there, whether or
    /// not CURRENT names it.
    pub(crate) fn is_ours(&self) -> bool {
        let is_manifest = |kind| matches!(kind, FileKind::Manifest(_));
        self.rocksdb.is_none() && self.data().any(is_manifest)
    }

    /// Refuses what must not be opened.
    pub(crate) fn check(&self, directory: &Path, create: bool) -> Result<()> {
        if let Some(name) = &self.rocksdb {
            return Err(Error::ForeignDirectory {
                directory: directory.to_path_buf(),
                wanted: "lsm",
                found: format!("RocksDB (it has a file {name})"),
            });
        }
        if self.has_current() {
            return Ok(());
        }
        let problem = match self.data().next().filter(|_| !self.is_unborn) {
            Some(file) => format!(
                "{file} is there, but CURRENT, which names the manifest, is missing; creating a \
                 database here would destroy the data: restore CURRENT or repair the directory"
            ),
            None if create => return Ok(()),
            None => "no LevelDB database is there (CURRENT is missing)".to_owned(),
        };
        Err(Error::NotADatabase { directory: directory.to_path_buf(), problem })
    }

    /// The bytes in all of them.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.files.values().sum()
    }

    fn data(&self) -> impl Iterator<Item = FileKind> {
        self.files.keys().copied().filter(|kind| {
            matches!(
                kind,
                FileKind::Table(_)
                    | FileKind::OldTable(_)
                    | FileKind::Log(_)
                    | FileKind::Manifest(_)
            )
        })
    }

    fn largest_number(&self) -> FileNumber {
        self.files.keys().filter_map(|kind| kind.number()).max().unwrap_or_default()
    }

    fn table_length(&self, number: FileNumber) -> Option<u64> {
        let kinds = [FileKind::Table(number), FileKind::OldTable(number)];
        kinds.iter().find_map(|kind| self.files.get(kind).copied())
    }

    /// What may be removed once a manifest says that `version` and the log `log` are all there
    /// is, and CURRENT names it.
    pub(crate) fn superfluous(&self, version: &Version, log: FileNumber) -> Vec<FileKind> {
        let live: std::collections::HashSet<_> =
            version.tables().map(|(_, table)| table.info.number).collect();
        let is_superfluous = |kind: &FileKind| match kind {
            FileKind::Table(number) | FileKind::OldTable(number) => !live.contains(number),
            FileKind::Log(number) => *number < log,
            // The one in use is newer than this inventory.
            FileKind::Manifest(_) | FileKind::Temporary(_) => true,
            FileKind::Current | FileKind::Lock | FileKind::InfoLog | FileKind::OldInfoLog => false,
        };
        self.files.keys().copied().filter(is_superfluous).collect()
    }
}

fn tells_of_no_table(fs: &dyn FileSystem, manifest: &Path) -> Result<bool> {
    let file = fs.open(manifest, Access::Positioned)?;
    let mut reader = LogReader::new(file, manifest, OnCorruption::Fail)?;
    while let Some(record) = reader.next()? {
        let edit = VersionEdit::decode(record.bytes)
            .map_err(|malformed| malformed.in_file(manifest, record.offset))?;
        if !edit.new_files.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

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

/// Reads the database in `home`, or makes an empty one of nothing. Tables made of logs are on
/// disk, and their names not yet synced.
pub(crate) fn recover(home: &Home, inventory: &Inventory) -> Result<Recovered> {
    let manifest = match inventory.has_current() {
        true => read_manifest(home, inventory)?,
        false => ManifestContent::default(),
    };
    let next = manifest.next_file_number.max(inventory.largest_number().next().unwrap_or_default());
    let mut replay = Replay {
        home,
        file_numbers: FileNumbers::new(next.max(FileNumber(1))),
        last_sequence: manifest.last_sequence,
        memtable: Memtable::new(),
        tables: Vec::new(),
        replayed_count: 0,
        torn_logs: Vec::new(),
    };
    let mut logs: Vec<_> = inventory
        .files
        .keys()
        .filter_map(|kind| match kind {
            FileKind::Log(number) => Some(*number),
            _ => None,
        })
        .filter(|log| *log >= manifest.log_number || *log == manifest.previous_log_number)
        .collect();
    logs.sort_unstable();
    for log in logs {
        replay.log(log)?;
    }
    replay.flush()?;
    let listed = manifest.tables.into_iter().enumerate().flat_map(|(level, tables)| {
        tables
            .into_values()
            .map(move |info| (level, TableFile::new(info, false, home.disposal.clone())))
    });
    let replayed = replay.tables.into_iter().map(|table| (0, table));
    let mut version = Version::new(listed.chain(replayed))
        .map_err(|problem| Error::corruption(&manifest.path, 0, problem))?;
    for (level, key) in manifest.pointers.into_iter().enumerate() {
        version.set_pointer(level, key);
    }
    Ok(Recovered {
        version,
        last_sequence: replay.last_sequence,
        file_numbers: replay.file_numbers,
        replayed_count: replay.replayed_count,
        torn_logs: replay.torn_logs,
    })
}

/// All that a manifest tells, its edits applied in order.
#[derive(Debug, Default)]
struct ManifestContent {
    path: std::path::PathBuf,
    log_number: FileNumber,
    previous_log_number: FileNumber,
    next_file_number: FileNumber,
    last_sequence: Sequence,
    pointers: [Vec<u8>; LEVEL_COUNT],
    tables: [BTreeMap<FileNumber, TableInfo>; LEVEL_COUNT],
}

/// Which of the counters that every manifest must tell were told.
#[derive(Debug, Default)]
struct Told {
    log_number: bool,
    next_file_number: bool,
    last_sequence: bool,
}

fn read_manifest(home: &Home, inventory: &Inventory) -> Result<ManifestContent> {
    let current = home.path(FileKind::Current);
    let mut scratch = Vec::new();
    let file = home.fs.open(&current, Access::Positioned)?;
    // A name and a newline are short; whatever is longer is wrong, and told as such.
    let length = usize::try_from(file.length()?.min(1024)).unwrap_or_default();
    let content = file.read_at(0, length, &mut scratch)?;
    let number =
        parse_current(content).map_err(|problem| Error::corruption(&current, 0, problem))?;
    let kind = FileKind::Manifest(number);
    if !inventory.files.contains_key(&kind) {
        let problem = format!("it names {kind}, which is not there");
        return Err(Error::corruption(&current, 0, problem));
    }
    let path = home.path(kind);
    let file = home.fs.open(&path, Access::Positioned)?;
    let mut reader = LogReader::new(file, &path, OnCorruption::Fail)?;
    let mut manifest = ManifestContent { path: path.clone(), ..ManifestContent::default() };
    let mut told = Told::default();
    while let Some(record) = reader.next()? {
        let edit = VersionEdit::decode(record.bytes)
            .map_err(|malformed| malformed.in_file(&path, record.offset))?;
        manifest.apply(home, edit, &mut told)?;
    }
    if let Some(Tail::Torn(torn)) = reader.tail() {
        manifest.check_torn(inventory, torn)?;
    }
    manifest.check_complete(inventory, &told)?;
    Ok(manifest)
}

impl ManifestContent {
    fn apply(&mut self, home: &Home, edit: VersionEdit, told: &mut Told) -> Result<()> {
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
            || !inventory.files.contains_key(&FileKind::Log(self.log_number));
        if is_damage {
            return Err(Error::corruption(&self.path, torn.offset, torn.problem.clone()));
        }
        Ok(())
    }

    fn check_complete(&self, inventory: &Inventory, told: &Told) -> Result<()> {
        let missing = [
            ("log number", told.log_number),
            ("next file number", told.next_file_number),
            ("last sequence", told.last_sequence),
        ];
        if let Some((what, _)) = missing.iter().find(|(_, is_told)| !is_told) {
            return Err(Error::corruption(&self.path, 0, format!("it tells no {what}")));
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
            if self.memtable.bytes() >= self.home.options.memtable_bytes {
                self.flush()?;
            }
        }
        if let Some(Tail::Torn(torn)) = reader.tail() {
            self.torn_logs.push(format!("{kind} at {}: {}", torn.offset, torn.problem));
        }
        Ok(())
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
