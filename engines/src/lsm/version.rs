//! Which tables make up the database at one moment.
//!
//! # Invariants
//! - Level 0 holds tables that may overlap, the newest first: it has the larger number.
//! - In every other level tables are sorted and share no user key.
//! - For one user key everything in a level is newer than everything in the levels below it, or
//!   the same: while a merge is installed section by section, or where that was cut short.
//! - A version never changes. Whoever reads holds one, and with it all its tables: a table that is
//!   in no version any more is removed from disk when its last holder lets go of it.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::edit::{LEVEL_COUNT, TableInfo};
use super::filename::FileNumber;
use super::garbage;
use super::janitor::Disposal;
use super::key::user_key;
use super::key_count::KeySketch;

/// The tables of one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Version {
    levels: [Vec<Arc<TableFile>>; LEVEL_COUNT],
    /// Where the last compaction of each level ended: an internal key, or nothing.
    pointers: [Vec<u8>; LEVEL_COUNT],
    /// See [`garbage::estimate`].
    garbage: Option<f64>,
}

impl Version {
    /// Sorts `tables`, each with its level.
    ///
    /// # Errors
    /// Two tables of a level below 0 that overlap, described.
    pub(crate) fn new(
        tables: impl IntoIterator<Item = (usize, Arc<TableFile>)>,
    ) -> Result<Self, String> {
        let mut version = Self::default();
        for (level, table) in tables {
            version.levels[level].push(table);
        }
        version.sort();
        version.check_disjoint()?;
        version.garbage = garbage::estimate(&version);
        Ok(version)
    }

    /// The tables of a level: level 0 newest first, the others by key.
    pub(crate) fn level(&self, level: usize) -> &[Arc<TableFile>] {
        &self.levels[level]
    }

    /// Where the last compaction of a level ended; empty at first.
    pub(crate) fn pointer(&self, level: usize) -> &[u8] {
        &self.pointers[level]
    }

    pub(crate) fn set_pointer(&mut self, level: usize, internal_key: Vec<u8>) {
        self.pointers[level] = internal_key;
    }

