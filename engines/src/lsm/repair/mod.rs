//! Making a database of what is left of one.
//!
//! 1. The lock is taken, and every manifest, table and log is read to its end.
//! 2. If a manifest is whole, and nothing on disk speaks against it, it tells which tables count,
//!    on which levels, and which logs hold more (see `survey`). Otherwise every table and every log
//!    counts.
//! 3. Of a damaged table or log what can be read goes to a new table.
//! 4. Where nothing tells which of two tables is newer, their entries do: the tables are merged by
//!    sequence (see `arrange`).
//! 5. Whatever was not read whole, or does not count, gets a second name in `lost/`.
//! 6. A new manifest tells of what there is now, and CURRENT is pointed to it.
//! 7. What is not in the manifest is removed: all of it was taken over, or lies in `lost/`.
//!
//! Until step 6 nothing is changed or removed, so a crash leaves what was there; from then on the
//! database opens. Repairing again comes to the same.

mod arrange;
mod aside;
mod logs;
mod survey;
mod tables;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::core::{FileNumbers, Home};
use super::filename::{FileKind, FileNumber};
use super::inventory::Inventory;
use super::janitor::Disposal;
use super::key::Sequence;
use super::log_file::LogFile;
use super::manifest::{Manifest, TableSet};
use super::options::Options;
use super::picker::fitting_level;
use super::recovery::ManifestContent;
use super::store::REGISTRATION;
use super::version::{TableFile, Version};
use crate::fs::{FileSystem, RealFs};
use crate::{Error, Result};
use aside::Aside;
use survey::Survey;
use tables::{Facts, Found};

/// What a repair found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepairReport {
    /// Whether a manifest was whole, so that every table is on the level where it was. Otherwise
    /// what had been deleted may be back, if a table that held it was still there.
    pub manifest_was_whole: bool,
    /// The tables that make up the database now.
    pub table_count: u64,
    /// Records of logs that were taken over into tables.
    pub log_record_count: u64,
    /// The last sequence in use.
    pub last_sequence: u64,
    /// Where the files lie now that were damaged or not needed.
    pub set_aside: Vec<PathBuf>,
    /// What was wrong, and where.
    pub problems: Vec<String>,
}

/// Repairs the database in `directory`: CURRENT, manifests, tables and logs may be missing or
/// damaged. What can be read is saved; what cannot stays, in the subdirectory `lost`. Rewrites the
/// whole database if no manifest is left to tell which tables are newer than others.
///
/// A database that is whole stays as it is, but for its logs, which become tables.
///
/// # Errors
/// - [`Error::NotADatabase`] if there is no file of a database.
/// - [`Error::ForeignDirectory`] and [`Error::ComparatorMismatch`], as in opening.
/// - [`Error::Locked`] if it is open.
/// - I/O errors; nothing is changed or lost then, and the repair may be tried again.
pub fn repair(directory: impl AsRef<Path>) -> Result<RepairReport> {
    REGISTRATION.refuse_foreign(directory.as_ref())?;
    repair_in(Arc::new(RealFs), directory, &Options::default())
}

/// As [`repair`], in another file system, with these settings for the tables that are written.
///
/// # Errors
/// As [`repair`].
pub fn repair_in(
    fs: Arc<dyn FileSystem>,
    directory: impl AsRef<Path>,
    options: &Options,
) -> Result<RepairReport> {
    let directory = directory.as_ref().to_path_buf();
    Inventory::take(&*fs, &directory)?.check_repairable(&directory)?;
    // Nothing is removed through it: what goes is removed here, at the end.
    let (disposal, _orders) = Disposal::new();
    let home = Home { fs, directory, options: options.sanitized(), disposal, pace: None };
    let _lock = home.lock()?;
    let inventory = Inventory::take(&*home.fs, &home.directory)?;
    inventory.check_repairable(&home.directory)?;
    let next = inventory.largest_number().next().ok_or_else(|| Error::Corruption {
        file: home.directory.clone(),
        offset: 0,
        problem: "a file has the largest number there is".to_owned(),
    })?;
    let numbers = FileNumbers::new(next);
    Repair { home: &home, inventory: &inventory, numbers, report: RepairReport::default() }.run()
}

struct Repair<'a> {
    home: &'a Home,
    inventory: &'a Inventory,
    numbers: FileNumbers,
    report: RepairReport,
}

/// The tables of the database to be: level and table.
type Levels = Vec<(usize, Found)>;

