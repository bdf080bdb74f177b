//! LMDB: a copy-on-write B+ tree in one memory-mapped file, through the crate `heed`.
//!
//! # Durability
//! A commit writes its pages and then the meta page with write calls, and syncs between and after
//! them unless told not to.
//! - `process`: `MDB_NOSYNC`. The system has the pages, in order, when the commit returns.
//! - `power`: the default: fdatasync at every commit.
//! - `buffered`: the mode of `process`, the cheapest there is: LMDB keeps no commit to itself.
//!
//! # Memory
//! LMDB has no cache of its own: the system's page cache holds the mapped file, and the budget is
//! not used.
//!
//! # Compaction
//! The file never shrinks by itself. `compact` does what `mdb_copy -c` does, writes the live pages
//! to a second file, and puts that in the place of the first while nobody reads or writes.

use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use heed::types::Bytes;
use heed::{CommitOrAbort, CompactionOption, Database, Env, EnvFlags, EnvOpenOptions};
use parking_lot::{MappedRwLockReadGuard, RwLock, RwLockReadGuard};

use super::adapter::{KeyLimit, fail, locked, prepare};
use super::footprint;
use crate::engine::Visitor;
use crate::fs::{FileSystem, RealFs};
use crate::{
    Batch, Capabilities, Description, Direction, Durability, Engine, Error, KeyRange, OpenOptions,
    Operation, Result, Stats,
};

const NAME: &str = "lmdb";

const DATA_FILE: &str = "data.mdb";
const COMPACTED_FILE: &str = "data.mdb.compacted";

/// The longest key of a build with LMDB's defaults.
const KEYS: KeyLimit = KeyLimit { engine: NAME, longest: 511 };

/// The address space set aside, which is the largest size of the file: disk space is taken only as
/// needed.
#[cfg(target_pointer_width = "64")]
const MAP_BYTES: usize = 1 << 40;
#[cfg(not(target_pointer_width = "64"))]
const MAP_BYTES: usize = 1 << 30;

/// One for each reading thread; LMDB's default of 126 is soon too few.
const MAX_READERS: u32 = 1_024;

pub(super) use super::adapter::built_in as available;

pub(super) fn durability(level: Durability) -> Option<&'static str> {
    Some(match level {
        Durability::Buffered => "MDB_NOSYNC, as at level process: LMDB has nothing cheaper",
        Durability::Process => "MDB_NOSYNC: commits are written, not synced",
        Durability::Power => "default: fdatasync at every commit",
    })
}

pub(super) fn open(directory: &Path, options: &OpenOptions) -> Result<Box<dyn Engine>> {
    prepare(NAME, directory, options, footprint::lmdb)?;
    let leftover = directory.join(COMPACTED_FILE);
    if leftover.is_file() {
        // A compaction that did not come to its end; the data file is whole.
        fs::remove_file(&leftover).map_err(Error::io("remove", &leftover))?;
    }
    Ok(Box::new(Lmdb {
        tree: RwLock::new(Some(Tree::open(directory, options.durability)?)),
        directory: directory.to_path_buf(),
        durability: options.durability,
    }))
}

struct Lmdb {
    /// Locked for writing by compaction alone. Empty only if the file could not be opened again
    /// after one.
    tree: RwLock<Option<Tree>>,
    directory: PathBuf,
    durability: Durability,
}

struct Tree {
    environment: Env,
    records: Database<'static, Bytes, Bytes>,
}

impl Tree {
    #[expect(unsafe_code, reason = "the file is mapped, and flags can break LMDB's promises")]
    fn open(directory: &Path, durability: Durability) -> Result<Self> {
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP_BYTES).max_readers(MAX_READERS);
        if durability != Durability::Power {
            // SAFETY: without syncs a power loss may corrupt the file, which these levels do not
            // promise against; nothing in the process depends on it.
            unsafe { options.flags(EnvFlags::NO_SYNC) };
        }
        // SAFETY: the mapped file is changed by LMDB alone, which locks it against other processes;
        // `heed` refuses to open it a second time in this one.
        let environment = unsafe { options.open(directory) }.map_err(|error| match error {
            heed::Error::EnvAlreadyOpened => locked(directory, error),
            error => fail(NAME)(error),
        })?;
        let transaction = environment.write_txn().map_err(fail(NAME))?;
        let created = environment
            .create_databases_and_commit(transaction, |opener, transaction| {
                opener.create_database(transaction, None).map(CommitOrAbort::<_, ()>::Commit)
            })
            .map_err(fail(NAME))?;
        match created {
            CommitOrAbort::Commit(records) => Ok(Self { environment, records }),
            CommitOrAbort::Abort(()) => Err(fail(NAME)("the first transaction was aborted")),
        }
    }

    /// Returns when the file is closed: its lock table and mapping are gone.
    fn close(self) {
        self.environment.prepare_for_closing().wait();
    }
}

