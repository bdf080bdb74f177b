//! LevelDB and RocksDB as the system has them: its shared libraries, loaded at run time through
//! the C interface whose shape they share. Nothing is compiled, and another build can be compared
//! by naming it in `ENGINELAB_LEVELDB` or `ENGINELAB_ROCKSDB`.
//!
//! # Durability
//! RocksDB's levels: see `super::rocksdb`. LevelDB's: each write goes to the log by a write call
//! before it is acknowledged, which is level `process`, and `buffered` too, for there is nothing
//! cheaper; with the write option `sync`, level `power`, also by fdatasync, one for several writers
//! at once.
//!
//! # Settings
//! The memory budget is split as for every engine with write buffers; 10 Bloom bits a key;
//! RocksDB's `increase_parallelism` with the number of cores, which its documentation asks for; all
//! else as by default.

mod api;
mod ffi;
mod library;
#[cfg(test)]
pub(crate) mod original;

use std::ffi::CStr;
use std::num::NonZero;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::adapter::{MemorySplit, clamp_usize, fail, locked, prepare, sync_file};
use super::{footprint, rocksdb};
use crate::engine::Visitor;
use crate::fs::{FileSystem, RealFs};
use crate::{
    Batch, Capabilities, Compression, Description, Direction, Durability, Engine, Error, KeyRange,
    OpenOptions, Result, Stats,
};
use ffi::{Db, Iter, Settings};
use library::Family;

/// What the registry asks of LevelDB.
pub(super) mod leveldb {
    use super::{Durability, Engine, Family, OpenOptions, Path, Result};

    pub(in crate::peers) fn available() -> Result<()> {
        Family::LevelDb.library().map(drop)
    }

    pub(in crate::peers) fn durability(level: Durability) -> Option<&'static str> {
        Some(match level {
            Durability::Buffered => "no sync, as at level process: LevelDB has nothing cheaper",
            Durability::Process => "default: each write goes to the log, not synced",
            Durability::Power => "WriteOptions sync: fdatasync of the log at each write",
        })
    }

    pub(in crate::peers) fn open(path: &Path, options: &OpenOptions) -> Result<Box<dyn Engine>> {
        super::open(Family::LevelDb, path, options)
    }
}

#[cfg(not(feature = "rocksdb"))]
pub(super) fn rocksdb_available() -> Result<()> {
    Family::RocksDb.library().map(drop)
}

#[cfg(not(feature = "rocksdb"))]
pub(super) fn rocksdb_open(path: &Path, options: &OpenOptions) -> Result<Box<dyn Engine>> {
    open(Family::RocksDb, path, options)
}

fn open(family: Family, directory: &Path, options: &OpenOptions) -> Result<Box<dyn Engine>> {
    let library = family.library()?;
    let recognizes = match family {
        Family::LevelDb => footprint::leveldb,
        Family::RocksDb => footprint::rocksdb,
    };
    prepare(family.name(), directory, options, recognizes)?;
    let (compression, compression_level) = compression_number(family, options.compression)?;
    let memory = MemorySplit::of(options.memory_bytes);
    let settings = Settings {
        create: options.create,
        write_buffer_bytes: clamp_usize(memory.write_buffer_bytes),
        cache_bytes: clamp_usize(memory.cache_bytes),
        bloom_bits: 10,
        compression,
        compression_level,
        threads: core_count(),
        manual_log_flush: options.durability == Durability::Buffered,
        sync: options.durability == Durability::Power,
    };
    let db = Db::open(library, directory, settings).map_err(|message| {
        if rocksdb::is_lock_message(&message) {
            locked(directory, message)
        } else {
            fail(family.name())(message)
        }
    })?;
    Ok(Box::new(Shared {
        db,
        family,
        directory: directory.to_path_buf(),
        settings,
        durability: options.durability,
        compression: options.compression,
    }))
}

/// The number of a compression in the interface, and its level.
fn compression_number(family: Family, compression: Compression) -> Result<(i32, Option<i32>)> {
    match (family, compression) {
        (_, Compression::None) => Ok((0, None)),
        (_, Compression::Snappy) => Ok((1, None)),
        (Family::RocksDb, Compression::Zstd(level)) => Ok((7, Some(level))),
        // No release of LevelDB has it yet.
        (Family::LevelDb, Compression::Zstd(_)) => Err(Error::Unsupported {
            engine: family.name(),
            operation: format!("compression {compression}"),
        }),
    }
}

fn core_count() -> i32 {
    thread::available_parallelism().map_or(2, NonZero::get).try_into().unwrap_or(i32::MAX)
}

struct Shared {
    db: Db,
    family: Family,
    directory: PathBuf,
    settings: Settings,
    durability: Durability,
    compression: Compression,
}

impl Shared {
    fn fail(&self) -> impl Fn(String) -> Error {
        fail(self.family.name())
    }

    fn version(&self) -> String {
        let library = self.db.library();
        match library.api.version() {
            Some((major, minor)) => format!("{major}.{minor}"),
            None => rocksdb::version(&self.directory).unwrap_or_else(|| library.file.clone()),
        }
    }

    fn number(&self, name: &CStr) -> u64 {
        self.db.number(name).unwrap_or(0)
    }

    /// RocksDB tells what runs and what is due.
    fn is_rocksdb_busy(&self) -> bool {
        [
            c"rocksdb.num-running-flushes",
            c"rocksdb.num-running-compactions",
            c"rocksdb.mem-table-flush-pending",
            c"rocksdb.compaction-pending",
        ]
        .iter()
        .any(|name| self.number(name) > 0)
    }

