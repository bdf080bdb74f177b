//! An append-only log with a key directory in memory, in Basho's on-disk format.
//!
//! Every put is one append to the active file; the keydir holds every live key and where its
//! newest record lies, so that a get is one look-up in memory and at most one read. Directories
//! that Basho's Bitcask wrote open here, and ours open there.
//!
//! [`Bitcask`] is the one that writes; beside it any number of [`ReadOnlyBitcask`]s, in any process,
//! read without touching anything.
//!
//! What differs from the original: an overwrite writes no tombstone first, so no crash can lose the
//! old value before the new one is there; a checksum is checked before a record is believed; a hint
//! file reaches the disk only after the data it describes; merge outputs appear whole or not at
//! all; records expire one by one, and a clock that jumps deletes none of them; the operating
//! system's lock decides who has the directory, not a process number in a file.
//!
//! After a power failure without [`sync`](Engine::sync), writes that were not synced may be lost,
//! and, as the system writes pages in any order, a later one may be found where an earlier one is
//! lost.

mod expiry;
mod options;

mod file_stats;
mod keys;
mod read_only;

mod load;
mod merge;
mod scan;
mod set_aside;
mod worker;
mod write;

mod bulk;
mod data_file;
mod keydir;
mod parallel;
mod queue;
mod shared;
mod writer;

mod clock;
mod hint;
mod lock;
mod names;
mod record;
mod tombstone;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use crate::engine::Visitor;
use crate::fs::{FileSystem, RealFs, create_directory_durably};
use crate::registry::{Kind, Registration};
use crate::{
    Batch, Capabilities, Description, Direction, Durability, Engine, Error, KeyRange, Result, Stats,
};
use clock::Time;
use data_file::{FileSet, Usage};
use lock::{LockFile, Purpose};
use shared::Shared;
use writer::Writer;

pub use clock::{Clock, SystemClock};
pub use expiry::Expiry;
pub use file_stats::FileStats;
pub use keys::Keys;
pub use load::Damage;
pub use options::{MergePolicy, MergeWindow, Options};
pub use read_only::ReadOnlyBitcask;

const NAME: &str = "bitcask";

/// How much memory a thread keeps for reading.
const KEEP_SCRATCH_BYTES: usize = 1 << 20;

/// A Bitcask in one directory, shared by threads through `&self`. See the
/// [module](crate::bitcask) for what it is, and [`Engine`] for its calls.
///
/// # Figures
/// In [`Stats`] records that have [expired](Options::expiry) are live until a merge drops them, in
/// `live_records` as in `dead_bytes`. The details are
/// - `keydir_bytes`, `live_bytes`, `tombstone_bytes`: memory, and parts of the files;
/// - `reclaimed_bytes`: the size of files that merges removed since open;
/// - `expired_records`: keys that merges dropped since open because their records had expired;
/// - `damaged_places`, `damaged_files`: what was found at open, see [`damage`](Self::damage). A
///   damaged file is never merged, so its dead bytes stay;
/// - `set_aside_files`: see [`set_aside`](Self::set_aside);
/// - `background_error`: what went wrong last in the background.
///
/// ```
/// use engines::bitcask::{Bitcask, Options};
/// use engines::Engine;
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let directory = directory.path();
/// let store = Bitcask::open(directory, Options::default())?;
/// store.put(b"bacon", b"crisp")?;
/// assert_eq!(store.get_vec(b"bacon")?.as_deref(), Some(&b"crisp"[..]));
/// store.delete(b"bacon")?;
/// assert_eq!(store.get_vec(b"bacon")?, None);
/// # Ok::<(), engines::Error>(())
/// ```
#[derive(Debug)]
pub struct Bitcask {
    shared: Arc<Shared>,
    worker: Option<JoinHandle<()>>,
}

impl Bitcask {
    /// Opens or creates the database in `directory`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for options that cannot be meant, naming the field;
    /// [`Error::Locked`] if it is open elsewhere, [`Error::NotADatabase`] if nothing is there and
    /// [`Options::create`] is off, [`Error::ForeignDirectory`] if another engine's data is there,
    /// and what the file system reports. Damaged records are no error: see
    /// [`damage`](Self::damage).
    pub fn open(directory: impl AsRef<Path>, options: Options) -> Result<Self> {
        REGISTRATION.refuse_foreign(directory.as_ref())?;
        Self::open_in(Arc::new(RealFs), directory, options)
    }