    /// Every table with its level.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (usize, &Arc<TableFile>)> {
        let levels = self.levels.iter().enumerate();
        levels.flat_map(|(level, tables)| tables.iter().map(move |table| (level, table)))
    }

    /// What level 0 holds in vain against all that is not; `None` if that is not known.
    pub(crate) fn garbage(&self) -> Option<f64> {
        self.garbage
    }

    pub(crate) fn level_bytes(&self, level: usize) -> u64 {
        self.levels[level].iter().map(|table| table.info.size).sum()
    }

    /// The lowest level that holds anything.
    pub(crate) fn deepest_level(&self) -> Option<usize> {
        (0..LEVEL_COUNT).rev().find(|&level| !self.levels[level].is_empty())
    }

    /// The one table of a level below 0 that can hold `key`.
    pub(crate) fn find(&self, level: usize, key: &[u8]) -> Option<&Arc<TableFile>> {
        debug_assert!(level > 0);
        let tables = &self.levels[level];
        let at = tables.partition_point(|table| table.largest() < key);
        tables.get(at).filter(|table| table.smallest() <= key)
    }

    /// The tables of a level that hold keys from `range`.
    pub(crate) fn overlapping<'a>(
        &'a self,
        level: usize,
        range: UserRange<'a>,
    ) -> impl Iterator<Item = &'a Arc<TableFile>> {
        let tables = self.levels[level].as_slice();
        let tables = if level == 0 {
            tables
        } else {
            let start = tables.partition_point(|table| table.largest() < range.smallest);
            let count = tables[start..].partition_point(|table| table.smallest() <= range.largest);
            &tables[start..start + count]
        };
        tables.iter().filter(move |table| table.range().overlaps(range))
    }

    /// The levels below `level` alone.
    pub(crate) fn below(&self, level: usize) -> Self {
        let mut below = self.clone();
        below.levels[..=level].iter_mut().for_each(Vec::clear);
        below
    }

    /// Whether a level below `level` may hold `key`.
    pub(crate) fn may_hold_below(&self, level: usize, key: &[u8]) -> bool {
        (level + 1..LEVEL_COUNT).any(|below| self.find(below, key).is_some())
    }

    /// The version after tables were taken out and put in.
    pub(crate) fn with(
        &self,
        removed: &[(usize, FileNumber)],
        added: &[(usize, Arc<TableFile>)],
    ) -> Result<Self, String> {
        let removed: HashSet<_> = removed.iter().copied().collect();
        let mut next = self.clone();
        for (level, tables) in next.levels.iter_mut().enumerate() {
            tables.retain(|table| !removed.contains(&(level, table.info.number)));
        }
        for (level, table) in added {
            next.levels[*level].push(Arc::clone(table));
        }
        next.sort();
        next.check_disjoint()?;
        next.garbage = garbage::estimate(&next);
        Ok(next)
    }

    /// Has the files of all tables that are not in `next` removed when nobody reads them any more.
    /// Only once it is certain that `next` is what the next open finds.
    pub(crate) fn retire(&self, next: &Self) {
        let kept: HashSet<_> = next.tables().map(|(_, table)| table.info.number).collect();
        let gone = self.tables().filter(|(_, table)| !kept.contains(&table.info.number));
        gone.for_each(|(_, table)| table.is_doomed.store(true, Relaxed));
    }

    fn sort(&mut self) {
        let [zero, below @ ..] = &mut self.levels;
        zero.sort_by_key(|table| std::cmp::Reverse(table.info.number));
        for tables in below {
            tables.sort_by(|a, b| a.smallest().cmp(b.smallest()));
        }
    }

    fn check_disjoint(&self) -> Result<(), String> {
        for (level, tables) in self.levels.iter().enumerate().skip(1) {
            for pair in tables.windows(2) {
                if pair[0].largest() >= pair[1].smallest() {
                    return Err(format!(
                        "tables {} and {} of level {level} overlap",
                        pair[0].info.number, pair[1].info.number
                    ));
                }
            }
        }
        Ok(())
    }
}

/// A table that versions share.
#[derive(Debug)]
pub(crate) struct TableFile {
    pub(crate) info: TableInfo,
    /// Known to hold one version of each of its keys and no deletion. False for tables that were
    /// there at open: the manifest does not tell.
    pub(crate) is_clean: bool,
    /// What keys it holds; known of tables that were written since open.
    pub(crate) keys: Option<KeySketch>,
    disposal: Disposal,
    is_doomed: AtomicBool,
}

impl TableFile {
    pub(crate) fn new(info: TableInfo, is_clean: bool, disposal: Disposal) -> Arc<Self> {
        Self::written(info, is_clean, None, disposal)
    }

    /// A table of which is known what went into it.
    pub(crate) fn written(
        info: TableInfo,
        is_clean: bool,
        keys: Option<KeySketch>,
        disposal: Disposal,
    ) -> Arc<Self> {
        Arc::new(Self { info, is_clean, keys, disposal, is_doomed: AtomicBool::new(false) })
    }

    /// The smallest user key.
    pub(crate) fn smallest(&self) -> &[u8] {
        user_key(&self.info.smallest)
    }

    /// The largest user key.
    pub(crate) fn largest(&self) -> &[u8] {
        user_key(&self.info.largest)
    }

    pub(crate) fn range(&self) -> UserRange<'_> {
        UserRange { smallest: self.smallest(), largest: self.largest() }
    }
}

impl Drop for TableFile {
    fn drop(&mut self) {
        if self.is_doomed.load(Relaxed) {
            self.disposal.table(self.info.number);
        }
    }
}

/// User keys from one to another, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UserRange<'a> {
    pub(crate) smallest: &'a [u8],
    pub(crate) largest: &'a [u8],
}

impl<'a> UserRange<'a> {
    pub(crate) fn overlaps(self, other: UserRange<'_>) -> bool {
        self.smallest <= other.largest && other.smallest <= self.largest
    }

