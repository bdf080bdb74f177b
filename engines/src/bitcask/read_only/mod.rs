//! Reading a Bitcask that another process, or another part of this one, writes to.
//!
//! A [`ReadOnlyBitcask`] takes no lock and changes nothing in the directory. It sees the database as
//! it was when it was opened or last [refreshed](ReadOnlyBitcask::refresh). What the writer may do
//! meanwhile, and what follows from it:
//!
//! 1. The writer appends whole records, and behind the last one lie up to 64 KiB of filler, or a
//!    record of which only a part is written yet. So reading ends behind the last good record, and
//!    what follows it in the newest file is no damage. A record that looks damaged in front of a
//!    good one is read again before that is believed: by then it was written to its end.
//! 2. The writer cuts the filler off, and takes back an append that failed. So nothing is mapped
//!    that may still shrink: a file is read by positioned reads until a hint file with a checksum
//!    vouches for all of it, which is written after the last append. Before a refresh goes on
//!    behind the last record that it knows, it looks whether that record is still there; if not, it
//!    loads everything anew.
//! 3. A merge publishes each output before it removes an input, removes the oldest input first, and
//!    gives its outputs ids above all inputs and below all files written to later. So among all
//!    files of one moment the last record of a key, by file and offset, is its newest. A listing is
//!    not of one moment, so it is made again until two agree (see [`listing`]), and again if a file
//!    is gone when it is opened. A file once opened is readable whatever becomes of its name.
//! 4. An output that appears late has a lower id than files that were read before, and may hold a
//!    record that is deleted in one of those. So the keydir of a reader keeps tombstones. They cost
//!    as much memory as keys.
//! 5. An entry whose file is gone, and that no output replaced, was deleted, and its tombstone was
//!    merged away with it: a refresh drops it.
//! 6. Basho's Bitcask marks files that are merged and waits with their removal: marked files are
//!    passed over. It writes merge outputs in place: they grow as the active file does.
//! 7. A writer that finds no file begins with id 1 again. So a known name is not a known file: its
//!    inode is compared, which stays taken as long as the reader has the file open or mapped.
//!
//! A refresh changes everything at once: a read finds all of it or nothing. Scans and reads that
//! run keep the files that they began with.

mod follow;
mod listing;
mod refresh;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::{Mutex, RwLock};

use super::clock::{Clock, Time, Timestamp};
use super::data_file::FileSet;
use super::expiry::{self, Expiry};
use super::keydir::{Keydir, Location};
use super::scan::{self, Snapshot, Source};
use super::{Damage, FileStats, Keys, NAME, REGISTRATION, with_scratch};
use crate::engine::Visitor;
use crate::fs::{FileSystem, RealFs};
use crate::{Batch, Capabilities, Description, Direction, Engine, Error, KeyRange, Result, Stats};
use follow::Followed;

/// A Bitcask open for reading only, also beside a writer: ours or Basho's. It writes nothing, takes
/// no lock, and works on read-only media; there may be any number of them, in any process. See
/// the [module](crate::bitcask) for what a Bitcask is.
///
/// It is an [`Engine`] whose writes, and whose [`compact`](Engine::compact), are refused with
/// [`Error::ReadOnly`]. What the writer holds back in memory (at level
/// [`Buffered`](crate::Durability::Buffered)) is not seen, and a batch may be seen in part: the
/// format has no mark for its end. Records that [expire](Expiry) are found until a merge of the
/// writer's has dropped them, unless they are [hidden](Self::hide_expired) here too.
///
/// ```
/// use engines::bitcask::{Bitcask, Options, ReadOnlyBitcask};
/// use engines::{Engine, Error};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let directory = directory.path();
/// let writer = Bitcask::open(directory, Options::default())?;
/// writer.put(b"bacon", b"raw")?;
/// let reader = ReadOnlyBitcask::open(directory)?;
/// writer.put(b"bacon", b"crisp")?;
/// assert_eq!(reader.get_vec(b"bacon")?.as_deref(), Some(&b"raw"[..]));
/// reader.refresh()?;
/// assert_eq!(reader.get_vec(b"bacon")?.as_deref(), Some(&b"crisp"[..]));
/// assert!(matches!(reader.delete(b"bacon"), Err(Error::ReadOnly { .. })));
/// # Ok::<(), engines::Error>(())
/// ```
///
/// A file that a writer may still change keeps a descriptor open; a sealed one is mapped, and keeps
/// none. Memory: the keydir, as in the writer, and as much for each tombstone on disk.
#[derive(Debug)]
pub struct ReadOnlyBitcask {
    fs: Arc<dyn FileSystem>,
    directory: PathBuf,
    /// What is known of each file. One refresh at a time.
    followed: Mutex<Followed>,
    /// Tombstones included. Whoever changes the keydir and what follows holds it for writing: in
    /// memory only, never across I/O.
    keydir: RwLock<Keydir>,
    files: ArcSwap<FileSet>,
    damage: ArcSwap<Vec<Damage>>,
    /// What is hidden, and by which clock.
    expiry: Option<(Expiry, Time)>,
}