    /// Opens or creates the database in a directory of `fs`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(
        fs: Arc<dyn FileSystem>,
        directory: impl AsRef<Path>,
        options: Options,
    ) -> Result<Self> {
        options.check()?;
        let directory = directory.as_ref().to_path_buf();
        prepare_directory(fs.as_ref(), &directory, &options)?;
        let lock = LockFile::take(&fs, &directory, Purpose::Write)?;
        LockFile::clear(&fs, &directory, Purpose::Merge)?;
        let loaded = load::load(fs.as_ref(), &directory)?;
        let writer = Writer::new(loaded.next_id, loaded.unsynced);
        let time = Time::new(options.clock.clone(), loaded.newest);
        let shared = Arc::new(Shared::new(
            fs,
            directory,
            options,
            lock,
            loaded.keydir,
            loaded.files,
            writer,
            loaded.damage,
            loaded.set_aside,
            time,
        ));
        for id in loaded.unhinted {
            shared.queue.seal(id);
        }
        shared.queue.check_merges();
        let worker = worker::start(shared.clone())?;
        Ok(Self { shared, worker: Some(worker) })
    }

    /// What was found damaged at open: these bytes are passed over, and the files that hold them
    /// are neither merged nor given hint files.
    pub fn damage(&self) -> &[Damage] {
        &self.shared.damage
    }

    /// The keys in `range` at this moment, in order; no file is read, so keys whose records have
    /// [expired](Options::expiry) are among them until a merge drops them. Nobody waits while the
    /// keydir is walked through. See [`Keys`] for the memory that it takes, and
    /// [`Prefix`](crate::Prefix) for ranges of keys that start alike.
    ///
    /// ```
    /// # use engines::bitcask::{Bitcask, Options};
    /// use engines::{Engine, Prefix};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let store = Bitcask::open(directory.path(), Options::default())?;
    /// for key in ["user/2", "user/1", "visit/1"] {
    ///     store.put(key.as_bytes(), b"")?;
    /// }
    /// let users = store.keys(Prefix::new("user/").range());
    /// assert!(users.iter().eq(["user/1", "user/2"].map(str::as_bytes)));
    /// # Ok::<(), engines::Error>(())
    /// ```
    pub fn keys(&self, range: KeyRange<'_>) -> Keys {
        Keys::take(self.shared.as_ref(), range)
    }

    /// What each data file holds, by ascending id.
    ///
    /// # Errors
    /// What the file system reports when it is asked for hint files.
    pub fn files(&self) -> Result<Vec<FileStats>> {
        let (files, active) = {
            let writer = self.shared.writer.lock();
            let files = self.shared.files.load_full();
            let active = files.iter().map(|file| file.id).find(|id| writer.is_active(*id));
            (files, active)
        };
        let fs = self.shared.fs.as_ref();
        files.iter().map(|file| FileStats::of(fs, file, active == Some(file.id))).collect()
    }

    /// Copies of what was cut off the ends of data files, by this opening or an earlier one: mostly
    /// half a record, which a crash left. Where whole pages were lost there may be more in it; nobody
    /// loads it or removes it.
    pub fn set_aside(&self) -> &[PathBuf] {
        &self.shared.set_aside
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.shared.directory
    }

    /// Ends the engine in order; says what went wrong first.
    fn shut_down(&mut self) -> Result<()> {
        let Some(worker) = self.worker.take() else { return Ok(()) };
        let shared = &self.shared;
        let sealed = shared.lock_writer().and_then(|mut writer| writer.seal(shared));
        shared.queue.stop();
        // The thread finishes the sealed files: hint files for all of them, the last included.
        if worker.join().is_err() {
            return sealed
                .and(Err(Error::Poisoned { cause: "the background thread panicked".to_owned() }));
        }
        sealed.and_then(|()| shared.check_poison())
    }
}

impl Drop for Bitcask {
    fn drop(&mut self) {
        // `close` reports; dropping cannot.
        let _ = self.shut_down();
    }
}

impl Engine for Bitcask {
    fn description(&self) -> Description {
        let options = &self.shared.options;
        let merge = &options.merge;
        Description {
            engine: NAME,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            durability: durability(options.durability).to_owned(),
            settings: vec![
                ("max_file_bytes", options.max_file_bytes.to_string()),
                ("buffer_bytes", options.buffer_bytes.to_string()),
                ("compression", "none: not in the format".to_owned()),
                ("merge.enabled", merge.enabled.to_string()),
                ("merge.trigger_dead_fraction", merge.trigger_dead_fraction.to_string()),
                ("merge.trigger_dead_bytes", merge.trigger_dead_bytes.to_string()),
                (
                    "expiry",
                    options.expiry.map_or("none".to_owned(), |expiry| format!("{expiry:?}")),
                ),
            ],
        }
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.shared.put(key, value)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.shared.delete(key)
    }

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        with_scratch(|scratch| {
            // A merge may remove a file between the two look-ups; it moved its entries before, so
            // the keydir then tells another place.
            loop {
                let Some(location) = self.shared.keydir.get(key) else { return Ok(false) };
                let files = self.shared.files.load();
                if let Some(file) = files.get(location.file) {
                    let record = file.read(location, key, scratch)?;
                    if record.timestamp < self.shared.hidden_before() {
                        return Ok(false);
                    }
                    read(record.value);
                    return Ok(true);
                }
            }
        })
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        self.shared.write_batch(batch)
    }

    fn scan(
        &self,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<()> {
        scan::Snapshot::take(self.shared.as_ref(), range).visit(direction, visit)
    }

    fn fold(&self, visit: &mut Visitor<'_>) -> Result<()> {
        scan::fold(self.shared.as_ref(), visit)
    }

    fn sync(&self) -> Result<()> {
        self.shared.sync_to(None)
    }

    fn quiesce(&self) -> Result<()> {
        self.shared.queue.wait_until_idle();
        self.shared.check_poison()
    }

    fn compact(&self) -> Result<()> {
        merge::all(&self.shared)?;
        self.quiesce()
    }

    fn stats(&self) -> Result<Stats> {
        Ok(stats(&self.shared))
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.shut_down()
    }
}

