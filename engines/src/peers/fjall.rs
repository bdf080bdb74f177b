//! fjall: a log-structured merge tree in Rust.
//!
//! # Durability
//! A write goes through a buffer of 8 KiB into the journal; `persist` takes it on from there.
//! - `buffered`: no persist.
//! - `process`: `PersistMode::Buffer` after every write: the buffer goes to the system.
//! - `power`: `PersistMode::SyncData` after every write: fdatasync of the journal.
//!
//! The keyspace is created with its own persisting off, because fjall saves that setting in the
//! database: a level chosen at open must not depend on the level at creation.
//!
//! fjall does not show its queue of background work. `quiesce` looks every 10 ms and returns once
//! nothing was queued, running or finished for ten looks in a row.

use std::ops::Bound;
use std::path::Path;
use std::thread;
use std::time::Duration;

use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable};

use super::adapter::{KeyLimit, MemorySplit, fail, locked, prepare};
use super::footprint;
use crate::engine::Visitor;
use crate::{
    Batch, Capabilities, Compression, Description, Direction, Durability, Engine, Error, KeyRange,
    OpenOptions, Operation, Result, Stats,
};

const NAME: &str = "fjall";
pub(super) const VERSION: &str = "3.1.13";

/// Keys carry their length in 16 bits; fjall ends the process for longer ones.
const KEYS: KeyLimit = KeyLimit { engine: NAME, longest: 65_535 };

pub(super) use super::adapter::built_in as available;

pub(super) fn durability(level: Durability) -> Option<&'static str> {
    Some(match level {
        Durability::Buffered => "no persist; the journal is written in pieces of 8 KiB",
        Durability::Process => "PersistMode::Buffer after every write",
        Durability::Power => "PersistMode::SyncData after every write",
    })
}

pub(super) fn open(directory: &Path, options: &OpenOptions) -> Result<Box<dyn Engine>> {
    prepare(NAME, directory, options, footprint::fjall)?;
    let memory = MemorySplit::of(options.memory_bytes);
    let compression = block_compression(options.compression)?;
    let database = Database::builder(directory)
        .cache_size(memory.cache_bytes)
        .manual_journal_persist(true)
        .open()
        .map_err(|error| match error {
            fjall::Error::Locked => locked(directory, "another process or handle has it open"),
            error => fail(NAME)(error),
        })?;
    let keyspace = database
        .keyspace("records", || {
            let settings = KeyspaceCreateOptions::default()
                .manual_journal_persist(true)
                .max_memtable_size(memory.write_buffer_bytes);
            match compression {
                BlockCompression::Lz4 => settings,
                BlockCompression::None => settings
                    .data_block_compression_policy(CompressionPolicy::all(CompressionType::None)),
            }
        })
        .map_err(fail(NAME))?;
    Ok(Box::new(Fjall { keyspace, database, durability: options.durability, memory, compression }))
}

/// fjall knows one compression beside none: LZ4, by default from level 2 down.
#[derive(Debug, Clone, Copy)]
enum BlockCompression {
    None,
    Lz4,
}

fn block_compression(asked: Compression) -> Result<BlockCompression> {
    match asked {
        Compression::None => Ok(BlockCompression::None),
        Compression::Snappy => Ok(BlockCompression::Lz4),
        Compression::Zstd(_) => {
            Err(Error::Unsupported { engine: NAME, operation: format!("compression {asked}") })
        }
    }
}

struct Fjall {
    // The keyspace first: it is dropped before the database that its threads belong to.
    keyspace: Keyspace,
    database: Database,
    durability: Durability,
    memory: MemorySplit,
    compression: BlockCompression,
}

impl Fjall {
    fn persist_mode(&self) -> Option<PersistMode> {
        match self.durability {
            Durability::Buffered => None,
            Durability::Process => Some(PersistMode::Buffer),
            Durability::Power => Some(PersistMode::SyncData),
        }
    }

    /// Takes a write to the level.
    fn settle(&self) -> Result<()> {
        self.persist_mode().map_or(Ok(()), |mode| self.database.persist(mode)).map_err(fail(NAME))
    }