    /// LevelDB tells nothing of its background work, but that work never rests: it writes tables
    /// of 2 MB. So it is over when the directory stays as it is. Starts are due when four tables
    /// are in level 0.
    fn leveldb_state(&self) -> Result<(Vec<(PathBuf, u64)>, bool)> {
        let mut files: Vec<_> = RealFs
            .list(&self.directory)?
            .into_iter()
            .map(|entry| (entry.path, entry.length))
            .collect();
        files.sort();
        let tables = self.db.property(c"leveldb.num-files-at-level0");
        let due =
            tables.and_then(|count| count.parse::<u32>().ok()).is_some_and(|count| count >= 4);
        Ok((files, due))
    }
}

impl Engine for Shared {
    fn description(&self) -> Description {
        let settings = self.settings;
        let mut told = vec![
            ("library", self.db.library().file.clone()),
            ("write_buffer_size", settings.write_buffer_bytes.to_string()),
            ("block_cache", settings.cache_bytes.to_string()),
            ("bloom_bits_per_key", settings.bloom_bits.to_string()),
            ("compression", self.compression.to_string()),
        ];
        let durability = match self.family {
            Family::LevelDb => leveldb::durability(self.durability),
            Family::RocksDb => {
                told.push(("max_write_buffer_number", "2 (default)".to_owned()));
                told.push(("increase_parallelism", settings.threads.to_string()));
                rocksdb::durability(self.durability)
            }
        };
        Description {
            engine: self.family.name(),
            version: self.version(),
            durability: durability.unwrap_or_default().to_owned(),
            settings: told,
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            ordered_scan: true,
            scan_sorts: false,
            atomic_batch: true,
            snapshot_scan: true,
            persistent: true,
        }
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.db.put(key, value).map_err(self.fail())
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.db.delete(key).map_err(self.fail())
    }

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.db.get(key, read).map_err(self.fail())
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        self.db.write(batch).map_err(self.fail())
    }

    fn scan(
        &self,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<()> {
        let mut records = self.db.iter();
        match direction {
            Direction::Forward => seek_to_start(&mut records, range),
            Direction::Backward => seek_to_end(&mut records, range),
        }
        while let Some((key, value)) = records.record() {
            if !range.contains(key) || visit(key, value).is_break() {
                break;
            }
            match direction {
                Direction::Forward => records.next(),
                Direction::Backward => records.prev(),
            }
        }
        records.status().map_err(self.fail())
    }

    fn sync(&self) -> Result<()> {
        if self.family == Family::RocksDb {
            return self.db.flush_log(true).map_err(self.fail());
        }
        // LevelDB syncs only the log that a write goes to; the one before it may still wait for
        // its memtable to be flushed.
        let logs = RealFs.list(&self.directory)?;
        logs.iter()
            .filter(|entry| entry.name().is_some_and(|name| name.ends_with(".log")))
            .try_for_each(|entry| sync_file(&entry.path))?;
        RealFs.sync_directory(&self.directory)
    }

    fn quiesce(&self) -> Result<()> {
        let mut quiet_looks = 0;
        match self.family {
            Family::RocksDb => {
                while quiet_looks < 3 {
                    thread::sleep(Duration::from_millis(5));
                    quiet_looks = if self.is_rocksdb_busy() { 0 } else { quiet_looks + 1 };
                }
            }
            Family::LevelDb => {
                let mut files = Vec::new();
                while quiet_looks < 15 {
                    thread::sleep(Duration::from_millis(20));
                    let (now, due) = self.leveldb_state()?;
                    quiet_looks = if due || now != files { 0 } else { quiet_looks + 1 };
                    files = now;
                }
            }
        }
        Ok(())
    }

    fn compact(&self) -> Result<()> {
        self.db.compact_all();
        self.quiesce()
    }

    fn stats(&self) -> Result<Stats> {
        let files = RealFs.list(&self.directory)?;
        let tables = [".sst", ".ldb"];
        let is_table = |name: &str| tables.iter().any(|suffix| name.ends_with(suffix));
        let memory = match self.family {
            Family::LevelDb => self
                .db
                .property(c"leveldb.approximate-memory-usage")
                .and_then(|bytes| bytes.parse().ok()),
            Family::RocksDb => Some(
                self.number(c"rocksdb.cur-size-all-mem-tables")
                    + self.number(c"rocksdb.block-cache-usage")
                    + self.number(c"rocksdb.estimate-table-readers-mem"),
            ),
        };
        let details = match self.family {
            Family::LevelDb => self.db.property(c"leveldb.stats"),
            Family::RocksDb => self.db.property(c"rocksdb.levelstats"),
        };
        Ok(Stats {
            disk_bytes: Some(files.iter().map(|entry| entry.length).sum()),
            memory_bytes: memory,
            file_count: Some(
                files.iter().filter(|entry| entry.name().is_some_and(is_table)).count() as u64,
            ),
            details: details.map(|text| ("levels".to_owned(), text)).into_iter().collect(),
            ..Stats::default()
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.db.flush_log(false).map_err(self.fail())
    }
}

fn seek_to_start(records: &mut Iter<'_>, range: KeyRange<'_>) {
    match range.start {
        Bound::Unbounded => records.seek_to_first(),
        Bound::Included(start) => records.seek(start),
        Bound::Excluded(start) => {
            records.seek(start);
            if records.record().is_some_and(|(key, _)| key == start) {
                records.next();
            }
        }
    }
}

fn seek_to_end(records: &mut Iter<'_>, range: KeyRange<'_>) {
    let (Bound::Included(end) | Bound::Excluded(end)) = range.end else {
        return records.seek_to_last();
    };
    records.seek(end);
    match records.record() {
        // Every key stands before the bound.
        None => records.seek_to_last(),
        Some((key, _)) if range.is_after(key) => records.prev(),
        Some(_) => {}
    }
}
