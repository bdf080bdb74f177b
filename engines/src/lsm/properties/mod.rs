//! What the engine tells of itself: figures level by level, LevelDB's properties under LevelDB's
//! names, and about how much space keys take.

use std::fmt::Write;
use std::ops::Bound;
use std::sync::atomic::Ordering::Relaxed;

use super::core::Core;
use super::edit::LEVEL_COUNT;
use super::key::{ParsedKey, SEEK_KIND, Sequence, compare, push_internal_key};
use super::store::Lsm;
use super::version::{TableFile, Version};
use crate::{KeyRange, Result};

const MIB: f64 = 1_048_576.0;

/// A level at one moment, and what was done for it since open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelStats {
    /// Its number; 0 holds what was flushed.
    pub level: usize,
    /// Tables in it.
    pub table_count: u64,
    /// Their bytes on disk.
    pub bytes: u64,
    /// Flushes and merges whose outcome went there.
    pub job_count: u64,
    /// Bytes of tables that these merges read.
    pub read_bytes: u64,
    /// Bytes of tables that they wrote.
    pub written_bytes: u64,
    /// Bytes of tables that came from the level above as they were.
    pub moved_bytes: u64,
    /// How long they took, in microseconds; those that ran at the same time each count.
    pub busy_us: u64,
}

impl LevelStats {
    /// For the details of [`Stats`](crate::Stats).
    pub(super) fn figures(&self) -> [(&'static str, u64); 6] {
        [
            ("tables", self.table_count),
            ("bytes", self.bytes),
            ("read_bytes", self.read_bytes),
            ("written_bytes", self.written_bytes),
            ("moved_bytes", self.moved_bytes),
            ("busy_us", self.busy_us),
        ]
    }
}

impl Lsm {
    /// Figures of every level, from 0 on.
    #[must_use]
    pub fn level_stats(&self) -> Vec<LevelStats> {
        self.core.level_stats()
    }

    /// How many bytes were written to the log and to tables for each byte of a record that was
    /// written, since open; `None` before the first.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        self.core.counters.write_amplification()
    }

    /// A property under LevelDB's name, in LevelDB's form; `None` if there is none of that name:
    /// - `leveldb.num-files-at-level<N>`: the number of tables in a level.
    /// - `leveldb.stats`: a table for people of what is in each level, and of the work since open.
    /// - `leveldb.sstables`: every table, with its size in bytes and its first and last entry.
    /// - `leveldb.approximate-memory-usage`: the bytes in memtables and caches.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<String> {
        let name = name.strip_prefix("leveldb.")?;
        let version = || std::sync::Arc::clone(&self.core.view.load().version);
        match name {
            "stats" => Some(self.core.stats_table()),
            "sstables" => Some(tables(&version())),
            "approximate-memory-usage" => Some(self.core.memory_bytes().to_string()),
            name => {
                let level = name.strip_prefix("num-files-at-level")?;
                let is_number = level.bytes().all(|byte| byte.is_ascii_digit());
                let level: usize = level.parse().ok().filter(|_| is_number)?;
                (level < LEVEL_COUNT).then(|| version().level(level).len().to_string())
            }
        }
    }

    /// About how many bytes on disk the records of each range take. What is in memtables does not
    /// count, and a range that begins and ends within a block takes nothing.
    ///
    /// # Errors
    /// Those of opening a table.
    pub fn approximate_sizes(&self, ranges: &[KeyRange<'_>]) -> Result<Vec<u64>> {
        let version = std::sync::Arc::clone(&self.core.view.load().version);
        ranges.iter().map(|range| self.core.approximate_size(&version, *range)).collect()
    }
}

impl Core {
    pub(super) fn level_stats(&self) -> Vec<LevelStats> {
        let view = self.view.load();
        let of_level = |level: usize| {
            let done = &self.counters.levels[level];
            LevelStats {
                level,
                table_count: view.version.level(level).len() as u64,
                bytes: view.version.level_bytes(level),
                job_count: done.work.count.load(Relaxed),
                read_bytes: done.work.read_bytes.load(Relaxed),
                written_bytes: done.work.written_bytes.load(Relaxed),
                moved_bytes: done.moved_bytes.load(Relaxed),
                busy_us: done.work.busy_us.load(Relaxed),
            }
        };
        (0..LEVEL_COUNT).map(of_level).collect()
    }

