//! The engine as its users see it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use super::background::{Background, Workers};
use super::cache::BlockCache;
use super::core::{Core, Home};
use super::counters::Counters;
use super::inventory::Inventory;
use super::janitor::{Disposal, Janitor, Order};
use super::log_file::LogFile;
use super::manifest::{Manifest, TableSet};
use super::memtable::Memtable;
use super::options::Options;
use super::pace::Pace;
use super::poison::Poison;
use super::reader::Reader;
use super::recovery::{Recovered, recover, suggest_repair};
use super::snapshot::{Snapshot, Snapshots};
use super::table_cache::TableCache;
use super::throttle::Throttle;
use super::view::{CurrentView, View};
use super::write::Writers;
use crate::engine::Visitor;
use crate::fs::{Access, FileSystem, LockGuard, RealFs, create_directory_durably};
use crate::registry::{Kind, Registration};
use crate::{
    Batch, Capabilities, Description, Direction, Durability, Engine, KeyRange, Result, Stats,
};

/// How the registry knows the engine.
pub const REGISTRATION: Registration = Registration {
    name: "lsm",
    kind: Kind::Own,
    summary: "log-structured merge tree in LevelDB's on-disk format",
    available: || Ok(()),
    persistent: true,
    durability: |level| Some(durability(level)),
    most_key_bytes: None,
    recognizes: Lsm::recognizes,
    open: |directory, options| {
        Ok(Box::new(Lsm::open_in(Arc::new(RealFs), directory, Options::from(options))?))
    },
};

/// What the engine does for a level.
fn durability(level: Durability) -> &'static str {
    match level {
        Durability::Buffered => "the log is written every 64 KiB, at sync and at close",
        Durability::Process => "each group of writes is written to the log, not synced",
        Durability::Power => "each group of writes is written to the log and fdatasynced",
    }
}

/// A database in LevelDB's format.
///
/// ```
/// use engines::{Engine, lsm::{Lsm, Options}};
///
/// # fn main() -> engines::Result<()> {
/// # let directory = std::env::temp_dir().join(format!("lsm-doc-{}", std::process::id()));
/// let store = Lsm::open(&directory, Options::default())?;
/// store.put(b"key", b"value")?;
/// assert_eq!(store.get_vec(b"key")?.as_deref(), Some(&b"value"[..]));
/// # drop(store);
/// # std::fs::remove_dir_all(&directory).unwrap();
/// # Ok(())
/// # }
/// ```
///
/// Dropping it closes it. What it does not do as LevelDB: it starts a new log and a new manifest at
/// every open, and writes no `LOG` file for people.
pub struct Lsm {
    pub(super) core: Arc<Core>,
    /// Gone once it is closed.
    running: Option<Running>,
    recovery: Vec<(String, String)>,
}

/// What ends with the engine, in this order.
struct Running {
    workers: Workers,
    janitor: Janitor,
    lock: Box<dyn LockGuard>,
}

impl Lsm {
    /// Opens the database in `directory`, or creates it.
    ///
    /// # Errors
    /// - [`Error::InvalidArgument`](crate::Error::InvalidArgument) for options that no table can be
    ///   made with.
    /// - [`Error::NotADatabase`](crate::Error::NotADatabase) if there is none and creating is off,
    ///   or if CURRENT is missing while tables, logs or manifests are there.
    /// - [`Error::ForeignDirectory`](crate::Error::ForeignDirectory) if another engine's data is
    ///   there.
    /// - [`Error::ComparatorMismatch`](crate::Error::ComparatorMismatch) if its keys are in another
    ///   order than bytewise.
    /// - [`Error::Locked`](crate::Error::Locked) if it is open already.
    /// - [`Error::Corruption`](crate::Error::Corruption), which repairing the directory mends as
    ///   far as it can be mended (see [`repair`](super::repair())), and I/O errors; nothing is
    ///   removed then.
    pub fn open(directory: impl AsRef<Path>, options: Options) -> Result<Self> {
        REGISTRATION.refuse_foreign(directory.as_ref())?;
        Self::open_in(Arc::new(RealFs), directory, options)
    }

