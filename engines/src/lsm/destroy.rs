//! Removing a database.

use std::path::Path;
use std::sync::Arc;

use super::core::Home;
use super::filename::FileKind;
use super::inventory::Inventory;
use super::janitor::Disposal;
use super::options::Options;
use super::store::REGISTRATION;
use crate::Result;
use crate::fs::{FileSystem, RealFs};

/// Removes the database in `directory`: the files that are surely its own, under its lock. All
/// other files stay, what a repair has set aside too, and so does the directory. What is not there
/// need not be removed: that is no error.
///
/// CURRENT goes first, so that after a crash half of a database is not taken for a whole one.
///
/// # Errors
/// - [`Error::ForeignDirectory`](crate::Error::ForeignDirectory) if another engine's data is there.
/// - [`Error::Locked`](crate::Error::Locked) if it is open.
/// - I/O errors; some of the files may be removed then.
pub fn destroy(directory: impl AsRef<Path>) -> Result<()> {
    REGISTRATION.refuse_foreign(directory.as_ref())?;
    destroy_in(Arc::new(RealFs), directory)
}

/// As [`destroy`], in another file system.
///
/// # Errors
/// As [`destroy`].
pub fn destroy_in(fs: Arc<dyn FileSystem>, directory: impl AsRef<Path>) -> Result<()> {
    let directory = directory.as_ref().to_path_buf();
    let before = Inventory::take(&*fs, &directory)?;
    before.check_engine(&directory)?;
    if before.kinds().next().is_none() {
        return Ok(());
    }
    let (disposal, _orders) = Disposal::new();
    let home = Home { fs, directory, options: Options::default(), disposal, pace: None };
    let lock = home.lock()?;
    let inventory = Inventory::take(&*home.fs, &home.directory)?;
    let remove = |kind: FileKind| home.fs.remove(&home.path(kind));
    if inventory.has_current() {
        remove(FileKind::Current)?;
        home.sync_names()?;
    }
    let is_left = |kind: &FileKind| !matches!(kind, FileKind::Current | FileKind::Lock);
    inventory.kinds().filter(is_left).try_for_each(remove)?;
    drop(lock);
    remove(FileKind::Lock)?;
    home.sync_names()
}