    /// What memtables, caches and open tables take.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.memtable_bytes() + self.blocks.used_bytes() + self.tables.memory_bytes()
    }

    pub(super) fn memtable_bytes(&self) -> u64 {
        let view = self.view.load();
        let frozen = view.frozen.iter().map(|frozen| &frozen.memtable);
        let memtables = std::iter::once(&view.active).chain(frozen);
        memtables.map(|memtable| memtable.bytes() as u64).sum()
    }

    #[expect(clippy::cast_precision_loss, reason = "shown with no more than a few digits")]
    fn stats_table(&self) -> String {
        let mut text = format!(
            "{:31}Compactions\n\
             Level  Files Size(MB) Time(sec) Read(MB) Write(MB)\n\
             {}\n",
            "",
            "-".repeat(50)
        );
        for level in self.level_stats() {
            if level.table_count == 0 && level.busy_us == 0 {
                continue;
            }
            let _ = writeln!(
                text,
                "{:3} {:8} {:8.0} {:9.0} {:8.0} {:9.0}",
                level.level,
                level.table_count,
                level.bytes as f64 / MIB,
                level.busy_us as f64 / 1e6,
                level.read_bytes as f64 / MIB,
                level.written_bytes as f64 / MIB,
            );
        }
        text
    }

    fn approximate_size(&self, version: &Version, range: KeyRange<'_>) -> Result<u64> {
        let start = match range.start {
            Bound::Unbounded => 0,
            Bound::Included(key) => self.bytes_before(version, &before(key))?,
            Bound::Excluded(key) => self.bytes_before(version, &behind(key))?,
        };
        let end = match range.end {
            Bound::Unbounded => version.tables().map(|(_, table)| table.info.size).sum(),
            Bound::Included(key) => self.bytes_before(version, &behind(key))?,
            Bound::Excluded(key) => self.bytes_before(version, &before(key))?,
        };
        Ok(end.saturating_sub(start))
    }

    /// About how many bytes of tables lie before `internal_key`.
    fn bytes_before(&self, version: &Version, internal_key: &[u8]) -> Result<u64> {
        let in_table = |table: &TableFile| {
            if compare(&table.info.largest, internal_key).is_le() {
                return Ok(table.info.size);
            }
            if compare(&table.info.smallest, internal_key).is_gt() {
                return Ok(0);
            }
            let table = self.tables.get(table.info.number, table.info.size)?;
            Ok(table.approximate_offset_of(internal_key))
        };
        version.tables().map(|(_, table)| in_table(table)).sum()
    }
}

/// The internal key before all entries of `user_key`.
fn before(user_key: &[u8]) -> Vec<u8> {
    let mut key = Vec::new();
    push_internal_key(&mut key, user_key, Sequence::MAX, SEEK_KIND);
    key
}

/// The internal key before all entries of the key that comes next.
fn behind(user_key: &[u8]) -> Vec<u8> {
    before(&[user_key, &[0]].concat())
}

/// Every table, by level and key, as LevelDB prints them.
fn tables(version: &Version) -> String {
    let mut text = String::new();
    for level in 0..LEVEL_COUNT {
        let _ = writeln!(text, "--- level {level} ---");
        let mut tables: Vec<_> = version.level(level).iter().collect();
        tables.sort_by(|a, b| {
            compare(&a.info.smallest, &b.info.smallest).then(a.info.number.cmp(&b.info.number))
        });
        for table in tables {
            let info = &table.info;
            let _ = writeln!(
                text,
                " {}:{}[{} .. {}]",
                info.number.0,
                info.size,
                shown(&info.smallest),
                shown(&info.largest)
            );
        }
    }
    text
}

/// An internal key as LevelDB prints it.
fn shown(internal_key: &[u8]) -> String {
    let Some(entry) = ParsedKey::parse(internal_key) else { return String::new() };
    let mut text = String::from("'");
    for byte in entry.user_key {
        let _ = match byte {
            b' '..=b'~' => write!(text, "{}", char::from(*byte)),
            _ => write!(text, "\\x{byte:02x}"),
        };
    }
    let _ = write!(text, "' @ {} : {}", entry.sequence.0, entry.kind as u8);
    text
}

#[cfg(test)]
#[cfg(feature = "system")]
mod against_leveldb;
#[cfg(test)]
mod tests;
