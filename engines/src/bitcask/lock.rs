//! The lock files: `bitcask.write.lock` of the writer, `bitcask.merge.lock` of whoever merges.
//!
//! ```text
//! "PID \n"                       the lock is held
//! "PID path-of-active-file\n"    and this is the file that is written to
//! ```
//! What excludes others is the operating system's lock on the file: it ends with the process,
//! however that dies. The content is for people, and for Basho's Bitcask, which knows no other
//! lock than that the file exists and names a process that lives. So the file is removed when the
//! lock is released, and a file that names a living Erlang system is respected.
//!
//! Removing a locked file is a race: another process may have opened the file before it was
//! removed and lock it after, while a third creates and locks a new one. So whoever has the lock
//! writes a mark into the file that he locked, and reads the mark back by the name. If it is not
//! there, the lock is on a file that was removed.

use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::names;
use crate::fs::{Access, FileSystem, LockGuard};
use crate::{Error, Result};

/// More than anybody writes into a lock file.
const CONTENT_BYTES_MAX: u64 = 64 << 10;
/// How often a removed lock file is tolerated before giving up.
const ATTEMPTS: usize = 100;

/// Which lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Write,
    Merge,
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Self::Write => names::WRITE_LOCK,
            Self::Merge => names::MERGE_LOCK,
        }
    }
}

/// A held lock. Dropping it removes the file and lets go.
#[derive(Debug)]
pub(super) struct LockFile {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    guard: Box<dyn LockGuard>,
}

impl LockFile {
    /// Takes a lock of `directory`.
    ///
    /// # Errors
    /// [`Error::Locked`] if somebody has it.
    pub(super) fn take(
        fs: &Arc<dyn FileSystem>,
        directory: &Path,
        purpose: Purpose,
    ) -> Result<Self> {
        let path = directory.join(purpose.name());
        for _ in 0..ATTEMPTS {
            let Some(guard) = fs.lock(&path)? else {
                return Err(locked(directory, purpose, &read(fs.as_ref(), &path)?));
            };
            let before = read(fs.as_ref(), &path)?;
            if let Some(pid) = holder(&before)
                && pid != process::id()
                && is_erlang(pid)
            {
                // The file is Basho's: it stays as it is.
                return Err(locked(directory, purpose, &before));
            }
            let mark = mark();
            guard.write_content(&mark)?;
            if read(fs.as_ref(), &path)? == mark {
                guard.write_content(&content(None))?;
                return Ok(Self { fs: fs.clone(), path, guard });
            }
        }
        Err(locked(directory, purpose, b""))
    }

    /// Removes what a process that died left of a lock.
    ///
    /// # Errors
    /// [`Error::Locked`] if somebody has it.
    pub(super) fn clear(
        fs: &Arc<dyn FileSystem>,
        directory: &Path,
        purpose: Purpose,
    ) -> Result<()> {
        match fs.entry(&directory.join(purpose.name()))? {
            Some(_) => Self::take(fs, directory, purpose).map(drop),
            None => Ok(()),
        }
    }

    /// Names the file that is written to.
    pub(super) fn set_active(&self, active: &Path) -> Result<()> {
        self.guard.write_content(&content(Some(active)))
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // Best effort: a file that stays names a process that does not hold it.
        let _ = self.fs.remove(&self.path);
    }
}

fn content(active: Option<&Path>) -> Vec<u8> {
    let active = active.map(|path| path.to_string_lossy()).unwrap_or_default();
    format!("{} {active}\n", process::id()).into_bytes()
}

/// A content that nobody else writes.
fn mark() -> Vec<u8> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!("{} (lock attempt {number})\n", process::id()).into_bytes()
}

