//! Looking keys up and walking ranges.
//!
//! A reader takes the view first and the last visible sequence second: so the view holds everything
//! that is visible at that sequence, whatever is flushed, merged and removed meanwhile. It takes no
//! lock.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::core::Core;
use super::cursor::CursorOptions;
use super::edit::LEVEL_COUNT;
use super::iterator::InternalIterator;
use super::key::{EntryKind, ParsedKey, SEEK_KIND, Sequence, push_internal_key};
use super::level_iter::LevelIter;
use super::merge_iter::MergeIter;
use super::picker::{PROBE_COST_BYTES, SEEK_COST_BYTES};
use super::reader::Reader;
use super::table::ReadOptions;
use super::table_filter::KeyHash;
use super::version::TableFile;
use super::view::View;
use crate::engine::Visitor;
use crate::{Direction, KeyRange, Result};

/// So often, in bytes of read debt, the compacting threads look whether a merge is due.
const DEBT_STEP_BYTES: u64 = 256 << 10;

impl Core {
    /// Lends the value of `key` at the present.
    pub(crate) fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let view = self.view.load();
        self.get_in(&view, self.visible(), key, read)
    }

    /// Lends the value of `key` at `sequence`.
    pub(crate) fn get_in(
        &self,
        view: &View,
        sequence: Sequence,
        key: &[u8],
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<bool> {
        let memtables =
            std::iter::once(&view.active).chain(view.frozen.iter().map(|frozen| &frozen.memtable));
        for memtable in memtables {
            if !memtable.is_empty()
                && let Some(kind) = memtable.get(key, sequence, read)
            {
                return Ok(kind == EntryKind::Value);
            }
        }
        let mut lookup = Lookup::new(self, key, sequence, read);
        let found = lookup.in_level0(view)?;
        let found = match found {
            Some(kind) => Some(kind),
            None => lookup.below(view)?,
        };
        Ok(found == Some(EntryKind::Value))
    }

    /// Visits the live records of `range` at `sequence`, or at the present.
    pub(crate) fn scan(
        &self,
        range: KeyRange<'_>,
        direction: Direction,
        sequence: Option<Sequence>,
        visit: &mut Visitor<'_>,
    ) -> Result<()> {
        let reader = Reader::new(self, sequence);
        // A walk over everything leaves the cache to what is read often.
        let fill_cache = range != KeyRange::all();
        let mut cursor =
            reader.cursor(CursorOptions { fill_cache, ..CursorOptions::range(range) })?;
        match direction {
            Direction::Forward => cursor.seek_to_first()?,
            Direction::Backward => cursor.seek_to_last()?,
        };
        while let Some((key, value)) = cursor.record() {
            if visit(key, value).is_break() {
                break;
            }
            match direction {
                Direction::Forward => cursor.next()?,
                Direction::Backward => cursor.prev()?,
            };
        }
        Ok(())
    }

    /// Everything in a view, in order.
    pub(crate) fn merged<'a>(
        &'a self,
        view: &'a View,
        options: ReadOptions,
    ) -> Result<MergeIter<'a>> {
        let mut sources: Vec<Box<dyn InternalIterator + 'a>> = vec![Box::new(view.active.iter())];
        for frozen in &view.frozen {
            sources.push(Box::new(frozen.memtable.iter()));
        }
        let level0 = view.version.level(0);
        for table in level0 {
            let table = self.tables.get(table.info.number, table.info.size)?;
            sources.push(Box::new(table.iter(options)));
        }
        for level in 1..LEVEL_COUNT {
            let tables = view.version.level(level);
            if !tables.is_empty() {
                sources.push(Box::new(LevelIter::new(tables.to_vec(), &self.tables, options)));
            }
        }
        self.charge(level0.len(), SEEK_COST_BYTES);
        Ok(MergeIter::new(sources))
    }

    /// Charges a read for the level-0 tables that it looked through, beyond the first.
    pub(crate) fn charge(&self, table_count: usize, cost_bytes: u64) {
        let Some(extra) = table_count.checked_sub(1).filter(|extra| *extra > 0) else { return };
        let cost = extra as u64 * cost_bytes;
        let before = self.counters.read_debt_bytes.fetch_add(cost, Relaxed);
        if before / DEBT_STEP_BYTES != (before + cost) / DEBT_STEP_BYTES {
            self.background.changed();
        }
    }
}

/// A key on its way down the levels.
struct Lookup<'a, 'b> {
    core: &'a Core,
    user_key: &'a [u8],
    internal_key: Vec<u8>,
    hash: KeyHash,
    read: &'a mut (dyn FnMut(&[u8]) + 'b),
}

impl<'a, 'b> Lookup<'a, 'b> {
    fn new(
        core: &'a Core,
        user_key: &'a [u8],
        sequence: Sequence,
        read: &'a mut (dyn FnMut(&[u8]) + 'b),
    ) -> Self {
        let mut internal_key = Vec::with_capacity(user_key.len() + super::key::TAG_BYTES);
        push_internal_key(&mut internal_key, user_key, sequence, SEEK_KIND);
        Self { core, user_key, internal_key, hash: KeyHash::new(user_key), read }
    }

    fn in_level0(&mut self, view: &View) -> Result<Option<EntryKind>> {
        let mut probe_count = 0;
        let mut found = None;
        for table in view.version.level(0) {
            if table.smallest() <= self.user_key && self.user_key <= table.largest() {
                probe_count += 1;
                found = self.in_table(table)?;
                if found.is_some() {
                    break;
                }
            }
        }
        self.core.charge(probe_count, PROBE_COST_BYTES);
        Ok(found)
    }

    fn below(&mut self, view: &View) -> Result<Option<EntryKind>> {
        for level in 1..LEVEL_COUNT {
            if let Some(table) = view.version.find(level, self.user_key)
                && let Some(kind) = self.in_table(table)?
            {
                return Ok(Some(kind));
            }
        }
        Ok(None)
    }

    fn in_table(&mut self, table: &Arc<TableFile>) -> Result<Option<EntryKind>> {
        let table = self.core.tables.get(table.info.number, table.info.size)?;
        let mut found = None;
        let mut bad_key = None;
        let read = &mut *self.read;
        table.get(
            &self.internal_key,
            self.hash,
            &mut |key, value| match ParsedKey::parse(key) {
                Some(entry) => {
                    if entry.kind == EntryKind::Value {
                        read(value);
                    }
                    found = Some(entry.kind);
                }
                None => bad_key = Some(key.to_vec()),
            },
        )?;
        match bad_key {
            None => Ok(found),
            Some(key) => Err(crate::Error::corruption(
                table.path(),
                0,
                format!("\"{}\" is not an internal key", key.escape_ascii()),
            )),
        }
    }
}