    /// As [`open`](Self::open), in another file system.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(
        fs: Arc<dyn FileSystem>,
        directory: impl AsRef<Path>,
        options: Options,
    ) -> Result<Self> {
        options.check()?;
        let (disposal, orders) = Disposal::new();
        let directory = directory.as_ref().to_path_buf();
        let mut home = Home { fs, directory, options: options.sanitized(), disposal, pace: None };
        let (lock, inventory) = lock(&home)?;
        let recovered = recover(&home, &inventory).map_err(suggest_repair)?;
        // Opening itself goes as fast as it can.
        home.pace = Pace::new(home.options.background_bytes_per_second);
        let recovery = recovered.describe();
        let core = Arc::new(go_on_from(recovered, home, &inventory)?);
        let running = start(&core, orders, lock)?;
        Ok(Self { core, running: Some(running), recovery })
    }

    /// A moment to read at.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.core.snapshots.take(|| self.core.visible())
    }

    /// Reads at the present, many times: one key or many, or walking.
    #[must_use]
    pub fn reader(&self) -> Reader<'_> {
        Reader::new(&self.core, None)
    }

    /// Reads at a moment, many times.
    #[must_use]
    pub fn reader_at(&self, snapshot: &Snapshot) -> Reader<'_> {
        Reader::new(&self.core, Some(snapshot.sequence))
    }

    /// As [`Engine::get`], at a moment.
    ///
    /// # Errors
    /// As [`Engine::get`].
    pub fn get_at(
        &self,
        snapshot: &Snapshot,
        key: &[u8],
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<bool> {
        self.reader_at(snapshot).get(key, read)
    }

    /// As [`Engine::scan`], at a moment.
    ///
    /// # Errors
    /// As [`Engine::scan`].
    pub fn scan_at(
        &self,
        snapshot: &Snapshot,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<()> {
        self.core.scan(range, direction, Some(snapshot.sequence), visit)
    }

    /// Whether `directory` holds a database that LevelDB or this engine made.
    #[must_use]
    pub fn recognizes(directory: &Path) -> bool {
        Inventory::take(&RealFs, directory).is_ok_and(|inventory| inventory.is_ours())
    }

    /// Has the active memtable written to level 0, and waits for that.
    ///
    /// # Errors
    /// [`Error::Poisoned`](crate::Error::Poisoned) if it fails, or anything did before.
    pub fn flush(&self) -> Result<()> {
        self.core.freeze()?;
        self.core.background.wait_for_flushes(&self.core)
    }

    fn shut_down(&mut self) -> Result<()> {
        let Some(Running { workers, janitor, lock }) = self.running.take() else { return Ok(()) };
        drop(workers);
        let finished = self.core.finish_log();
        janitor.stop();
        drop(lock);
        finished
    }
}

impl Drop for Lsm {
    fn drop(&mut self) {
        // There is nobody to tell; `close` tells.
        let _ = self.shut_down();
    }
}

/// Takes the lock before anything is written, and the inventory under it.
fn lock(home: &Home) -> Result<(Box<dyn LockGuard>, Inventory)> {
    let (fs, directory) = (&*home.fs, &home.directory);
    // What is to be refused is refused before even a lock file is made.
    Inventory::take(fs, directory)?.check(directory, home.options.create)?;
    create_directory_durably(fs, directory)?;
    let lock = home.lock()?;
    let inventory = Inventory::take(fs, directory)?;
    inventory.check(directory, home.options.create)?;
    Ok((lock, inventory))
}

/// Makes the files that writing goes on in, and has those removed that are superfluous then.
fn go_on_from(recovered: Recovered, home: Home, inventory: &Inventory) -> Result<Core> {
    let Recovered { version, last_sequence, file_numbers, .. } = recovered;
    let log = LogFile::create(&home, file_numbers.take())?;
    let manifest_number = file_numbers.take();
    let set = TableSet {
        version: &version,
        log_number: log.number,
        next_file_number: file_numbers.next(),
        last_sequence,
    };
    let manifest = Manifest::create(&home, manifest_number, set)?;
    let superfluous = inventory.superfluous(&version, log.number);
    superfluous.into_iter().for_each(|kind| home.disposal.file(kind));
    let parts = Parts { log, manifest, poison: Poison::default(), memtable: Memtable::new() };
    let recovered = Recovered { version, file_numbers, ..recovered };
    Ok(core(recovered, home, parts))
}

/// The engine for reading only what was found, with `memtable` over its tables.
pub(super) fn reader(home: Home, recovered: Recovered, memtable: Memtable) -> Result<Lsm> {
    let recovery = recovered.describe();
    let parts = Parts {
        log: LogFile::unwritable(&home),
        manifest: Manifest::unwritable(&home),
        poison: Poison::read_only(home.directory.clone()),
        memtable,
    };
    let core = core(recovered, home, parts);
    let version = Arc::clone(&core.view.load().version);
    let tables = version.tables().map(|(_, table)| (table.info.number, table.info.size));
    core.tables.pin(tables.take(core.home.options.open_tables))?;
    Ok(Lsm { core: Arc::new(core), running: None, recovery })
}

/// What differs between an engine that writes and one that only reads.
struct Parts {
    log: Arc<LogFile>,
    manifest: Manifest,
    poison: Poison,
    /// The active one.
    memtable: Memtable,
}

fn core(recovered: Recovered, home: Home, parts: Parts) -> Core {
    let Recovered { version, last_sequence, file_numbers, .. } = recovered;
    let blocks = Arc::new(BlockCache::new(home.options.block_cache_bytes as u64));
    let tables = Arc::new(TableCache::new(
        Arc::clone(&home.fs),
        home.directory.clone(),
        home.options.open_tables,
        Access::Mapped,
        Some(Arc::clone(&blocks)),
        true,
    ));
    let view =
        View { active: Arc::new(parts.memtable), frozen: Vec::new(), version: Arc::new(version) };
    Core {
        writers: Writers::new(&home.options, parts.log, last_sequence),
        throttle: Throttle::default(),
        home,
        tables,
        blocks,
        view: CurrentView::new(view),
        visible: AtomicU64::new(last_sequence.0),
        snapshots: Snapshots::default(),
        manifest: Mutex::new(parts.manifest),
        file_numbers,
        background: Background::default(),
        poison: parts.poison,
        counters: Counters::default(),
    }
}

fn start(
    core: &Arc<Core>,
    orders: std::sync::mpsc::Receiver<Order>,
    lock: Box<dyn LockGuard>,
) -> Result<Running> {
    let home = &core.home;
    let janitor = Janitor::start(
        Arc::clone(&home.fs),
        home.directory.clone(),
        Arc::clone(&core.tables),
        home.disposal.clone(),
        orders,
    )?;
    let workers = Workers::start(core)?;
    Ok(Running { workers, janitor, lock })
}

impl Engine for Lsm {
    fn description(&self) -> Description {
        let options = &self.core.home.options;
        Description {
            engine: "lsm",
            version: env!("CARGO_PKG_VERSION").to_owned(),
            durability: durability(options.durability).to_owned(),
            settings: options.settings(),
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
        self.core.put(key, value)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.core.delete(key)
    }

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.core.get(key, read)
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        self.core.write(batch)
    }

    fn scan(
        &self,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<()> {
        self.core.scan(range, direction, None, visit)
    }

    fn sync(&self) -> Result<()> {
        self.core.sync()
    }

    fn quiesce(&self) -> Result<()> {
        if self.running.is_none() {
            // It was opened for reading only.
            return Ok(());
        }
        self.core.background.wait_until_idle(&self.core)?;
        if let Some(running) = &self.running {
            running.janitor.wait();
        }
        Ok(())
    }

    /// Merges everything into one level: no overwritten or deleted entry remains, but for those
    /// that snapshots see.
    fn compact(&self) -> Result<()> {
        self.flush()?;
        self.core.compact_all()?;
        self.quiesce()
    }

    fn stats(&self) -> Result<Stats> {
        let home = &self.core.home;
        let disk_bytes = Inventory::take(&*home.fs, &home.directory)?.total_bytes();
        Ok(Stats { disk_bytes: Some(disk_bytes), ..self.core.stats(&self.recovery) })
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.shut_down()
    }
}

impl Core {
    fn stats(&self, recovery: &[(String, String)]) -> Stats {
        let view = self.view.load();
        let counters = &self.counters;
        let count = |value: &AtomicU64| value.load(Relaxed);
        let mut details = recovery.to_vec();
        details.push(("background_error".to_owned(), self.poison.cause().unwrap_or_default()));
        let mut tell = |name: &str, value: u64| details.push((name.to_owned(), value.to_string()));
        tell("flushes", count(&counters.flushes.count));
        tell("flush_written_bytes", count(&counters.flushes.written_bytes));
        tell("flush_busy_us", count(&counters.flushes.busy_us));
        tell("compaction_read_bytes", count(&counters.compactions.read_bytes));
        tell("compaction_busy_us", count(&counters.compactions.busy_us));
        tell("moved_tables", count(&counters.moved_tables));
        tell("stalled_us", counters.stalled_us());
        tell("open_tables", self.tables.open_count() as u64);
        tell("open_table_bytes", self.tables.memory_bytes());
        tell("cached_block_bytes", self.blocks.used_bytes());
        tell("memtable_bytes", self.memtable_bytes());
        for level in self.level_stats() {
            for (what, value) in level.figures() {
                tell(&format!("level{}_{what}", level.level), value);
            }
        }
        if let Some(amplification) = counters.write_amplification() {
            details.push(("write_amplification".to_owned(), format!("{amplification:.2}")));
        }
        Stats {
            memory_bytes: Some(self.memory_bytes()),
            file_count: Some(view.version.tables().count() as u64 + 1 + view.frozen.len() as u64),
            compaction_count: Some(count(&counters.compactions.count)),
            compaction_written_bytes: Some(
                count(&counters.flushes.written_bytes) + count(&counters.compactions.written_bytes),
            ),
            longest_stall_us: Some(counters.longest_stall_us()),
            details,
            ..Stats::default()
        }
    }
}
