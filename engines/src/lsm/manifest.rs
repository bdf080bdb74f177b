//! Keeping the table set on disk: the manifest, and CURRENT, which names it.
//!
//! # Invariants
//! - A table is in the manifest only after its bytes and its name are on disk.
//! - A change is on disk before anybody reads by it, and before anything it makes superfluous is
//!   removed.
//! - After a failed write of the manifest nothing is removed any more: which of the two table sets
//!   the next open finds is not known.

use std::sync::Arc;

use super::core::{Core, Home};
use super::edit::{COMPARATOR, LEVEL_COUNT, VersionEdit};
use super::filename::{FileKind, FileNumber, current_content};
use super::key::Sequence;
use super::log::{LogOptions, LogWriter};
use super::log_file::Unwritable;
use super::version::{TableFile, Version};
use super::view::Frozen;
use crate::fs::{Create, replace_file};
use crate::{Error, Result};

/// The manifest in use.
#[derive(Debug)]
pub(crate) struct Manifest {
    writer: LogWriter,
    number: FileNumber,
    /// Its length when it was started.
    started_with: u64,
    log_number: FileNumber,
    /// Tables of a change that failed and is not tried again. The manifest may name them all the
    /// same, so they stay until it is replaced.
    orphans: Vec<FileNumber>,
}

/// All that a manifest tells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableSet<'a> {
    pub(crate) version: &'a Version,
    /// Logs below this are not needed.
    pub(crate) log_number: FileNumber,
    pub(crate) next_file_number: FileNumber,
    pub(crate) last_sequence: Sequence,
}

impl Manifest {
    /// Writes a new manifest that tells all of `set`, and points CURRENT at it. The number is
    /// below the set's next file number.
    pub(crate) fn create(home: &Home, number: FileNumber, set: TableSet<'_>) -> Result<Self> {
        let path = home.path(FileKind::Manifest(number));
        let file = home.fs.create(&path, Create::Replace)?;
        let options = LogOptions { prepare: false, buffer_bytes: 0 };
        let mut writer = LogWriter::new(file, 0, options);
        let written = writer.append(&set.as_edit().encode()).and_then(|()| writer.sync());
        if let Err(error) = written {
            // CURRENT does not name it yet.
            let _ = home.fs.remove(&path);
            return Err(error);
        }
        // CURRENT must not name what a crash may take away again.
        home.sync_names()?;
        replace_file(
            &*home.fs,
            &home.path(FileKind::Current),
            &home.path(FileKind::Temporary(number)),
            current_content(number).as_bytes(),
        )?;
        let started_with = writer.offset();
        let log_number = set.log_number;
        Ok(Self { writer, number, started_with, log_number, orphans: Vec::new() })
    }

    /// The manifest of an engine that only reads.
    pub(crate) fn unwritable(home: &Home) -> Self {
        let options = LogOptions { prepare: false, buffer_bytes: 0 };
        Self {
            writer: LogWriter::new(Unwritable::of(home), 0, options),
            number: FileNumber(0),
            started_with: 0,
            log_number: FileNumber(0),
            orphans: Vec::new(),
        }
    }

    fn append(&mut self, edit: &VersionEdit) -> Result<()> {
        self.writer.append(&edit.encode())?;
        self.writer.sync()
    }
}

impl TableSet<'_> {
    fn as_edit(&self) -> VersionEdit {
        let pointers = (0..LEVEL_COUNT)
            .map(|level| (level, self.version.pointer(level).to_vec()))
            .filter(|(_, key)| !key.is_empty());
        VersionEdit {
            comparator: Some(COMPARATOR.to_owned()),
            log_number: Some(self.log_number),
            previous_log_number: Some(FileNumber(0)),
            next_file_number: Some(self.next_file_number),
            last_sequence: Some(self.last_sequence),
            compact_pointers: pointers.collect(),
            deleted_files: Vec::new(),
            new_files: self
                .version
                .tables()
                .map(|(level, table)| (level, table.info.clone()))
                .collect(),
        }
    }
}

