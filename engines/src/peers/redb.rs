//! redb: a copy-on-write B+ tree in one file, in Rust.
//!
//! # Durability
//! redb has two kinds of commit: `Durability::None`, which keeps its pages in the process until a
//! later commit, and `Durability::Immediate`, which writes them out and calls fsync.
//! - `buffered`: commits of kind None; `sync` and `close` are commits of kind Immediate.
//! - `process`: commits of kind Immediate over a storage backend of ours that hands everything to
//!   the system but leaves the fsync out (backends are redb's own extension point). The system
//!   keeps the order of the writes, so the death of the process at any point leaves what redb is
//!   built to recover from.
//! - `power`: commits of kind Immediate, as redb does by default.

use std::fs::File;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use parking_lot::RwLock;
use redb::backends::FileBackend;
use redb::{
    BackendError, Database, DatabaseError, ReadableDatabase, ReadableTableMetadata, StorageBackend,
    TableDefinition, WriteTransaction,
};

use super::adapter::{clamp_usize, fail, locked, prepare, sync_file};
use super::footprint;
use crate::engine::Visitor;
use crate::{
    Batch, Capabilities, Description, Direction, Durability, Engine, Error, KeyRange, OpenOptions,
    Operation, Result, Stats,
};

const NAME: &str = "redb";
pub(super) const VERSION: &str = "4.6.0";

const FILE: &str = "records.redb";
const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("records");

pub(super) use super::adapter::built_in as available;

pub(super) fn durability(level: Durability) -> Option<&'static str> {
    Some(match level {
        Durability::Buffered => "Durability::None: pages wait in the process",
        Durability::Process => "Durability::Immediate over a backend that leaves fsync out",
        Durability::Power => "Durability::Immediate",
    })
}

pub(super) fn open(directory: &Path, options: &OpenOptions) -> Result<Box<dyn Engine>> {
    prepare(NAME, directory, options, footprint::redb)?;
    let path = directory.join(FILE);
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(Error::io("open", &path))?;
    let backend = FileBackend::new(file).map_err(fail(NAME))?;
    let mut builder = Database::builder();
    builder.set_cache_size(clamp_usize(options.memory_bytes));
    let database = match options.durability {
        Durability::Process => builder.create_with_backend(WithoutSync(backend)),
        Durability::Buffered | Durability::Power => builder.create_with_backend(backend),
    };
    let database = database.map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => locked(directory, error),
        error => fail(NAME)(error),
    })?;
    let engine = Redb {
        database: RwLock::new(database),
        path,
        durability: options.durability,
        cache_bytes: options.memory_bytes,
    };
    // Readers find the table from the start.
    engine.commit(|_| Ok(()))?;
    Ok(Box::new(engine))
}

struct Redb {
    /// Locked for writing by compaction alone, which redb wants to have the database for itself.
    database: RwLock<Database>,
    path: PathBuf,
    durability: Durability,
    cache_bytes: u64,
}

type Table<'t> = redb::Table<'t, &'static [u8], &'static [u8]>;

impl Redb {
    fn commit(&self, change: impl FnOnce(&mut Table<'_>) -> Result<()>) -> Result<()> {
        let database = self.database.read();
        let mut transaction = database.begin_write().map_err(fail(NAME))?;
        if self.durability == Durability::Buffered {
            transaction.set_durability(redb::Durability::None).map_err(fail(NAME))?;
        }
        run(transaction, change)
    }

    /// Commits whatever waits in the process.
    fn flush(&self) -> Result<()> {
        if self.durability != Durability::Buffered {
            return Ok(());
        }
        let database = self.database.read();
        run(database.begin_write().map_err(fail(NAME))?, |_| Ok(()))
    }
}

fn run(
    transaction: WriteTransaction,
    change: impl FnOnce(&mut Table<'_>) -> Result<()>,
) -> Result<()> {
    change(&mut transaction.open_table(TABLE).map_err(fail(NAME))?)?;
    transaction.commit().map_err(fail(NAME))
}

impl Engine for Redb {
    fn description(&self) -> Description {
        Description {
            engine: NAME,
            version: VERSION.to_owned(),
            durability: durability(self.durability).unwrap_or_default().to_owned(),
            settings: vec![("cache_size", self.cache_bytes.to_string())],
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
        self.commit(|table| table.insert(key, value).map(drop).map_err(fail(NAME)))
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.commit(|table| table.remove(key).map(drop).map_err(fail(NAME)))
    }

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let transaction = self.database.read().begin_read().map_err(fail(NAME))?;
        let table = transaction.open_table(TABLE).map_err(fail(NAME))?;
        let value = table.get(key).map_err(fail(NAME))?;
        if let Some(value) = &value {
            read(value.value());
        }
        Ok(value.is_some())
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        self.commit(|table| {
            for operation in batch.iter() {
                match operation {
                    Operation::Put { key, value } => table.insert(key, value).map(drop),
                    Operation::Delete { key } => table.remove(key).map(drop),
                }
                .map_err(fail(NAME))?;
            }
            Ok(())
        })
    }

    fn scan(
        &self,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let transaction = self.database.read().begin_read().map_err(fail(NAME))?;
        let table = transaction.open_table(TABLE).map_err(fail(NAME))?;
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (range.start, range.end);
        let mut records = table.range::<&[u8]>(bounds).map_err(fail(NAME))?;
        loop {
            let record = match direction {
                Direction::Forward => records.next(),
                Direction::Backward => records.next_back(),
            };
            let Some(record) = record else { return Ok(()) };
            let (key, value) = record.map_err(fail(NAME))?;
            if visit(key.value(), value.value()).is_break() {
                return Ok(());
            }
        }
    }

    fn sync(&self) -> Result<()> {
        self.flush()?;
        sync_file(&self.path)
    }

    fn quiesce(&self) -> Result<()> {
        Ok(())
    }

    /// Moves pages to the front of the file and cuts the rest off.
    fn compact(&self) -> Result<()> {
        self.database.write().compact().map(drop).map_err(fail(NAME))
    }

    fn stats(&self) -> Result<Stats> {
        let transaction = self.database.read().begin_read().map_err(fail(NAME))?;
        let table = transaction.open_table(TABLE).map_err(fail(NAME))?;
        Ok(Stats {
            live_records: Some(table.len().map_err(fail(NAME))?),
            disk_bytes: Some(self.path.metadata().map_err(Error::io("look at", &self.path))?.len()),
            file_count: Some(1),
            ..Stats::default()
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.flush()?;
        self.database.into_inner().close().map_err(fail(NAME))
    }
}

/// A file without fsync: what was written is the system's to keep.
#[derive(Debug)]
struct WithoutSync(FileBackend);

type Backed<T> = std::result::Result<T, io::Error>;
type Lock<T> = std::result::Result<T, BackendError>;

impl StorageBackend for WithoutSync {
    fn len(&self) -> Backed<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Backed<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, length: u64) -> Backed<()> {
        self.0.set_len(length)
    }

    fn sync_data(&self) -> Backed<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Backed<()> {
        self.0.write(offset, data)
    }

    fn close(&self) -> Backed<()> {
        self.0.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Lock<bool> {
        self.0.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Lock<bool> {
        self.0.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Lock<()> {
        self.0.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Lock<()> {
        self.0.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Lock<()> {
        self.0.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Lock<bool> {
        self.0.query_lock_range(start, end)
    }
}
