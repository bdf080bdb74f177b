//! SQLite: a B-tree in one file with a write-ahead log beside it, through the crate `rusqlite`,
//! which brings SQLite along.
//!
//! # Durability
//! In WAL mode a commit writes its pages to the log.
//! - `process`: `synchronous=OFF`: written, never synced.
//! - `power`: `synchronous=FULL`: the log is synced at every commit. (`NORMAL`, which many advise,
//!   syncs only at checkpoints: a power loss takes the latest commits.)
//! - `buffered`: the mode of `process`, the cheapest there is: SQLite keeps no commit to itself.
//!
//! # Table
//! An ordinary table with a unique index on the key. SQLite's documentation advises against
//! `WITHOUT ROWID` for rows over a twentieth of a page (200 bytes), which is what values are here.
//!
//! # Connections
//! One writes; each thread that reads takes one of its own from a pool. The writer's cache has half
//! of the memory budget, and the log grows to a quarter of it before it is checkpointed, as other
//! engines' write buffers do; readers map the file and share the system's page cache.

use std::ops::Bound;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags, Statement, params, params_from_iter};

use super::adapter::{fail, prepare, sync_file};
use super::footprint;
use crate::engine::Visitor;
use crate::{
    Batch, Capabilities, Description, Direction, Durability, Engine, Error, KeyRange, OpenOptions,
    Operation, Result, Stats,
};

const NAME: &str = "sqlite";

const FILE: &str = "records.sqlite";
const LOG_FILE: &str = "records.sqlite-wal";

const PAGE_BYTES: u64 = 4_096;
/// What SQLite maps at most, as built by default; more is read by calls.
const MAP_BYTES: u64 = 0x7fff_0000;
/// The cache of a reading connection: inner pages of the trees; the rest comes from the mapping.
const READER_CACHE_KIB: u64 = 2_000;

const GET: &str = "SELECT value FROM records WHERE key = ?1";
const PUT: &str = "INSERT INTO records (key, value) VALUES (?1, ?2) \
                   ON CONFLICT (key) DO UPDATE SET value = excluded.value";
const DELETE: &str = "DELETE FROM records WHERE key = ?1";

pub(super) use super::adapter::built_in as available;

pub(super) fn durability(level: Durability) -> Option<&'static str> {
    Some(match level {
        Durability::Buffered => {
            "WAL, synchronous=OFF, as at level process: SQLite has nothing cheaper"
        }
        Durability::Process => "WAL, synchronous=OFF: commits are written, not synced",
        Durability::Power => "WAL, synchronous=FULL: the log is synced at every commit",
    })
}

pub(super) fn open(directory: &Path, options: &OpenOptions) -> Result<Box<dyn Engine>> {
    prepare(NAME, directory, options, footprint::sqlite)?;
    let settings = Settings::of(options);
    let writer = settings.connect(directory, Role::Writer)?;
    writer
        .execute_batch(
            "CREATE TABLE IF NOT EXISTS records (key BLOB NOT NULL UNIQUE, value BLOB NOT NULL)",
        )
        .map_err(fail(NAME))?;
    Ok(Box::new(Sqlite {
        directory: directory.to_path_buf(),
        settings,
        writer: Mutex::new(writer),
        idle_readers: Mutex::new(Vec::new()),
    }))
}

struct Sqlite {
    directory: PathBuf,
    settings: Settings,
    writer: Mutex<Connection>,
    idle_readers: Mutex<Vec<Connection>>,
}

#[derive(Debug, Clone, Copy)]
struct Settings {
    durability: Durability,
    writer_cache_kib: u64,
    checkpoint_pages: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Writer,
    Reader,
}

impl Settings {
    fn of(options: &OpenOptions) -> Self {
        Self {
            durability: options.durability,
            writer_cache_kib: (options.memory_bytes / 2 / 1_024).max(READER_CACHE_KIB),
            // SQLite's default, 1,000 pages, is the least.
            checkpoint_pages: (options.memory_bytes / 4 / PAGE_BYTES).max(1_000),
        }
    }

    fn connect(self, directory: &Path, role: Role) -> Result<Connection> {
        // Each connection is used by one thread at a time: SQLite need not lock for it.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(directory.join(FILE), flags).map_err(fail(NAME))?;
        let synchronous = match self.durability {
            Durability::Buffered | Durability::Process => "OFF",
            Durability::Power => "FULL",
        };
        let cache_kib = match role {
            Role::Writer => self.writer_cache_kib,
            Role::Reader => READER_CACHE_KIB,
        };
        let pages = self.checkpoint_pages;
        // `fullfsync` matters on macOS alone, where fsync does not reach the disk.
        connection
            .execute_batch(&format!(
                "PRAGMA journal_mode=WAL; PRAGMA synchronous={synchronous}; \
                 PRAGMA fullfsync=ON; PRAGMA wal_autocheckpoint={pages}; \
                 PRAGMA cache_size=-{cache_kib}; PRAGMA mmap_size={MAP_BYTES}; \
                 PRAGMA temp_store=FILE;"
            ))
            .map_err(fail(NAME))?;
        connection.busy_timeout(std::time::Duration::from_secs(60)).map_err(fail(NAME))?;
        Ok(connection)
    }
}

impl Sqlite {
    /// Runs `read` on a connection of its own.
    fn with_reader<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let idle = self.idle_readers.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.settings.connect(&self.directory, Role::Reader)?,
        };
        let result = read(&connection);
        self.idle_readers.lock().push(connection);
        result.map_err(fail(NAME))
    }

    /// Runs `change` as one transaction, rolled back on an error.
    fn commit(&self, batch: &Batch) -> rusqlite::Result<()> {
        let mut writer = self.writer.lock();
        let transaction = writer.transaction()?;
        {
            let mut put = transaction.prepare_cached(PUT)?;
            let mut delete = transaction.prepare_cached(DELETE)?;
            for operation in batch.iter() {
                apply(&mut put, &mut delete, operation)?;
            }
        }
        transaction.commit()
    }

    fn files(&self) -> [PathBuf; 2] {
        [self.directory.join(FILE), self.directory.join(LOG_FILE)]
    }
}

