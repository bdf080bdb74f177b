//! The narrow seam through which our own engines do all their file work.
//!
//! [`RealFs`] is the operating system. `SimFs` (feature `testing`) keeps everything in memory,
//! records every mutating call, fails on demand, and gives the disk as it would look after a crash
//! at any of those calls, without what was not synced.
//!
//! What the engines may rely on, and what a simulated crash takes away:
//! - A file's bytes survive power loss once [`WriteFile::sync`] returned.
//! - A name (created, renamed, removed, linked) survives once [`FileSystem::sync_directory`] of
//!   its directory returned; syncing the file alone does not make its name durable.
//! - Until then a crash may keep or lose each of them.

mod append;
mod map;
mod real;
#[cfg(feature = "testing")]
pub mod sim;

use std::fmt::Debug;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Result;

pub(crate) use append::{Appender, Filler};
pub use real::RealFs;

/// Everything our engines ask of a file system. Paths are used as given.
pub trait FileSystem: Debug + Send + Sync {
    /// Creates a directory and its parents; one that exists is fine.
    fn create_directory(&self, directory: &Path) -> Result<()>;

    /// What lies directly in a directory, in no particular order.
    fn list(&self, directory: &Path) -> Result<Vec<Entry>>;

    /// What lies at `path`, or `None`.
    fn entry(&self, path: &Path) -> Result<Option<Entry>>;

    /// Opens a file for reading.
    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn ReadFile>>;

    /// Creates an empty file for writing.
    ///
    /// # Errors
    /// With [`Create::New`] it is an error (`AlreadyExists`) if the name is taken.
    fn create(&self, path: &Path, create: Create) -> Result<Arc<dyn WriteFile>>;

    /// Opens an existing file for writing, its bytes as they are.
    fn open_for_write(&self, path: &Path) -> Result<Arc<dyn WriteFile>>;

    /// Gives a file another name, replacing what had it.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Gives a file a second name.
    fn hard_link(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Sets the permission bits of a file (Basho's Bitcask marks files for deletion with them).
    /// Does nothing where the system has no such bits.
    fn set_mode(&self, path: &Path, mode: u32) -> Result<()>;

    /// Makes the names in a directory survive power loss.
    fn sync_directory(&self, directory: &Path) -> Result<()>;

    /// Takes the exclusive lock that `path` stands for, creating the file if it is missing; `None`
    /// if somebody holds it, in this process or another. The lock ends with the guard, and with
    /// the process, however it dies. The file stays.
    fn lock(&self, path: &Path) -> Result<Option<Box<dyn LockGuard>>>;
}

/// A file or directory in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The full path.
    pub path: PathBuf,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// The size in bytes.
    pub length: u64,
    /// The permission bits; 0 where the system has none.
    pub mode: u32,
    /// Tells two files apart that had the same name one after the other, if the first one is still
    /// open: the inode number. 0 where the system has none.
    pub identity: u64,
}

impl Entry {
    /// The last part of the path, if it is valid UTF-8: our engines' files all are.
    pub fn name(&self) -> Option<&str> {
        self.path.file_name()?.to_str()
    }
}

/// How a file will be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// One system call a read: for files that still change.
    Positioned,
    /// Through a mapping of the whole file, without a system call, where the system can. Only for
    /// sealed files: nobody changes their length any more. A mapped file takes no descriptor.
    Mapped,
    /// Through a mapping of the file's present length, positioned reads beyond it: for files that
    /// are still appended to, and that nobody shortens below their present length.
    MappedSoFar,
}

/// What to do with a name that is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Create {
    /// Fail.
    New,
    /// Start the file anew, empty.
    Replace,
}

/// A file open for reading, by any number of threads.
pub trait ReadFile: Debug + Send + Sync {
    /// The file's length in bytes: now, or, of a file opened as [`Access::Mapped`], at any time.
    fn length(&self) -> Result<u64>;

    /// Exactly `length` bytes from `offset`: lent from the mapping, or read into `scratch`.
    ///
    /// # Errors
    /// [`Error::Corruption`](crate::Error::Corruption) if the file ends before; nothing is
    /// allocated then, so a length read from a damaged file is safe to pass.
    fn read_at<'a>(
        &'a self,
        offset: u64,
        length: usize,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]>;
}

/// A file open for writing. The caller keeps the offset: writers of one file coordinate among
/// themselves, and syncing may run beside writing.
pub trait WriteFile: Debug + Send + Sync {
    /// Writes all of `bytes` at `offset`. A failure may leave a part of them there.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Writes the parts one after the other, as one call where the system can.
    fn write_parts_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> Result<()>;

    /// Reserves disk space for `length` bytes from `offset` without changing the file's length:
    /// appends into reserved space cost about a third less. Best effort, never needed for
    /// correctness; [`truncate`](WriteFile::truncate) to the file's length gives the rest back.
    fn reserve(&self, offset: u64, length: u64);

    /// Sets the file's length.
    fn truncate(&self, length: u64) -> Result<()>;

    /// Makes the file's bytes and length survive power loss.
    fn sync(&self) -> Result<()>;
}

/// A held lock; dropping it releases the lock.
pub trait LockGuard: Debug + Send + Sync {
    /// Replaces the content of the lock file: information for people and for other programs.
    fn write_content(&self, content: &[u8]) -> Result<()>;
}

/// Creates a directory and its parents, and makes the names of those that were missing survive
/// power loss: without it everything in a new directory is lost with its name.
pub fn create_directory_durably(fs: &dyn FileSystem, directory: &Path) -> Result<()> {
    let mut missing = Vec::new();
    for path in directory.ancestors().take_while(|path| !path.as_os_str().is_empty()) {
        if fs.entry(path)?.is_some() {
            break;
        }
        missing.push(path);
    }
    fs.create_directory(directory)?;
    for parent in missing.into_iter().filter_map(Path::parent) {
        let here = parent.as_os_str().is_empty();
        fs.sync_directory(if here { Path::new(".") } else { parent })?;
    }
    Ok(())
}

/// Replaces `path` as a whole so that a crash leaves the old content or the new: writes
/// `temporary`, syncs it, renames it, and syncs the directory.
pub fn replace_file(
    fs: &dyn FileSystem,
    path: &Path,
    temporary: &Path,
    content: &[u8],
) -> Result<()> {
    let file = fs.create(temporary, Create::Replace)?;
    let written = file.write_at(0, content).and_then(|()| file.sync());
    drop(file);
    if let Err(error) = written {
        // The temporary file is ours, and the first error is the one that matters.
        let _ = fs.remove(temporary);
        return Err(error);
    }
    fs.rename(temporary, path)?;
    match path.parent() {
        Some(directory) => fs.sync_directory(directory),
        None => Ok(()),
    }
}
