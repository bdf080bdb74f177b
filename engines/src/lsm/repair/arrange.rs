//! Which of two tables is newer.
//!
//! Level 0 is read newest first, by number, and the first entry of a key that is found counts. So
//! two tables that share keys may stay as they are only if the one with the larger number was
//! written after the other as a whole. After a compaction that need not be so: of two tables each
//! may hold the newer entry of some key. Tables like that, and all that overlap them, are merged
//! entry by entry; every entry knows its sequence.
//!
//! Deletions stay: something older may lie below, or in a file that is found later.

use super::tables::Found;
use super::{Levels, Repair};
use crate::Result;
use crate::fs::Access;
use crate::lsm::filename::FileKind;
use crate::lsm::iterator::InternalIterator;
use crate::lsm::key::ParsedKey;
use crate::lsm::merge_iter::MergeIter;
use crate::lsm::output::OutputTable;
use crate::lsm::retention::Retention;
use crate::lsm::table::{ReadOptions, Table};

/// Tables that overlap one another, at least by way of others.
#[derive(Debug, PartialEq, Eq)]
enum Group<T> {
    /// To level 0 as they are: newer ones have larger numbers.
    Ordered(Vec<T>),
    /// Their order is not known. Overlaps nothing else, so it may go to any level.
    Unordered(Vec<T>),
}

impl Repair<'_> {
    /// Finds each table its level: those whose order is known stay as they are in level 0, the
    /// others are merged. Whatever overlaps nothing goes to level `level_of_disjoint`.
    pub(super) fn arrange(
        &mut self,
        tables: Vec<Found>,
        level_of_disjoint: usize,
    ) -> Result<Levels> {
        let mut levels = Levels::new();
        for group in groups(tables) {
            match group {
                Group::Ordered(tables) if tables.len() == 1 => {
                    levels.extend(tables.into_iter().map(|table| (level_of_disjoint, table)));
                }
                Group::Ordered(tables) => {
                    levels.extend(tables.into_iter().map(|table| (0, table)));
                }
                Group::Unordered(tables) => {
                    let merged = self.merge(&tables)?;
                    levels.extend(merged.into_iter().map(|table| (level_of_disjoint, table)));
                }
            }
        }
        Ok(levels)
    }

    /// Merges tables into new ones that share no user key.
    fn merge(&mut self, tables: &[Found]) -> Result<Vec<Found>> {
        let mut sources: Vec<Box<dyn InternalIterator>> = Vec::new();
        for table in tables {
            let path = table.path(self.home);
            let file = self.home.fs.open(&path, Access::Mapped)?;
            let opened = Table::open(file, &path, table.size, table.number(), None, true)?;
            let options = ReadOptions { fill_cache: false, ..ReadOptions::default() };
            sources.push(Box::new(std::sync::Arc::new(opened).iter(options)));
        }
        let mut input = MergeIter::new(sources);
        input.seek_to_first()?;
        let mut retention = Retention::new(&[]);
        let mut output: Option<OutputTable<'_>> = None;
        let mut written = Vec::new();
        while input.valid() {
            let key = input.key();
            if let Some(entry) = ParsedKey::parse(key)
                && retention.keeps(&entry, || true)
            {
                let is_full = |output: &mut OutputTable<'_>| {
                    output.size() >= self.home.options.table_bytes
                        && !output.ends_with(entry.user_key)
                };
                if let Some(full) = output.take_if(is_full) {
                    written.push(full.finish()?.info.number);
                }
                let output = match &mut output {
                    Some(output) => output,
                    None => output.insert(OutputTable::create(self.home, self.take_number())?),
                };
                output.add(&entry, key, input.value())?;
            }
            input.next()?;
        }
        if let Some(last) = output {
            written.push(last.finish()?.info.number);
        }
        written.into_iter().map(|number| Found::read(self.home, FileKind::Table(number))).collect()
    }
}

/// Groups tables that overlap.
fn groups(mut tables: Vec<Found>) -> Vec<Group<Found>> {
    tables.sort_by(|a, b| a.facts.smallest_user_key().cmp(b.facts.smallest_user_key()));
    let mut groups: Vec<Vec<Found>> = Vec::new();
    for table in tables {
        match groups.last_mut() {
            Some(group) if group.iter().any(|member| member.facts.overlaps(&table.facts)) => {
                group.push(table);
            }
            _ => groups.push(vec![table]),
        }
    }
    groups.into_iter().map(order).collect()
}

fn order(mut group: Vec<Found>) -> Group<Found> {
    group.sort_by_key(Found::number);
    let is_ordered = group.iter().enumerate().all(|(at, older)| {
        group.iter().skip(at + 1).all(|newer| {
            !newer.facts.overlaps(&older.facts) || newer.facts.is_newer_than(&older.facts)
        })
    });
    if is_ordered { Group::Ordered(group) } else { Group::Unordered(group) }
}
