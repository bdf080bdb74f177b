//! Which manifest to believe.
//!
//! The one that CURRENT names; if that cannot be read, the newest one that can. It is believed if
//! it is whole and nothing on disk says that more was done since, as it does when a manifest was cut
//! between two records or an old one was put in place:
//! - Every table that it lists is there, damaged or not. A compaction that it does not know of
//!   would have removed some.
//! - The log that it names is there, unless it names none. A flush that it does not know of would
//!   have removed it.
//! - The other tables hold nothing newer than what it tells of or its logs hold: they are what
//!   unfinished work left, or what finished work has not removed yet.

use super::tables::Found;
use crate::fs::Access;
use crate::lsm::core::Home;
use crate::lsm::filename::{FileKind, FileNumber};
use crate::lsm::inventory::Inventory;
use crate::lsm::key::Sequence;
use crate::lsm::log::{LogReader, OnCorruption};
use crate::lsm::recovery::{ManifestContent, read_current};
use crate::lsm::write_batch::WriteBatch;
use crate::{Error, Result};

/// What the manifests say.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) trusted: Option<ManifestContent>,
    /// CURRENT and the manifests that cannot be read or are not believed.
    pub(super) damaged: Vec<FileKind>,
    pub(super) problems: Vec<String>,
}

impl Survey {
    pub(super) fn take(home: &Home, inventory: &Inventory, tables: &[Found]) -> Result<Self> {
        let mut survey = Self::default();
        let mut candidates: Vec<_> = inventory
            .kinds()
            .filter_map(|kind| match kind {
                FileKind::Manifest(number) => Some(number),
                _ => None,
            })
            .collect();
        candidates.sort_unstable_by(|a, b| b.cmp(a));
        if let Some(current) = survey.current(home, inventory)? {
            candidates.sort_by_key(|number| *number != current);
        }
        for number in candidates {
            survey.consider(home, inventory, tables, number)?;
        }
        Ok(survey)
    }

    /// The manifest that CURRENT names.
    fn current(&mut self, home: &Home, inventory: &Inventory) -> Result<Option<FileNumber>> {
        if !inventory.has_current() {
            self.problems.push("CURRENT is missing".to_owned());
            return Ok(None);
        }
        match read_current(home) {
            Ok(number) if inventory.has(FileKind::Manifest(number)) => Ok(Some(number)),
            Ok(number) => {
                let problem =
                    format!("CURRENT names {}, which is missing", FileKind::Manifest(number));
                self.problems.push(problem);
                Ok(None)
            }
            Err(error) if is_damage(&error) => {
                self.problems.push(error.to_string());
                self.damaged.push(FileKind::Current);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn consider(
        &mut self,
        home: &Home,
        inventory: &Inventory,
        tables: &[Found],
        number: FileNumber,
    ) -> Result<()> {
        let kind = FileKind::Manifest(number);
        let verdict = match ManifestContent::read(home, inventory, kind) {
            Err(error) if is_damage(&error) => Err(error.to_string()),
            // The comparator of any of them is that of all keys.
            Err(error) => return Err(error),
            // It was read for its comparator: one before it is believed.
            Ok(_) if self.trusted.is_some() => return Ok(()),
            Ok(manifest) => {
                let objection = objection(home, inventory, tables, &manifest)?;
                objection.map_or(Ok(manifest), |problem| Err(format!("{kind}: {problem}")))
            }
        };
        match verdict {
            Ok(manifest) => self.trusted = Some(manifest),
            Err(problem) => {
                self.problems.push(problem);
                self.damaged.push(kind);
            }
        }
        Ok(())
    }
}

/// Whether bytes are damaged or cannot be read.
fn is_damage(error: &Error) -> bool {
    error.is_corruption() || matches!(error, Error::Io { action: "read", .. })
}

/// What speaks against a manifest.
fn objection(
    home: &Home,
    inventory: &Inventory,
    tables: &[Found],
    manifest: &ManifestContent,
) -> Result<Option<String>> {
    for table in manifest.tables.iter().flat_map(|level| level.values()) {
        if !tables.iter().any(|found| found.number() == table.number) {
            return Ok(Some(format!("table {}, which it lists, is missing", table.number)));
        }
    }
    let log = FileKind::Log(manifest.log_number);
    if manifest.log_number != FileNumber(0) && !inventory.has(log) {
        return Ok(Some(format!("{log}, which it names, is missing")));
    }
    let mut explained = manifest.last_sequence;
    for log in inventory.logs().into_iter().filter(|log| manifest.needs_log(*log)) {
        explained = explained.max(last_sequence(home, log)?);
    }
    let unexplained = tables.iter().find(|table| {
        manifest.level_of(table.number()).is_none() && table.facts.last_sequence > explained
    });
    Ok(unexplained.map(|table| format!("{} holds newer entries than it tells of", table.kind)))
}

/// The last sequence that can be read in a log.
fn last_sequence(home: &Home, log: FileNumber) -> Result<Sequence> {
    let path = home.path(FileKind::Log(log));
    let file = home.fs.open(&path, Access::Positioned)?;
    let mut reader = LogReader::new(file, &path, OnCorruption::Skip)?;
    let mut last = Sequence::default();
    loop {
        match reader.next() {
            Ok(Some(record)) => {
                let batch = WriteBatch::decode(record.bytes).ok();
                last = last.max(batch.and_then(|batch| batch.last_sequence()).unwrap_or_default());
            }
            Ok(None) | Err(Error::Io { action: "read", .. }) => return Ok(last),
            Err(error) => return Err(error),
        }
    }
}

impl ManifestContent {
    /// The level of a table that it lists.
    pub(super) fn level_of(&self, number: FileNumber) -> Option<usize> {
        self.tables.iter().position(|level| level.contains_key(&number))
    }
}