impl Lmdb {
    fn tree(&self) -> Result<MappedRwLockReadGuard<'_, Tree>> {
        RwLockReadGuard::try_map(self.tree.read(), Option::as_ref).map_err(|_| Error::Poisoned {
            cause: "the data file could not be opened again after a compaction".to_owned(),
        })
    }

    fn commit<'a>(&self, operations: impl IntoIterator<Item = Operation<'a>>) -> Result<()> {
        let tree = self.tree()?;
        let mut transaction = tree.environment.write_txn().map_err(fail(NAME))?;
        for operation in operations {
            match operation {
                Operation::Put { key, value } => tree.records.put(&mut transaction, key, value),
                Operation::Delete { key } if KEYS.holds(key) => {
                    tree.records.delete(&mut transaction, key).map(drop)
                }
                Operation::Delete { .. } => Ok(()),
            }
            .map_err(fail(NAME))?;
        }
        transaction.commit().map_err(fail(NAME))
    }

    /// Writes the live pages to a second file.
    fn copy_live_pages(&self, tree: &Tree) -> Result<PathBuf> {
        let compacted = self.directory.join(COMPACTED_FILE);
        let copy = tree
            .environment
            .copy_to_path(&compacted, CompactionOption::Enabled)
            .map_err(fail(NAME))?;
        copy.sync_all().map_err(Error::io("sync", &compacted))?;
        Ok(compacted)
    }
}

impl Engine for Lmdb {
    fn description(&self) -> Description {
        let version = heed::lmdb_version();
        Description {
            engine: NAME,
            version: format!("{}.{}.{}", version.major, version.minor, version.patch),
            durability: durability(self.durability).unwrap_or_default().to_owned(),
            settings: vec![
                ("map_size", MAP_BYTES.to_string()),
                ("max_readers", MAX_READERS.to_string()),
                ("cache", "the system's page cache; the memory budget is not used".to_owned()),
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
        self.commit([Operation::Put { key, value }])
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.commit([Operation::Delete { key }])
    }

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        if !KEYS.holds(key) {
            return Ok(false);
        }
        let tree = self.tree()?;
        let transaction = tree.environment.read_txn().map_err(fail(NAME))?;
        let value = tree.records.get(&transaction, key).map_err(fail(NAME))?;
        if let Some(value) = value {
            read(value);
        }
        Ok(value.is_some())
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        KEYS.check_batch(batch)?;
        self.commit(batch.iter())
    }

    fn scan(
        &self,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<()> {
        let Some(range) = KEYS.clip(range) else { return Ok(()) };
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (range.start, range.end);
        let tree = self.tree()?;
        let transaction = tree.environment.read_txn().map_err(fail(NAME))?;
        let mut visit = |record: heed::Result<(&[u8], &[u8])>| {
            record.map(|(key, value)| visit(key, value).is_continue()).map_err(fail(NAME))
        };
        match direction {
            Direction::Forward => {
                for record in tree.records.range(&transaction, &bounds).map_err(fail(NAME))? {
                    if !visit(record)? {
                        break;
                    }
                }
            }
            Direction::Backward => {
                for record in tree.records.rev_range(&transaction, &bounds).map_err(fail(NAME))? {
                    if !visit(record)? {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.tree()?.environment.force_sync().map_err(fail(NAME))
    }

    fn quiesce(&self) -> Result<()> {
        Ok(())
    }

    /// Everybody else waits meanwhile: the file changes hands.
    fn compact(&self) -> Result<()> {
        let mut place = self.tree.write();
        let Some(tree) = place.take() else { return Ok(()) };
        let copied = self.copy_live_pages(&tree);
        tree.close();
        let renamed = copied.and_then(|compacted| {
            let data = self.directory.join(DATA_FILE);
            fs::rename(&compacted, &data).map_err(Error::io("rename", &compacted))?;
            RealFs.sync_directory(&self.directory)
        });
        // Whatever became of the copy, the data file is whole and is used again.
        *place = Some(Tree::open(&self.directory, self.durability)?);
        renamed
    }

    fn stats(&self) -> Result<Stats> {
        let tree = self.tree()?;
        let transaction = tree.environment.read_txn().map_err(fail(NAME))?;
        Ok(Stats {
            live_records: Some(tree.records.len(&transaction).map_err(fail(NAME))?),
            disk_bytes: Some(tree.environment.real_disk_size().map_err(fail(NAME))?),
            file_count: Some(1),
            ..Stats::default()
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        if let Some(tree) = self.tree.into_inner() {
            tree.close();
        }
        Ok(())
    }
}