/// A change of the table set.
#[derive(Default)]
pub(crate) struct Change {
    pub(crate) removed: Vec<(usize, FileNumber)>,
    pub(crate) added: Vec<(usize, Arc<TableFile>)>,
    /// Memtables whose tables are in `added`, the oldest first; none older is unflushed.
    pub(crate) flushed: Vec<Arc<Frozen>>,
    /// A level and where its compaction ended.
    pub(crate) pointer: Option<(usize, Vec<u8>)>,
}

impl Core {
    /// Makes a change durable, then visible.
    ///
    /// # Errors
    /// Any failure poisons the engine.
    pub(crate) fn install(&self, change: Change) -> Result<()> {
        // Held across the manifest's I/O: changes follow one another.
        let mut manifest = self.manifest.lock();
        self.poison.check()?;
        self.install_locked(&mut manifest, change).map_err(|error| self.poisoned(error))
    }

    fn install_locked(&self, manifest: &mut Manifest, change: Change) -> Result<()> {
        let version = Arc::clone(&self.view.load().version);
        let mut next = version.with(&change.removed, &change.added).map_err(|problem| {
            let path = self.home.path(FileKind::Manifest(manifest.number));
            Error::corruption(path, 0, problem)
        })?;
        if let Some(newest) = change.flushed.last() {
            manifest.log_number = newest.next_log;
        }
        if let Some((level, key)) = &change.pointer {
            next.set_pointer(*level, key.clone());
        }
        if change.flushed.is_empty() {
            let added = change.added.iter().map(|(_, table)| table.info.number);
            manifest.orphans = added.collect();
        }
        self.write_change(manifest, &change, &next)?;
        manifest.orphans.clear();
        let next = Arc::new(next);
        self.view.change(|view| {
            view.version = Arc::clone(&next);
            let is_flushed = |frozen: &Arc<Frozen>| {
                change.flushed.iter().any(|flushed| Arc::ptr_eq(flushed, frozen))
            };
            view.frozen.retain(|frozen| !is_flushed(frozen));
        });
        version.retire(&next);
        for frozen in &change.flushed {
            frozen.log.retire();
            self.home.disposal.file(FileKind::Log(frozen.log.number));
        }
        Ok(())
    }

    fn write_change(&self, manifest: &mut Manifest, change: &Change, next: &Version) -> Result<()> {
        let grown = manifest.writer.offset() - manifest.started_with;
        if grown >= self.home.options.manifest_bytes {
            return self.roll_over(manifest, next);
        }
        let new_files = change.added.iter().map(|(level, table)| (*level, table.info.clone()));
        manifest.append(&VersionEdit {
            log_number: Some(manifest.log_number),
            next_file_number: Some(self.file_numbers.next()),
            last_sequence: Some(self.visible()),
            compact_pointers: change.pointer.iter().cloned().collect(),
            deleted_files: change.removed.clone(),
            new_files: new_files.collect(),
            ..VersionEdit::default()
        })
    }

    /// Puts a new manifest in place of one that a failed append has left unusable, and removes the
    /// tables of the change that failed.
    pub(super) fn replace_broken_manifest(&self) -> Result<()> {
        let mut manifest = self.manifest.lock();
        let version = Arc::clone(&self.view.load().version);
        if manifest.writer.is_broken() {
            self.roll_over(&mut manifest, &version)?;
        }
        let orphans = std::mem::take(&mut manifest.orphans);
        let is_used = |number| version.tables().any(|(_, table)| table.info.number == number);
        let unused = orphans.into_iter().filter(|number| !is_used(*number));
        unused.for_each(|number| self.home.disposal.table(number));
        Ok(())
    }

    /// Starts a new manifest with all there is, so that it does not grow for ever.
    fn roll_over(&self, manifest: &mut Manifest, next: &Version) -> Result<()> {
        let number = self.file_numbers.take();
        let set = TableSet {
            version: next,
            log_number: manifest.log_number,
            next_file_number: self.file_numbers.next(),
            last_sequence: self.visible(),
        };
        let mut new = Manifest::create(&self.home, number, set)?;
        new.orphans = std::mem::take(&mut manifest.orphans);
        let old = std::mem::replace(manifest, new);
        self.home.disposal.file(FileKind::Manifest(old.number));
        Ok(())
    }
}