impl ReadOnlyBitcask {
    /// Opens the database in `directory`.
    ///
    /// # Errors
    /// [`Error::NotADatabase`] if nothing is there, [`Error::ForeignDirectory`] if another engine's
    /// data is there, and what the file system reports. Damaged records are no error: see
    /// [`damage`](Self::damage).
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        REGISTRATION.refuse_foreign(directory.as_ref())?;
        Self::open_in(Arc::new(RealFs), directory)
    }

    /// Opens the database in a directory of `fs`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(fs: Arc<dyn FileSystem>, directory: impl AsRef<Path>) -> Result<Self> {
        let reader = Self {
            fs,
            directory: directory.as_ref().to_path_buf(),
            followed: Mutex::default(),
            keydir: RwLock::new(Keydir::new()),
            files: ArcSwap::default(),
            damage: ArcSwap::default(),
            expiry: None,
        };
        reader.refuse_other_directories()?;
        reader.refresh()?;
        Ok(reader)
    }

    /// Hides what has expired by `clock`, as a writer does that was opened with `expiry`: the
    /// directory does not tell which that is.
    #[must_use]
    pub fn hide_expired(mut self, expiry: Expiry, clock: Arc<dyn Clock>) -> Self {
        self.expiry = Some((expiry, Time::new(clock, None)));
        self
    }

    /// Takes in what was written, deleted and merged since; says whether anything was. Reads and
    /// scans go on meanwhile; they wait only while what was read is put into the keydir. If nothing
    /// was done, it costs two listings of the directory and a short read of each file that no hint
    /// file vouches for yet.
    ///
    /// What is found is what the writer had written at some moment during the call.
    ///
    /// # Errors
    /// What the file system reports, or that files come and go faster than they can be listed. The
    /// reader goes on as it was.
    pub fn refresh(&self) -> Result<bool> {
        refresh::refresh(self)
    }

    /// Bytes that are no record, and that no writer is about to make one: they are passed over.
    pub fn damage(&self) -> Vec<Damage> {
        self.damage.load().to_vec()
    }

    /// The keys in `range`, in order, without reading a file.
    pub fn keys(&self, range: KeyRange<'_>) -> Keys {
        Keys::take(self, range)
    }

    /// What each data file holds, by ascending id. The last one counts as active unless it has a
    /// hint file.
    ///
    /// # Errors
    /// What the file system reports when it is asked for hint files.
    pub fn files(&self) -> Result<Vec<FileStats>> {
        let files = self.files.load();
        let stats = files.iter().map(|file| FileStats::of(self.fs.as_ref(), file, false));
        let mut stats = stats.collect::<Result<Vec<_>>>()?;
        if let Some(last) = stats.last_mut() {
            last.is_active = !last.has_hint;
        }
        Ok(stats)
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn refuse_other_directories(&self) -> Result<()> {
        let is_there = self.fs.entry(&self.directory)?.is_some();
        if is_there && super::load::recognizes(&self.fs.list(&self.directory)?) {
            return Ok(());
        }
        let problem = if is_there { "no Bitcask data file is there" } else { "it does not exist" };
        Err(Error::NotADatabase { directory: self.directory.clone(), problem: problem.to_owned() })
    }

    fn refuse<T>(&self, operation: &'static str) -> Result<T> {
        Err(Error::ReadOnly { directory: self.directory.clone(), operation })
    }
}

impl Source for ReadOnlyBitcask {
    fn pin(&self, mut visit: impl FnMut(&[u8], Location)) -> Arc<FileSet> {
        let (keydir, files) = {
            let keydir = self.keydir.read();
            (keydir.snapshot(), self.files.load_full())
        };
        keydir.for_each(|key, location| {
            if !location.is_tombstone() {
                visit(key, location);
            }
        });
        files
    }

    fn hidden_before(&self) -> Timestamp {
        self.expiry.as_ref().map_or(0, |(expiry, time)| expiry::hidden_before(Some(expiry), time))
    }
}

impl Engine for ReadOnlyBitcask {
    fn description(&self) -> Description {
        Description {
            engine: NAME,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            durability: "nothing is written".to_owned(),
            settings: vec![("read_only", true.to_string())],
        }
    }

    fn capabilities(&self) -> Capabilities {
        super::CAPABILITIES
    }

    fn put(&self, _key: &[u8], _value: &[u8]) -> Result<()> {
        self.refuse("put")
    }

    fn delete(&self, _key: &[u8]) -> Result<()> {
        self.refuse("delete")
    }

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let (location, files) = {
            let keydir = self.keydir.read();
            match keydir.get(key) {
                Some(location) if !location.is_tombstone() => (location, self.files.load()),
                _ => return Ok(false),
            }
        };
        let file = files.get(location.file).ok_or_else(scan::file_is_gone)?;
        with_scratch(|scratch| {
            let record = file.read(location, key, scratch)?;
            let is_there = record.timestamp >= self.hidden_before();
            if is_there {
                read(record.value);
            }
            Ok(is_there)
        })
    }

    fn write(&self, _batch: &Batch) -> Result<()> {
        self.refuse("write a batch")
    }

    fn scan(
        &self,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<()> {
        Snapshot::take(self, range).visit(direction, visit)
    }

    fn fold(&self, visit: &mut Visitor<'_>) -> Result<()> {
        scan::fold(self, visit)
    }

    /// Nothing was written, so there is nothing to do.
    fn sync(&self) -> Result<()> {
        Ok(())
    }

    /// There is no background work.
    fn quiesce(&self) -> Result<()> {
        Ok(())
    }

    fn compact(&self) -> Result<()> {
        self.refuse("compact")
    }

    fn stats(&self) -> Result<Stats> {
        let (keydir_bytes, files) = {
            let keydir = self.keydir.read();
            (keydir.memory_bytes(), self.files.load_full())
        };
        let mut stats = super::file_totals(&files, keydir_bytes);
        let damaged_places = self.damage.load().len().to_string();
        stats.details.push(("damaged_places".to_owned(), damaged_places));
        Ok(stats)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