fn apply(
    put: &mut Statement<'_>,
    delete: &mut Statement<'_>,
    operation: Operation<'_>,
) -> rusqlite::Result<()> {
    match operation {
        Operation::Put { key, value } => put.execute(params![key, value]),
        Operation::Delete { key } => delete.execute(params![key]),
    }
    .map(drop)
}

impl Engine for Sqlite {
    fn description(&self) -> Description {
        Description {
            engine: NAME,
            version: rusqlite::version().to_owned(),
            durability: durability(self.settings.durability).unwrap_or_default().to_owned(),
            settings: vec![
                ("table", "rowid table with a unique index on the key".to_owned()),
                ("page_size", format!("{PAGE_BYTES} (default)")),
                ("cache_size", format!("{} KiB, the writer's", self.settings.writer_cache_kib)),
                ("wal_autocheckpoint", self.settings.checkpoint_pages.to_string()),
                ("mmap_size", MAP_BYTES.to_string()),
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
        let writer = self.writer.lock();
        let put = writer.prepare_cached(PUT).and_then(|mut put| put.execute(params![key, value]));
        put.map(drop).map_err(|error| refusal(error, value.len()))
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        let writer = self.writer.lock();
        let delete = writer.prepare_cached(DELETE).and_then(|mut delete| delete.execute([key]));
        delete.map(drop).map_err(fail(NAME))
    }

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.with_reader(|connection| {
            let mut get = connection.prepare_cached(GET)?;
            let mut rows = get.query([key])?;
            let row = rows.next()?;
            if let Some(row) = row {
                read(row.get_ref(0)?.as_blob()?);
            }
            Ok(row.is_some())
        })
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        self.commit(batch).map_err(fail(NAME))
    }

    fn scan(
        &self,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<()> {
        let (query, parameters) = scan_query(range, direction);
        self.with_reader(|connection| {
            let mut scan = connection.prepare_cached(&query)?;
            let mut rows = scan.query(params_from_iter(&parameters))?;
            while let Some(row) = rows.next()? {
                let (key, value) = (row.get_ref(0)?, row.get_ref(1)?);
                if visit(key.as_blob()?, value.as_blob()?).is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    fn fold(&self, visit: &mut Visitor<'_>) -> Result<()> {
        // In the order of the table, not of the index.
        self.with_reader(|connection| {
            let mut fold =
                connection.prepare_cached("SELECT key, value FROM records NOT INDEXED")?;
            let mut rows = fold.query([])?;
            while let Some(row) = rows.next()? {
                let (key, value) = (row.get_ref(0)?, row.get_ref(1)?);
                if visit(key.as_blob()?, value.as_blob()?).is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Every commit is in the files already; what is left is to sync them.
    fn sync(&self) -> Result<()> {
        let _no_checkpoint_meanwhile = self.writer.lock();
        self.files().iter().try_for_each(|file| sync_file(file))
    }

    fn quiesce(&self) -> Result<()> {
        Ok(())
    }

    fn compact(&self) -> Result<()> {
        let writer = self.writer.lock();
        writer.execute_batch("VACUUM").map_err(fail(NAME))?;
        writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(fail(NAME))
    }

    fn stats(&self) -> Result<Stats> {
        let (pages, free): (u64, u64) = self.with_reader(|connection| {
            let number =
                |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            Ok((number("page_count")?.unsigned_abs(), number("freelist_count")?.unsigned_abs()))
        })?;
        let log = self.directory.join(LOG_FILE).metadata().map_or(0, |metadata| metadata.len());
        Ok(Stats {
            disk_bytes: Some(pages * PAGE_BYTES + log),
            dead_bytes: Some(free * PAGE_BYTES),
            file_count: Some(2),
            ..Stats::default()
        })
    }

    /// The last connection that closes moves the log into the database.
    fn close(self: Box<Self>) -> Result<()> {
        for reader in self.idle_readers.into_inner() {
            reader.close().map_err(|(_, error)| fail(NAME)(error))?;
        }
        self.writer.into_inner().close().map_err(|(_, error)| fail(NAME)(error))
    }
}

/// The query over a range, with the parameters it takes.
fn scan_query(range: KeyRange<'_>, direction: Direction) -> (String, Vec<&[u8]>) {
    let mut conditions = Vec::new();
    let mut parameters = Vec::new();
    for (bound, or_equal, strictly) in [(range.start, ">=", ">"), (range.end, "<=", "<")] {
        let (comparison, key) = match bound {
            Bound::Included(key) => (or_equal, key),
            Bound::Excluded(key) => (strictly, key),
            Bound::Unbounded => continue,
        };
        parameters.push(key);
        conditions.push(format!("key {comparison} ?{}", parameters.len()));
    }
    let filter = if conditions.is_empty() {
        String::new()
    } else {
        format!("WHERE {}", conditions.join(" AND "))
    };
    let order = match direction {
        Direction::Forward => "ASC",
        Direction::Backward => "DESC",
    };
    (format!("SELECT key, value FROM records {filter} ORDER BY key {order}"), parameters)
}

/// SQLite's own refusal of a value over a gigabyte, as ours.
fn refusal(error: rusqlite::Error, value_bytes: usize) -> Error {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::TooBig) => {
            Error::TooLarge { what: "value", size: value_bytes as u64, limit: 1_000_000_000 }
        }
        _ => fail(NAME)(error),
    }
}
