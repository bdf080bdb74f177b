//! Opening a database without writing anything, beside a writer if there is one.
//!
//! No lock is taken and no file made: read-only media will do. The logs are replayed into memory.
//!
//! A writer in another process may be at work. What it writes after the open is not seen. What it
//! does during the open may take away a file that was just read of, or show a record half written:
//! then the open begins anew, up to a number of times. Tables that are open stay readable when the
//! writer removes them, so all are opened at once, up to
//! [`Options::open_tables`](super::Options::open_tables); beyond that number, one that was removed
//! meanwhile is missing when it is needed, which is an error that tells its name: open again then.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::core::Home;
use super::filename::FileKind;
use super::inventory::Inventory;
use super::janitor::Disposal;
use super::options::Options;
use super::recovery::{read_all, suggest_repair};
use super::store::{Lsm, REGISTRATION, reader};
use crate::fs::{Entry, FileSystem, RealFs};
use crate::{Error, Result};

/// How often a writer may get in the way.
const ATTEMPTS: usize = 8;

impl Lsm {
    /// Opens the database in `directory` as it is, to read only: nothing is written or removed, and
    /// no lock is taken, so a writer may have it open, then or later. Its later writes are not
    /// seen. Everything that writes is refused with [`Error::ReadOnly`].
    ///
    /// The logs are held in memory, and all tables are kept open, up to [`Options::open_tables`].
    ///
    /// # Errors
    /// As [`open`](Self::open), but for [`Error::Locked`]. With a writer that changes so much all
    /// the time that no moment can be read, the error that this caused in the end.
    pub fn open_read_only(directory: impl AsRef<Path>, options: Options) -> Result<Self> {
        REGISTRATION.refuse_foreign(directory.as_ref())?;
        Self::open_read_only_in(Arc::new(RealFs), directory, options)
    }

    /// As [`open_read_only`](Self::open_read_only), in another file system.
    ///
    /// # Errors
    /// As [`open_read_only`](Self::open_read_only).
    pub fn open_read_only_in(
        fs: Arc<dyn FileSystem>,
        directory: impl AsRef<Path>,
        options: Options,
    ) -> Result<Self> {
        let directory = directory.as_ref().to_path_buf();
        let options = Options { create: false, ..options.sanitized() };
        let mut attempt = 0;
        loop {
            attempt += 1;
            let before = listing(&*fs, &directory)?;
            let (disposal, _orders) = Disposal::new();
            let home = Home {
                fs: Arc::clone(&fs),
                directory: directory.clone(),
                options: options.clone(),
                disposal,
                pace: None,
            };
            match Self::read_moment(home) {
                // Without a writer a second look finds the same.
                Err(error) if may_pass(&error) && attempt < ATTEMPTS => {
                    if attempt > 1 && listing(&*fs, &directory)? == before {
                        return Err(suggest_repair(error));
                    }
                }
                outcome => return outcome.map_err(suggest_repair),
            }
        }
    }

    fn read_moment(home: Home) -> Result<Self> {
        let inventory = Inventory::take(&*home.fs, &home.directory)?;
        inventory.check(&home.directory, false)?;
        let (recovered, memtable) = read_all(&home, &inventory)?;
        reader(home, recovered, memtable)
    }
}

/// Whether a writer may be the cause.
fn may_pass(error: &Error) -> bool {
    match error {
        Error::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
        Error::NotADatabase { .. } => false,
        error => error.is_corruption(),
    }
}

/// The files and their lengths.
fn listing(fs: &dyn FileSystem, directory: &Path) -> Result<BTreeSet<(PathBuf, u64)>> {
    match fs.entry(directory)? {
        Some(Entry { is_directory: true, .. }) => {}
        _ => return Ok(BTreeSet::new()),
    }
    let is_ours = |entry: &Entry| entry.name().and_then(FileKind::parse).is_some();
    let entries = fs.list(directory)?.into_iter().filter(is_ours);
    Ok(entries.map(|entry| (entry.path, entry.length)).collect())
}
