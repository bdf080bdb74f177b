//! Reading tables to their ends.

use std::path::PathBuf;

use super::Repair;
use crate::Result;
use crate::fs::Access;
use crate::lsm::core::Home;
use crate::lsm::edit::TableInfo;
use crate::lsm::filename::{FileKind, FileNumber};
use crate::lsm::key::{ParsedKey, Sequence, user_key};
use crate::lsm::output::OutputTable;
use crate::lsm::table::{VisitEntry, salvage};

/// A table that is there.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) kind: FileKind,
    /// The file's size in bytes.
    pub(super) size: u64,
    /// Of the entries that can be read.
    pub(super) facts: Facts,
    /// What is wrong with it: nothing, if all can be read.
    pub(super) problems: Vec<String>,
}

/// What entries in order tell.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    pub(super) entry_count: u64,
    /// The first internal key and the last.
    pub(super) smallest: Vec<u8>,
    pub(super) largest: Vec<u8>,
    pub(super) first_sequence: Sequence,
    pub(super) last_sequence: Sequence,
}

impl Facts {
    fn add(&mut self, key: &[u8]) {
        let sequence = ParsedKey::parse(key).map(|entry| entry.sequence).unwrap_or_default();
        if self.entry_count == 0 {
            self.smallest = key.to_vec();
            self.first_sequence = sequence;
        }
        self.entry_count += 1;
        self.first_sequence = self.first_sequence.min(sequence);
        self.last_sequence = self.last_sequence.max(sequence);
        self.largest.clear();
        self.largest.extend_from_slice(key);
    }

    pub(super) fn smallest_user_key(&self) -> &[u8] {
        user_key(&self.smallest)
    }

    pub(super) fn largest_user_key(&self) -> &[u8] {
        user_key(&self.largest)
    }
}

impl Found {
    /// Reads a table from its first to its last entry.
    pub(super) fn read(home: &Home, kind: FileKind) -> Result<Self> {
        let mut facts = Facts::default();
        let (size, problems) = read(home, kind, &mut |key, _| {
            facts.add(key);
            Ok(())
        })?;
        Ok(Self { kind, size, facts, problems })
    }

    pub(super) fn number(&self) -> FileNumber {
        self.kind.number().unwrap_or_default()
    }

    pub(super) fn path(&self, home: &Home) -> PathBuf {
        home.path(self.kind)
    }

    /// What a manifest tells of it.
    pub(super) fn info(&self) -> TableInfo {
        TableInfo {
            number: self.number(),
            size: self.size,
            smallest: self.facts.smallest.clone(),
            largest: self.facts.largest.clone(),
        }
    }
}

/// Lends what can be read of a table; tells its size and what is wrong with it.
fn read<'a>(
    home: &Home,
    kind: FileKind,
    visit: &'a mut VisitEntry<'a>,
) -> Result<(u64, Vec<String>)> {
    let path = home.path(kind);
    let file = home.fs.open(&path, Access::Mapped)?;
    let size = file.length()?;
    Ok((size, salvage(file, &path, visit)?))
}

impl Repair<'_> {
    /// Every table that is there.
    pub(super) fn read_tables(&mut self) -> Result<Vec<Found>> {
        let mut kinds: Vec<_> = self
            .inventory
            .kinds()
            .filter(|kind| matches!(kind, FileKind::Table(_) | FileKind::OldTable(_)))
            .collect();
        kinds.sort_by_key(|kind| kind.number());
        let mut tables = Vec::new();
        for kind in kinds {
            let table = Found::read(self.home, kind)?;
            self.report.problems.extend(table.problems.iter().cloned());
            tables.push(table);
        }
        Ok(tables)
    }

    /// Writes what can be read of a table to a new one.
    pub(super) fn rewrite(&mut self, table: &Found) -> Result<Found> {
        let number = self.take_number();
        let mut output = OutputTable::create(self.home, number)?;
        read(self.home, table.kind, &mut |key, value| match ParsedKey::parse(key) {
            Some(entry) => output.add(&entry, key, value),
            // `salvage` lends internal keys only.
            None => Ok(()),
        })?;
        output.finish()?;
        Found::read(self.home, FileKind::Table(number))
    }
}