    fn is_busy(&self) -> bool {
        self.database.outstanding_flushes() > 0
            || self.keyspace.sealed_memtable_count() > 0
            || self.database.active_compactions() > 0
    }
}

impl Engine for Fjall {
    fn description(&self) -> Description {
        let compression = match self.compression {
            BlockCompression::None => "none",
            BlockCompression::Lz4 => "lz4 from level 2 down (default)",
        };
        Description {
            engine: NAME,
            version: VERSION.to_owned(),
            durability: durability(self.durability).unwrap_or_default().to_owned(),
            settings: vec![
                ("cache_size", self.memory.cache_bytes.to_string()),
                ("max_memtable_size", self.memory.write_buffer_bytes.to_string()),
                ("data_block_compression", compression.to_owned()),
                ("compaction_strategy", "Leveled (default)".to_owned()),
            ],
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
        KEYS.check(key)?;
        self.keyspace.insert(key, value).map_err(fail(NAME))?;
        self.settle()
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        if !KEYS.holds(key) {
            return Ok(());
        }
        self.keyspace.remove(key).map_err(fail(NAME))?;
        self.settle()
    }

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        if !KEYS.holds(key) {
            return Ok(false);
        }
        let value = self.keyspace.get(key).map_err(fail(NAME))?;
        if let Some(value) = &value {
            read(value);
        }
        Ok(value.is_some())
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        KEYS.check_batch(batch)?;
        let mut writes = self.database.batch().durability(self.persist_mode());
        for operation in batch.iter() {
            match operation {
                Operation::Put { key, value } => writes.insert(&self.keyspace, key, value),
                Operation::Delete { key } if KEYS.holds(key) => writes.remove(&self.keyspace, key),
                Operation::Delete { .. } => {}
            }
        }
        writes.commit().map_err(fail(NAME))
    }

    fn scan(
        &self,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<()> {
        let Some(range) = KEYS.clip(range) else { return Ok(()) };
        // Through a snapshot: the keyspace's own range sees what is written while it runs.
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (range.start, range.end);
        let mut records = self.database.snapshot().range::<&[u8], _>(&self.keyspace, bounds);
        loop {
            let record = match direction {
                Direction::Forward => records.next(),
                Direction::Backward => records.next_back(),
            };
            let Some(record) = record else { return Ok(()) };
            let (key, value) = record.into_inner().map_err(fail(NAME))?;
            if visit(&key, &value).is_break() {
                return Ok(());
            }
        }
    }

    fn sync(&self) -> Result<()> {
        self.database.persist(PersistMode::SyncAll).map_err(fail(NAME))
    }

    fn quiesce(&self) -> Result<()> {
        let mut finished = self.database.compactions_completed();
        let mut quiet_looks = 0;
        while quiet_looks < 10 {
            thread::sleep(Duration::from_millis(10));
            let now = self.database.compactions_completed();
            quiet_looks = if self.is_busy() || now != finished { 0 } else { quiet_looks + 1 };
            finished = now;
        }
        Ok(())
    }

    fn compact(&self) -> Result<()> {
        self.keyspace.rotate_memtable_and_wait().map_err(fail(NAME))?;
        self.quiesce()?;
        self.keyspace.major_compact().map_err(fail(NAME))?;
        self.quiesce()
    }

    fn stats(&self) -> Result<Stats> {
        Ok(Stats {
            disk_bytes: Some(self.database.disk_space().map_err(fail(NAME))?),
            memory_bytes: Some(self.database.write_buffer_size() + self.database.cache_size()),
            file_count: Some(self.keyspace.table_count() as u64),
            compaction_count: Some(self.database.compactions_completed() as u64),
            ..Stats::default()
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.database.persist(PersistMode::Buffer).map_err(fail(NAME))
    }
}

impl Drop for Fjall {
    fn drop(&mut self) {
        // Dropping cannot report; whoever needs to know calls `close`.
        let _ = self.database.persist(PersistMode::Buffer);
    }
}
