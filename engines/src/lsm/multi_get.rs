//! Looking many keys up together.
//!
//! The keys are sorted, and each table is asked once for all keys that it may hold, so that it can
//! read each of its blocks once. What a newer table holds, or says is deleted, no older one is
//! asked for.

use std::sync::Arc;

use super::core::Core;
use super::edit::LEVEL_COUNT;
use super::key::{EntryKind, ParsedKey, SEEK_KIND, Sequence, push_internal_key};
use super::picker::PROBE_COST_BYTES;
use super::table::Wanted;
use super::table_filter::KeyHash;
use super::version::{TableFile, Version};
use super::view::View;
use crate::{Error, Result};

impl Core {
    /// Lends the values of `keys` at `sequence`, each with the place of its key; returns how many
    /// there are.
    pub(crate) fn multi_get_in(
        &self,
        view: &View,
        sequence: Sequence,
        keys: &[&[u8]],
        read: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<usize> {
        let mut lookup = MultiLookup { core: self, pending: Vec::new(), found: 0, read };
        lookup.in_memtables(view, sequence, keys);
        lookup.pending.sort_by(|one, other| one.user_key().cmp(other.user_key()));
        lookup.in_level0(view)?;
        for level in 1..LEVEL_COUNT {
            lookup.in_level(&view.version, level)?;
        }
        Ok(lookup.found)
    }
}

struct MultiLookup<'a, 'b> {
    core: &'a Core,
    /// What was found nowhere yet, in the order of the keys.
    pending: Vec<Wanted>,
    found: usize,
    read: &'a mut (dyn FnMut(usize, &[u8]) + 'b),
}

impl MultiLookup<'_, '_> {
    fn in_memtables(&mut self, view: &View, sequence: Sequence, keys: &[&[u8]]) {
        let frozen = view.frozen.iter().map(|frozen| &frozen.memtable);
        let memtables = std::iter::once(&view.active).chain(frozen);
        let memtables: Vec<_> = memtables.filter(|memtable| !memtable.is_empty()).collect();
        for (place, key) in keys.iter().enumerate() {
            let mut lend = |value: &[u8]| (self.read)(place, value);
            let found =
                memtables.iter().find_map(|memtable| memtable.get(key, sequence, &mut lend));
            match found {
                Some(EntryKind::Value) => self.found += 1,
                Some(EntryKind::Deletion) => {}
                None => {
                    let mut internal_key = Vec::with_capacity(key.len() + super::key::TAG_BYTES);
                    push_internal_key(&mut internal_key, key, sequence, SEEK_KIND);
                    let hash = KeyHash::new(key);
                    self.pending.push(Wanted { internal_key, hash, place, is_done: false });
                }
            }
        }
    }

    fn in_level0(&mut self, view: &View) -> Result<()> {
        let level0 = view.version.level(0);
        if self.pending.is_empty() {
            return Ok(());
        }
        for table in level0 {
            self.in_table(table)?;
        }
        self.core.charge(level0.len(), PROBE_COST_BYTES * self.pending.len().max(1) as u64);
        Ok(())
    }

    /// In a level whose tables are sorted and disjoint.
    fn in_level(&mut self, version: &Version, level: usize) -> Result<()> {
        let mut tables: Vec<&Arc<TableFile>> = Vec::new();
        for wanted in &self.pending {
            let key = wanted.user_key();
            // Most follow one another in the same table.
            if tables.last().is_none_or(|table| table.largest() < key) {
                tables.extend(version.find(level, key));
            }
        }
        tables.into_iter().try_for_each(|table| self.in_table(table))
    }

    /// Looks for all keys that may be in a table, and forgets those that were found.
    fn in_table(&mut self, table: &Arc<TableFile>) -> Result<()> {
        let start = self.pending.partition_point(|wanted| wanted.user_key() < table.smallest());
        let count =
            self.pending[start..].partition_point(|wanted| wanted.user_key() <= table.largest());
        if count == 0 {
            return Ok(());
        }
        let wanted = &mut self.pending[start..start + count];
        let open = self.core.tables.get(table.info.number, table.info.size)?;
        let (mut bad_key, read, found) = (None, &mut *self.read, &mut self.found);
        open.get_many(wanted, &mut |place, key, value| match ParsedKey::parse(key) {
            Some(entry) if entry.kind == EntryKind::Value => {
                read(place, value);
                *found += 1;
            }
            Some(_) => {}
            None => bad_key = Some(key.to_vec()),
        })?;
        if let Some(key) = bad_key {
            let problem = format!("\"{}\" is not an internal key", key.escape_ascii());
            return Err(Error::corruption(open.path(), 0, problem));
        }
        self.pending.retain(|wanted| !wanted.is_done);
        Ok(())
    }
}
