//! What the parts of a running engine share.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::background::Background;
use super::cache::BlockCache;
use super::counters::Counters;
use super::filename::{FileKind, FileNumber};
use super::janitor::Disposal;
use super::key::Sequence;
use super::manifest::Manifest;
use super::options::Options;
use super::pace::Pace;
use super::poison::Poison;
use super::snapshot::Snapshots;
use super::table_cache::TableCache;
use super::throttle::Throttle;
use super::view::CurrentView;
use super::write::Writers;
use crate::fs::{FileSystem, LockGuard};
use crate::{Error, Result};

/// The engine without its threads and its lock.
///
/// # Locks, in the order they are taken
/// 1. [`Writers`]: one writer at a time; held while it writes the log, waits for room, and freezes.
/// 2. `installing` of [`Background`]: one at a time installs flushed tables.
/// 3. `manifest`: one change of the table set at a time; held while the manifest is written.
/// 4. [`Background`]: what runs and what waits; never held across I/O.
/// 5. In the view and in a memtable: one change at a time.
///
/// Readers take none of them.
pub(crate) struct Core {
    pub(crate) home: Home,
    pub(crate) tables: Arc<TableCache>,
    pub(crate) blocks: Arc<BlockCache>,

    pub(crate) view: CurrentView,
    /// The last sequence that readers see.
    pub(crate) visible: AtomicU64,
    pub(crate) snapshots: Snapshots,

    pub(crate) writers: Writers,
    pub(crate) throttle: Throttle,
    pub(crate) manifest: Mutex<Manifest>,
    pub(crate) file_numbers: FileNumbers,
    pub(crate) background: Background,

    pub(crate) poison: Poison,
    pub(crate) counters: Counters,
}

impl Core {
    pub(crate) fn visible(&self) -> Sequence {
        Sequence(self.visible.load(Ordering::Acquire))
    }

    /// Ends all writing because of `error`; hands it back.
    pub(crate) fn poisoned(&self, error: Error) -> Error {
        let error = self.poison.set(error);
        // Whoever waits for background work waits in vain now.
        self.background.changed();
        error
    }
}

/// Where the database lies, and how it is to be run.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) directory: PathBuf,
    pub(crate) options: Options,
    pub(crate) disposal: Disposal,
    /// How fast tables may be written; `None` for as fast as the disk takes them.
    pub(crate) pace: Option<Arc<Pace>>,
}

impl Home {
    /// The path of a file of the database.
    pub(crate) fn path(&self, file: FileKind) -> PathBuf {
        file.path(&self.directory)
    }

    /// Takes the lock of the database.
    pub(crate) fn lock(&self) -> Result<Box<dyn LockGuard>> {
        let lock = self.fs.lock(&self.path(FileKind::Lock))?;
        lock.ok_or_else(|| Error::Locked {
            directory: self.directory.clone(),
            holder: "this or another process has the database open".to_owned(),
        })
    }

    /// Makes the names in the directory survive power loss.
    pub(crate) fn sync_names(&self) -> Result<()> {
        self.fs.sync_directory(&self.directory)
    }
}

/// The numbers that files get: none twice.
#[derive(Debug)]
pub(crate) struct FileNumbers(AtomicU64);

impl FileNumbers {
    /// From `next` on.
    pub(crate) fn new(next: FileNumber) -> Self {
        Self(AtomicU64::new(next.0))
    }

    pub(crate) fn take(&self) -> FileNumber {
        FileNumber(self.0.fetch_add(1, Ordering::Relaxed))
    }

    /// The first that is free.
    pub(crate) fn next(&self) -> FileNumber {
        FileNumber(self.0.load(Ordering::Relaxed))
    }
}
