//! sled: a log-structured B+ tree in Rust.
//!
//! # Durability
//! A write goes into an I/O buffer in the process; a thread of sled's writes the buffers out every
//! half second. `flush` is sled's only way to write them out earlier:
//! - `buffered`: no flush.
//! - `process`: a flush after every write. It promises more than was asked: it also waits until
//!   the device has the written range (`sync_file_range` on Linux). sled has nothing cheaper.
//! - `power`: a flush after every write, then an fsync of the file by this adapter. sled's own
//!   documentation says that `flush` calls fsync, but on Linux 0.34 calls `sync_file_range`, which
//!   saves no file size, no block allocation, and no volatile cache of the device.
//!
//! sled has neither a compaction to call nor a way to ask whether its cleaning thread is idle:
//! `compact` and `quiesce` flush.

use std::fs::File;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::adapter::{fail, locked, prepare, sync_file};
use super::footprint;
use crate::engine::Visitor;
use crate::{
    Batch, Capabilities, Description, Direction, Durability, Engine, KeyRange, OpenOptions,
    Operation, Result, Stats,
};

const NAME: &str = "sled";
pub(super) const VERSION: &str = "0.34.7";

pub(super) use super::adapter::built_in as available;

pub(super) fn durability(level: Durability) -> Option<&'static str> {
    Some(match level {
        Durability::Buffered => "no flush; sled writes its buffers out every 500 ms",
        Durability::Process => "flush after every write, which also waits for the device",
        Durability::Power => "flush and fsync after every write",
    })
}

pub(super) fn open(directory: &Path, options: &OpenOptions) -> Result<Box<dyn Engine>> {
    prepare(NAME, directory, options, footprint::sled)?;
    let config = sled::Config::new().path(directory).cache_capacity(options.memory_bytes);
    let tree = config.open().map_err(|error| match error {
        sled::Error::Io(error) if error.to_string().contains("could not acquire lock") => {
            locked(directory, error)
        }
        error => fail(NAME)(error),
    })?;
    Ok(Box::new(Sled {
        tree,
        log: Log(directory.join("db")),
        durability: options.durability,
        cache_bytes: options.memory_bytes,
    }))
}

struct Sled {
    // The tree first: it is dropped before anybody waits for its lock.
    tree: sled::Db,
    log: Log,
    durability: Durability,
    cache_bytes: u64,
}

/// The file that sled locks. Its threads may hold the lock for a while after the tree is dropped;
/// an engine that is closed can be opened again, so closing waits for it.
struct Log(PathBuf);

impl Drop for Log {
    fn drop(&mut self) {
        let started = Instant::now();
        let Ok(file) = File::open(&self.0) else { return };
        while file.try_lock().is_err() && started.elapsed() < Duration::from_secs(10) {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Sled {
    fn flush(&self) -> Result<()> {
        self.tree.flush().map(drop).map_err(fail(NAME))
    }

    /// Takes a write to the level.
    fn settle(&self) -> Result<()> {
        match self.durability {
            Durability::Buffered => Ok(()),
            Durability::Process => self.flush(),
            Durability::Power => self.sync(),
        }
    }
}

impl Engine for Sled {
    fn description(&self) -> Description {
        Description {
            engine: NAME,
            version: VERSION.to_owned(),
            durability: durability(self.durability).unwrap_or_default().to_owned(),
            settings: vec![
                ("cache_capacity", self.cache_bytes.to_string()),
                ("mode", "LowSpace (default)".to_owned()),
                ("use_compression", "false (default)".to_owned()),
                ("compact", "none: sled has no such call".to_owned()),
            ],
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            ordered_scan: true,
            scan_sorts: false,
            atomic_batch: true,
            snapshot_scan: false,
            persistent: true,
        }
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.tree.insert(key, value).map_err(fail(NAME))?;
        self.settle()
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.tree.remove(key).map_err(fail(NAME))?;
        self.settle()
    }

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.tree.get(key).map_err(fail(NAME))?;
        if let Some(value) = &value {
            read(value);
        }
        Ok(value.is_some())
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        let mut operations = sled::Batch::default();
        for operation in batch.iter() {
            match operation {
                Operation::Put { key, value } => operations.insert(key, value),
                Operation::Delete { key } => operations.remove(key),
            }
        }
        self.tree.apply_batch(operations).map_err(fail(NAME))?;
        self.settle()
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
        let mut records =
            self.tree.range::<&[u8], (Bound<&[u8]>, Bound<&[u8]>)>((range.start, range.end));
        loop {
            let record = match direction {
                Direction::Forward => records.next(),
                Direction::Backward => records.next_back(),
            };
            let Some(record) = record else { return Ok(()) };
            let (key, value) = record.map_err(fail(NAME))?;
            if visit(&key, &value).is_break() {
                return Ok(());
            }
        }
    }

    fn sync(&self) -> Result<()> {
        self.flush()?;
        sync_file(&self.log.0)
    }

    fn quiesce(&self) -> Result<()> {
        self.flush()
    }

    fn compact(&self) -> Result<()> {
        self.flush()
    }

    fn stats(&self) -> Result<Stats> {
        Ok(Stats {
            disk_bytes: Some(self.tree.size_on_disk().map_err(fail(NAME))?),
            ..Stats::default()
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.flush()
    }
}