const CAPABILITIES: Capabilities = Capabilities {
    ordered_scan: true,
    scan_sorts: true,
    // Basho's format has no mark for the end of a batch: a crash may leave its first part.
    atomic_batch: false,
    snapshot_scan: true,
    persistent: true,
};

/// The registration of [`Bitcask`].
pub(crate) const REGISTRATION: Registration = Registration {
    name: NAME,
    kind: Kind::Own,
    summary: "our append-only log with a key directory in memory, in Basho's Bitcask format",
    available: || Ok(()),
    persistent: true,
    durability: |level| Some(durability(level)),
    most_key_bytes: Some(record::MAX_KEY_BYTES),
    recognizes,
    open: |directory, options| {
        Ok(Box::new(Bitcask::open_in(Arc::new(RealFs), directory, options.into())?))
    },
};

/// What the engine does at a level of durability.
fn durability(level: Durability) -> &'static str {
    match level {
        Durability::Buffered => "records gathered in memory; written when the buffer is full",
        Durability::Process => "one write call a record or batch",
        Durability::Power => "fdatasync before the call returns, shared by waiting threads",
    }
}

/// Whether `directory` holds a Bitcask.
pub fn recognizes(directory: &Path) -> bool {
    RealFs.list(directory).is_ok_and(|entries| load::recognizes(&entries))
}

/// Creates the directory if that is wanted.
fn prepare_directory(fs: &dyn FileSystem, directory: &Path, options: &Options) -> Result<()> {
    if options.create {
        return create_directory_durably(fs, directory);
    }
    let is_database = fs.entry(directory)?.is_some() && load::recognizes(&fs.list(directory)?);
    if is_database { Ok(()) } else { Err(load::missing(directory)) }
}

fn stats(shared: &Shared) -> Stats {
    let counters = &shared.counters;
    let mut stats = file_totals(&shared.files.load(), shared.keydir.memory_bytes());
    stats.live_records = Some(shared.keydir.count());
    stats.compaction_count = Some(counters.merges.load(Ordering::Relaxed));
    stats.compaction_written_bytes = Some(counters.merge_written_bytes.load(Ordering::Relaxed));
    let growth_us = shared.keydir.longest_growth_us();
    stats.details.push(("longest_keydir_growth_us".to_owned(), growth_us.to_string()));
    let reclaimed_bytes = counters.reclaimed_bytes.load(Ordering::Relaxed);
    stats.details.push(("reclaimed_bytes".to_owned(), reclaimed_bytes.to_string()));
    let expired_records = counters.expired_records.load(Ordering::Relaxed);
    stats.details.push(("expired_records".to_owned(), expired_records.to_string()));
    stats.details.push(("damaged_places".to_owned(), shared.damage.len().to_string()));
    stats.details.push(("set_aside_files".to_owned(), shared.set_aside.len().to_string()));
    let error = shared.queue.last_error().map(|error| ("background_error".to_owned(), error));
    stats.details.extend(error);
    stats
}

/// The sums over all files.
fn file_totals(files: &FileSet, keydir_bytes: u64) -> Stats {
    let sum = |figure: fn(&Usage) -> u64| files.iter().map(|file| figure(&file.usage)).sum::<u64>();
    let (length, live) = (sum(Usage::length), sum(Usage::live_bytes));
    Stats {
        live_records: Some(sum(|usage| usage.live_records.load(Ordering::Acquire))),
        disk_bytes: Some(length),
        dead_bytes: Some(length.saturating_sub(live)),
        memory_bytes: Some(keydir_bytes),
        file_count: Some(files.len() as u64),
        details: vec![
            ("keydir_bytes".to_owned(), keydir_bytes.to_string()),
            ("live_bytes".to_owned(), live.to_string()),
            ("tombstone_bytes".to_owned(), sum(Usage::tombstone_bytes).to_string()),
            // Never merged: their dead bytes stay.
            ("damaged_files".to_owned(), sum(|usage| usage.is_damaged().into()).to_string()),
        ],
        ..Stats::default()
    }
}

/// Runs `use_scratch` with memory that the thread uses again. It is taken out meanwhile, so that a
/// value's reader may itself read.
fn with_scratch<T>(use_scratch: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    thread_local! {
        static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    let mut scratch = SCRATCH.take();
    let result = use_scratch(&mut scratch);
    if scratch.capacity() <= KEEP_SCRATCH_BYTES {
        SCRATCH.set(scratch);
    }
    result
}
