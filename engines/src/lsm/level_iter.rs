//! The tables of one level below 0 as one: sorted and disjoint, so one after the other.

use std::sync::Arc;

use super::iterator::InternalIterator;
use super::key::compare;
use super::table::{ReadOptions, TableIter};
use super::table_cache::TableCache;
use super::version::TableFile;
use crate::Result;

/// Walks sorted, disjoint tables; opens each when it gets there.
pub(crate) struct LevelIter<'a> {
    tables: Vec<Arc<TableFile>>,
    cache: &'a TableCache,
    options: ReadOptions,
    /// The table it is in and the place in it.
    current: Option<(usize, TableIter)>,
}

impl<'a> LevelIter<'a> {
    pub(crate) fn new(
        tables: Vec<Arc<TableFile>>,
        cache: &'a TableCache,
        options: ReadOptions,
    ) -> Self {
        Self { tables, cache, options, current: None }
    }

    /// Goes to a table, if there is one at `at`.
    fn enter(&mut self, at: Option<usize>) -> Result<Option<&mut TableIter>> {
        let Some((at, table)) = at.and_then(|at| Some((at, self.tables.get(at)?))) else {
            self.current = None;
            return Ok(None);
        };
        if self.current.as_ref().is_none_or(|(current, _)| *current != at) {
            self.current = None;
            let table = self.cache.get(table.info.number, table.info.size)?;
            self.current = Some((at, table.iter(self.options)));
        }
        Ok(self.current.as_mut().map(|(_, iter)| iter))
    }

    fn skip_forward(&mut self) -> Result<()> {
        while let Some((at, iter)) = &self.current
            && !iter.valid()
        {
            let next = *at + 1;
            if let Some(iter) = self.enter(Some(next))? {
                iter.seek_to_first()?;
            }
        }
        Ok(())
    }

    fn skip_backward(&mut self) -> Result<()> {
        while let Some((at, iter)) = &self.current
            && !iter.valid()
        {
            let previous = at.checked_sub(1);
            if let Some(iter) = self.enter(previous)? {
                iter.seek_to_last()?;
            }
        }
        Ok(())
    }
}

impl InternalIterator for LevelIter<'_> {
    fn valid(&self) -> bool {
        self.current.as_ref().is_some_and(|(_, iter)| iter.valid())
    }

    fn seek_to_first(&mut self) -> Result<()> {
        if let Some(iter) = self.enter(Some(0))? {
            iter.seek_to_first()?;
        }
        self.skip_forward()
    }

    fn seek_to_last(&mut self) -> Result<()> {
        if let Some(iter) = self.enter(self.tables.len().checked_sub(1))? {
            iter.seek_to_last()?;
        }
        self.skip_backward()
    }

    fn seek(&mut self, internal_key: &[u8]) -> Result<()> {
        let at =
            self.tables.partition_point(|table| compare(&table.info.largest, internal_key).is_lt());
        if let Some(iter) = self.enter(Some(at))? {
            iter.seek(internal_key)?;
        }
        self.skip_forward()
    }

    fn next(&mut self) -> Result<()> {
        if let Some((_, iter)) = &mut self.current {
            iter.next()?;
        }
        self.skip_forward()
    }

    fn prev(&mut self) -> Result<()> {
        if let Some((_, iter)) = &mut self.current {
            iter.prev()?;
        }
        self.skip_backward()
    }

    fn key(&self) -> &[u8] {
        self.current.as_ref().map_or(&[], |(_, iter)| iter.key())
    }

    fn value(&self) -> &[u8] {
        self.current.as_ref().map_or(&[], |(_, iter)| iter.value())
    }
}
