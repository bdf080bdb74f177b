//! What the engine's handle, its background thread and its merges share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, MutexGuard, RwLock};

use super::clock::{Time, Timestamp};
use super::data_file::{DataFile, FileSet, Usage};
use super::expiry;
use super::keydir::{Keydir, Location};
use super::load::Damage;
use super::lock::LockFile;
use super::names::FileId;
use super::options::Options;
use super::queue::Queue;
use super::writer::Writer;
use crate::fs::FileSystem;
use crate::{Error, Result};

/// See the module. Locks are taken in the order of the fields.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) fs: Arc<dyn FileSystem>,
    pub(super) directory: PathBuf,
    pub(super) options: Options,
    pub(super) damage: Vec<Damage>,
    pub(super) set_aside: Vec<PathBuf>,
    pub(super) time: Time,

    /// One merge at a time.
    pub(super) merging: Mutex<()>,
    /// The number of appends that power loss cannot take. Held across syncing: threads that wait
    /// here find that another's sync was theirs too.
    pub(super) synced: Mutex<u64>,
    /// No file leaves `files` while somebody holds this for reading.
    pub(super) pinning: RwLock<()>,
    /// Appends and changes of the keydir are in the same order. Held across the append itself.
    pub(super) writer: Mutex<Writer>,
    pub(super) keydir: Keydir,
    pub(super) files: ArcSwap<FileSet>,

    pub(super) queue: Queue,
    pub(super) counters: Counters,
    /// Set when a sync failed: what the system did with the bytes is unknown, and a second sync
    /// may claim success without them.
    poison: OnceLock<String>,
    pub(super) write_lock: LockFile,
}

/// What was done since open.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) merges: AtomicU64,
    pub(super) merge_written_bytes: AtomicU64,
    pub(super) reclaimed_bytes: AtomicU64,
    /// Keys that left the keydir because their records had expired.
    pub(super) expired_records: AtomicU64,
}

impl Shared {
    #[expect(clippy::too_many_arguments, reason = "called once, with what opening gathered")]
    pub(super) fn new(
        fs: Arc<dyn FileSystem>,
        directory: PathBuf,
        options: Options,
        write_lock: LockFile,
        keydir: Keydir,
        files: FileSet,
        writer: Writer,
        damage: Vec<Damage>,
        set_aside: Vec<PathBuf>,
        time: Time,
    ) -> Self {
        let queue = Queue::new(options.durability, options.look_every());
        Self {
            fs,
            directory,
            options,
            damage,
            set_aside,
            time,
            merging: Mutex::new(()),
            synced: Mutex::new(0),
            pinning: RwLock::new(()),
            writer: Mutex::new(writer),
            keydir,
            files: ArcSwap::from_pointee(files),
            queue,
            counters: Counters::default(),
            poison: OnceLock::new(),
            write_lock,
        }
    }

    /// The writer, unless an earlier failure forbids to write.
    pub(super) fn lock_writer(&self) -> Result<MutexGuard<'_, Writer>> {
        let writer = self.writer.lock();
        self.check_poison()?;
        Ok(writer)
    }

    pub(super) fn check_poison(&self) -> Result<()> {
        match self.poison.get() {
            Some(cause) => Err(Error::Poisoned { cause: cause.clone() }),
            None => Ok(()),
        }
    }

    /// Forbids all further writes because of `error`, and gives it back.
    pub(super) fn poison(&self, error: Error) -> Error {
        let _ = self.poison.set(error.to_string());
        error
    }

    /// Brings a write to the level of durability that was asked for: see [`Writer::must_sync`].
    pub(super) fn acknowledge(&self, must_sync: Option<u64>) -> Result<()> {
        match must_sync {
            None => Ok(()),
            Some(sequence) => self.sync_to(Some(sequence)),
        }
    }

    /// Makes append number `sequence`, or everything appended so far, survive power loss.
    pub(super) fn sync_to(&self, sequence: Option<u64>) -> Result<()> {
        let mut synced = self.synced.lock();
        self.check_poison()?;
        if sequence.is_some_and(|sequence| sequence <= *synced) {
            return Ok(());
        }
        let work = self.lock_writer()?.take_unsynced()?;
        let done = work.files.iter().try_for_each(|file| file.sync()).and_then(|()| {
            if work.directory { self.fs.sync_directory(&self.directory) } else { Ok(()) }
        });
        done.map_err(|error| self.poison(error))?;
        *synced = work.sequence;
        Ok(())
    }

    /// Changes the set of files that reads go to.
    pub(super) fn change_files(&self, change: impl Fn(&mut FileSet)) {
        self.files.rcu(|files| {
            let mut files = FileSet::clone(files);
            change(&mut files);
            files
        });
    }

    pub(super) fn file(&self, id: FileId) -> Option<Arc<DataFile>> {
        self.files.load().get(id).cloned()
    }

    /// Records with a smaller timestamp have expired, as far as reads are concerned.
    pub(super) fn hidden_before(&self) -> Timestamp {
        expiry::hidden_before(self.options.expiry.as_ref(), &self.time)
    }

    /// Records with a smaller timestamp are to be dropped by a merge that begins now.
    pub(super) fn dropped_before(&self) -> Timestamp {
        expiry::dropped_before(self.options.expiry.as_ref(), &self.time)
    }

    /// Counts a record that is live no more. Called with the writer's lock.
    pub(super) fn bury(&self, location: Location) {
        if let Some(file) = self.files.load().get(location.file) {
            file.usage.remove_live(location.size);
            file.usage.note_death(|| self.time.now());
            if file.usage.dead_bytes() % DEAD_BYTES_CHECK < u64::from(location.size) {
                self.queue.check_merges();
            }
        }
    }

    /// Counts a merge that came to its end.
    pub(super) fn add_merge(&self) {
        self.counters.merges.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts what a merge wrote.
    pub(super) fn add_merged(&self, bytes: u64) {
        self.counters.merge_written_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts what a merge gave back.
    pub(super) fn add_reclaimed(&self, bytes: u64) {
        self.counters.reclaimed_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// After how many more dead bytes in a file the policy is asked again.
const DEAD_BYTES_CHECK: u64 = 16 << 20;

/// The usage of a file of which nothing is known but its length.
pub(super) fn usage_of_length(length: u64) -> Arc<Usage> {
    let usage = Usage::default();
    usage.length.store(length, Ordering::Release);
    Arc::new(usage)
}