fn read(fs: &dyn FileSystem, path: &Path) -> Result<Vec<u8>> {
    let Some(entry) = fs.entry(path)? else { return Ok(Vec::new()) };
    let length = usize::try_from(entry.length.min(CONTENT_BYTES_MAX)).unwrap_or(0);
    let mut scratch = Vec::new();
    match fs
        .open(path, Access::Positioned)
        .and_then(|file| file.read_at(0, length, &mut scratch).map(<[u8]>::to_vec))
    {
        Ok(content) => Ok(content),
        // It went away or changed meanwhile: then it says nothing.
        Err(error) if error.is_corruption() || matches!(fs.entry(path), Ok(None)) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The process named in a lock file.
fn holder(content: &[u8]) -> Option<u32> {
    std::str::from_utf8(content).ok()?.split(' ').next()?.parse().ok()
}

/// Whether `pid` is a running Erlang system. A number alone proves nothing: it may have been given
/// to another process since.
fn is_erlang(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("beam"))
}

fn locked(directory: &Path, purpose: Purpose, content: &[u8]) -> Error {
    let content = String::from_utf8_lossy(content);
    let holder = match content.trim() {
        "" => format!("{} is locked", purpose.name()),
        named => format!("{} names process {named}", purpose.name()),
    };
    Error::Locked { directory: directory.to_path_buf(), holder }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::{RealFs, sim::SimFs};

    fn file_systems(test: impl Fn(Arc<dyn FileSystem>, &Path)) {
        let directory = tempfile::tempdir().unwrap();
        test(Arc::new(RealFs), directory.path());
        test(Arc::new(SimFs::new()), Path::new("/"));
    }

    #[test]
    fn the_bytes_of_a_lock_file() {
        file_systems(|fs, directory| {
            let lock = LockFile::take(&fs, directory, Purpose::Write).unwrap();
            let pid = process::id();
            let path = directory.join("bitcask.write.lock");
            assert_eq!(read(fs.as_ref(), &path).unwrap(), format!("{pid} \n").as_bytes());
            lock.set_active(Path::new("/data/7.bitcask.data")).unwrap();
            assert_eq!(
                read(fs.as_ref(), &path).unwrap(),
                format!("{pid} /data/7.bitcask.data\n").as_bytes()
            );
        });
    }

    #[test]
    fn one_holds_it_and_its_end_leaves_nothing_behind() {
        file_systems(|fs, directory| {
            let lock = LockFile::take(&fs, directory, Purpose::Write).unwrap();
            let error = LockFile::take(&fs, directory, Purpose::Write).unwrap_err();
            assert!(error.to_string().contains(&process::id().to_string()), "{error}");
            drop(lock);
            assert!(fs.list(directory).unwrap().iter().all(|entry| entry.is_directory));
            drop(LockFile::take(&fs, directory, Purpose::Write).unwrap());
        });
    }

    #[test]
    fn what_a_dead_process_left_blocks_nobody() {
        file_systems(|fs, directory| {
            let path = directory.join("bitcask.write.lock");
            for content in [&b""[..], b"1 \n", b"4294967295 /x\n", b"nonsense", &[0xff; 100]] {
                let file = fs.create(&path, crate::fs::Create::Replace).unwrap();
                file.write_at(0, content).unwrap();
                drop(file);
                drop(LockFile::take(&fs, directory, Purpose::Write).unwrap());
            }
        });
    }

    /// What the mark is for: a lock on a file that was removed before it was locked does not count.
    #[test]
    fn many_threads_never_hold_it_together() {
        let directory = tempfile::tempdir().unwrap();
        let fs: Arc<dyn FileSystem> = Arc::new(RealFs);
        let (holders, taken) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        match LockFile::take(&fs, directory.path(), Purpose::Write) {
                            Ok(lock) => {
                                assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                                taken.fetch_add(1, Ordering::SeqCst);
                                holders.fetch_sub(1, Ordering::SeqCst);
                                drop(lock);
                            }
                            Err(Error::Locked { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
            }
        });
        assert!(taken.load(Ordering::SeqCst) > 0);
    }
}
