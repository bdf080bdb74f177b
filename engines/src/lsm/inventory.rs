//! The files of a directory: whether they are a database, and which of them are of no use.

use std::collections::HashMap;
use std::path::Path;

use super::edit::VersionEdit;
use super::filename::{FileKind, FileNumber};
use super::log::{LogReader, OnCorruption};
use super::version::Version;
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
        self.check_engine(directory)?;
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

    pub(super) fn check_engine(&self, directory: &Path) -> Result<()> {
        match &self.rocksdb {
            None => Ok(()),
            Some(name) => Err(Error::ForeignDirectory {
                directory: directory.to_path_buf(),
                wanted: "lsm",
                found: format!("RocksDB (it has a file {name})"),
            }),
        }
    }

    /// Refuses what is no database, or another one.
    pub(super) fn check_repairable(&self, directory: &Path) -> Result<()> {
        if self.rocksdb.is_none() && !self.has_current() && self.data().next().is_none() {
            let problem = "there is nothing to repair: no table, log or manifest".to_owned();
            return Err(Error::NotADatabase { directory: directory.to_path_buf(), problem });
        }
        self.check_engine(directory)
    }

    /// The bytes in all of them.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.files.values().sum()
    }

    /// Every file that may be ours.
    pub(super) fn kinds(&self) -> impl Iterator<Item = FileKind> {
        self.files.keys().copied()
    }

    pub(super) fn has(&self, kind: FileKind) -> bool {
        self.files.contains_key(&kind)
    }

    /// The logs, the oldest first.
    pub(super) fn logs(&self) -> Vec<FileNumber> {
        let mut logs: Vec<_> = self
            .kinds()
            .filter_map(|kind| match kind {
                FileKind::Log(number) => Some(number),
                _ => None,
            })
            .collect();
        logs.sort_unstable();
        logs
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

    pub(super) fn largest_number(&self) -> FileNumber {
        self.files.keys().filter_map(|kind| kind.number()).max().unwrap_or_default()
    }

    pub(super) fn table_length(&self, number: FileNumber) -> Option<u64> {
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