    /// The range that spans all of `tables`; `None` if there are none.
    pub(crate) fn spanning(tables: impl IntoIterator<Item = &'a Arc<TableFile>>) -> Option<Self> {
        tables.into_iter().map(|table| table.range()).reduce(|a, b| Self {
            smallest: a.smallest.min(b.smallest),
            largest: match a.largest.cmp(b.largest) {
                Ordering::Less => b.largest,
                _ => a.largest,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lsm::janitor::Disposal;
    use crate::lsm::key::{EntryKind, Sequence, push_internal_key};

    fn table(number: u64, smallest: &str, largest: &str) -> Arc<TableFile> {
        let key = |user: &str| {
            let mut key = Vec::new();
            push_internal_key(&mut key, user.as_bytes(), Sequence(number), EntryKind::Value);
            key
        };
        let info = TableInfo {
            number: FileNumber(number),
            size: 1,
            smallest: key(smallest),
            largest: key(largest),
        };
        TableFile::new(info, false, Disposal::nowhere())
    }

    fn numbers<'a>(tables: impl IntoIterator<Item = &'a Arc<TableFile>>) -> Vec<u64> {
        tables.into_iter().map(|table| table.info.number.0).collect()
    }

    #[test]
    fn level_zero_is_newest_first_and_the_others_by_key() {
        let version = Version::new([
            (0, table(3, "a", "z")),
            (0, table(9, "a", "b")),
            (1, table(4, "m", "p")),
            (1, table(5, "c", "d")),
        ])
        .unwrap();
        assert_eq!(numbers(version.level(0)), [9, 3]);
        assert_eq!(numbers(version.level(1)), [5, 4]);
        assert_eq!(version.deepest_level(), Some(1));
    }

    #[test]
    fn tables_that_share_a_user_key_are_refused_below_level_zero() {
        let error = Version::new([(2, table(1, "a", "c")), (2, table(2, "c", "d"))]).unwrap_err();
        assert!(error.contains("000001 and 000002 of level 2"), "{error}");
    }

    #[test]
    fn lookups_find_the_tables_at_both_bounds() {
        let version = Version::new([
            (1, table(1, "b", "d")),
            (1, table(2, "f", "h")),
            (0, table(3, "c", "g")),
        ])
        .unwrap();
        let find = |key: &str| version.find(1, key.as_bytes()).map(|table| table.info.number.0);
        assert_eq!(["a", "b", "d", "e", "f", "h", "i"].map(find), {
            let (one, two) = (Some(1), Some(2));
            [None, one, one, None, two, two, None]
        });
        let overlapping = |level, smallest: &str, largest: &str| {
            let range = UserRange { smallest: smallest.as_bytes(), largest: largest.as_bytes() };
            numbers(version.overlapping(level, range))
        };
        assert_eq!(overlapping(1, "d", "f"), [1, 2]);
        assert_eq!(overlapping(1, "e", "e"), [] as [u64; 0]);
        assert_eq!(overlapping(1, "a", "z"), [1, 2]);
        assert_eq!(overlapping(0, "g", "z"), [3]);
        assert_eq!(overlapping(0, "h", "z"), [] as [u64; 0]);
        assert!(version.may_hold_below(0, b"h") && !version.may_hold_below(1, b"h"));
    }

    #[test]
    fn a_table_is_disposed_of_when_its_last_version_goes_and_a_moved_one_is_not() {
        let (disposal, disposed) = Disposal::recorded();
        let make = |number, key: &str| {
            let info = table(number, key, key).info.clone();
            TableFile::new(info, false, disposal.clone())
        };
        let first = Version::new([(0, make(1, "a")), (0, make(2, "b"))]).unwrap();
        let moved = Arc::clone(&first.level(0)[1]);
        assert_eq!(moved.info.number.0, 1);
        let second = first.with(&[(0, FileNumber(1)), (0, FileNumber(2))], &[(1, moved)]).unwrap();
        first.retire(&second);
        assert_eq!(disposed(), [] as [FileNumber; 0]);
        drop(first);
        assert_eq!(disposed(), [FileNumber(2)]);
        drop(second);
        assert_eq!(disposed(), [] as [FileNumber; 0]);
    }
}