impl Repair<'_> {
    fn run(mut self) -> Result<RepairReport> {
        let mut aside = Aside::default();
        let tables = self.read_tables()?;
        let survey = Survey::take(self.home, self.inventory, &tables)?;
        self.report.problems.extend(survey.problems.iter().cloned());
        survey.damaged.iter().for_each(|kind| aside.add(*kind));
        let before = (aside.clone(), self.report.clone());
        let levels = match &survey.trusted {
            Some(manifest) => self.by_manifest(manifest, &tables, &mut aside)?,
            None => None,
        };
        self.report.manifest_was_whole = levels.is_some();
        let levels = match levels {
            Some(levels) => levels,
            None => {
                (aside, self.report) = before;
                self.by_content(tables, &mut aside)?
            }
        };
        let last_sequence = levels.iter().map(|(_, table)| table.facts.last_sequence).max();
        let told = survey.trusted.as_ref().map(|manifest| manifest.last_sequence);
        let last_sequence = last_sequence.max(told).unwrap_or_default();
        self.report.set_aside = aside.keep(self.home)?;
        self.commit(&levels, last_sequence)?;
        Ok(self.report)
    }

    /// What a manifest tells; `None` if the tables and logs do not fit it.
    fn by_manifest(
        &mut self,
        manifest: &ManifestContent,
        tables: &[Found],
        aside: &mut Aside,
    ) -> Result<Option<Levels>> {
        let logs = self.inventory.logs();
        let (live, old): (Vec<_>, Vec<_>) =
            logs.into_iter().partition(|log| manifest.needs_log(*log));
        old.into_iter().for_each(|log| aside.add(FileKind::Log(log)));
        let logged = self.convert_logs(&live, aside)?;
        let is_over = |upper: &Found, lower: &Found| {
            !upper.facts.overlaps(&lower.facts) || upper.facts.is_newer_than(&lower.facts)
        };
        let (mut level0, mut levels) = (Vec::new(), Levels::new());
        for table in tables {
            let Some(level) = manifest.level_of(table.number()) else {
                aside.add(table.kind);
                continue;
            };
            if !logged.iter().all(|log| is_over(log, table)) {
                return Ok(None);
            }
            let part = self.readable_part(table, aside)?;
            match level {
                0 => level0.extend(part),
                _ => levels.extend(part.map(|part| (level, part))),
            }
        }
        level0.extend(logged);
        levels.extend(self.arrange(level0, 0)?);
        Ok(self.version(&levels).is_ok().then_some(levels))
    }

    /// Everything that can be read, whichever file it is in.
    fn by_content(&mut self, tables: Vec<Found>, aside: &mut Aside) -> Result<Levels> {
        let logs = self.inventory.logs();
        let mut all = self.convert_logs(&logs, aside)?;
        for table in &tables {
            all.extend(self.readable_part(table, aside)?);
        }
        let total = all.iter().map(|table| table.size).sum();
        self.arrange(all, fitting_level(total, &self.home.options))
    }

    /// Step 6 and 7.
    fn commit(&mut self, levels: &Levels, last_sequence: Sequence) -> Result<()> {
        let home = self.home;
        let version = self
            .version(levels)
            .map_err(|problem| Error::corruption(&home.directory, 0, problem))?;
        // An empty log, as in any database that was just opened: it says where writing goes on.
        let log = LogFile::create(home, self.numbers.take())?;
        let manifest = self.numbers.take();
        let set = TableSet {
            version: &version,
            log_number: log.number,
            next_file_number: self.numbers.next(),
            last_sequence,
        };
        Manifest::create(home, manifest, set)?;
        self.report.table_count = levels.len() as u64;
        self.report.last_sequence = last_sequence.0;
        // What was written on the way and merged since goes too.
        let now = Inventory::take(&*home.fs, &home.directory)?;
        now.superfluous(&version, log.number)
            .into_iter()
            .filter(|kind| *kind != FileKind::Manifest(manifest))
            .try_for_each(|kind| home.fs.remove(&home.path(kind)))
    }

    fn version(&self, levels: &Levels) -> std::result::Result<Version, String> {
        Version::new(levels.iter().map(|(level, table)| {
            (*level, TableFile::new(table.info(), false, self.home.disposal.clone()))
        }))
    }

    fn take_number(&self) -> FileNumber {
        self.numbers.take()
    }

    /// The part of a table that can be read: itself, if it is whole; else a new one, and the old
    /// one is set aside.
    fn readable_part(&mut self, table: &Found, aside: &mut Aside) -> Result<Option<Found>> {
        if table.problems.is_empty() {
            return Ok((table.facts.entry_count > 0).then(|| table.clone()));
        }
        aside.add(table.kind);
        if table.facts.entry_count == 0 {
            return Ok(None);
        }
        self.rewrite(table).map(Some)
    }
}

impl Facts {
    /// Whether both hold keys of a common range.
    fn overlaps(&self, other: &Self) -> bool {
        self.smallest_user_key() <= other.largest_user_key()
            && other.smallest_user_key() <= self.largest_user_key()
    }

    /// Whether every entry here was written after every entry there.
    fn is_newer_than(&self, other: &Self) -> bool {
        self.first_sequence > other.last_sequence
    }
}
