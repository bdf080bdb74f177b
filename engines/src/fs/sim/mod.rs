//! A simulated file system that loses what was not synced.
//!
//! [`SimFs`] keeps everything in memory and records each mutating call in one global order. From
//! the recorded [`Trace`] it makes the disk as it would look after a crash just behind any of the
//! calls, under a [`CrashModel`]; the engine under test is then opened on that disk. On demand
//! calls fail ([`FaultPoint`]).
//!
//! ```
//! use std::path::Path;
//! use engines::fs::{Create, FileSystem, sim::{CrashModel, SimFs}};
//!
//! let disk = SimFs::new();
//! disk.create(Path::new("/a"), Create::New)?.write_at(0, b"bytes")?;
//! let trace = disk.trace();
//! let kept = trace.crash_at(trace.len(), CrashModel::KeepAll);
//! assert_eq!(kept.read(Path::new("/a")).unwrap(), b"bytes");
//! let lost = trace.crash_at(trace.len(), CrashModel::DropUnsynced);
//! assert_eq!(lost.read(Path::new("/a")), None);
//! # Ok::<(), engines::Error>(())
//! ```
//!
//! Names and bytes are separate, as in Unix: a name leads to a file by number, a file that lost its
//! names lives on in the handles that have it open, and syncing one says nothing of the other.
//! Calls are atomic here; what the real system does bit by bit is left to the crash models.
//! Renaming directories, or files into another directory, is refused: no engine of ours does it.

mod crash;
mod disk;
mod fault;
mod trace;

use std::collections::HashSet;
use std::io::{self, ErrorKind, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Access, Create, Entry, FileSystem, LockGuard, ReadFile, WriteFile, real};
use crate::{Error, Result};
use disk::{Disk, Node};
use fault::Faults;

pub use crash::CrashModel;
pub use disk::FileNumber;
pub use fault::{FaultKind, FaultPoint, FaultScope};
pub use trace::{Call, Image, Images, Trace};

/// The largest file that the simulation holds, in bytes: a wild offset is an error, not an
/// allocation.
const FILE_LENGTH_MAX: u64 = 1 << 30;

/// An in-memory file system with a recorded history. Clones share one disk.
#[derive(Debug, Clone, Default)]
pub struct SimFs {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    base: Disk,
    disk: Disk,
    calls: Vec<Call>,
    faults: Faults,
    locks: HashSet<PathBuf>,
}

impl SimFs {
    /// An empty disk. The root directory, and the directory that relative paths start from, exist.
    pub fn new() -> Self {
        Self::default()
    }

    /// A disk as it was found after a crash: everything on it is durable, no lock is held, and its
    /// history starts anew.
    fn from_disk(disk: Disk) -> Self {
        let state = State { base: disk.clone(), disk, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// How many mutating calls were made so far. An operation that began at mark `a` and returned
    /// by mark `b` made its calls within `a..b`, so it cannot have left anything on a disk that
    /// crashed at `a` or before, and was acknowledged on one that crashed at `b` or after.
    pub fn mark(&self) -> usize {
        self.state.lock().calls.len()
    }

    /// What was done so far.
    pub fn trace(&self) -> Trace {
        let state = self.state.lock();
        Trace::new(state.base.clone(), state.calls.clone())
    }

    /// The content of a file, past all faults; `None` if there is none.
    pub fn read(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state.lock();
        state.disk.file(path).ok().map(|number| state.disk.bytes(number).to_vec())
    }

    /// Makes calls fail from now on; adds to what was asked before.
    pub fn fail_at(&self, point: FaultPoint) {
        self.state.lock().faults.add(point);
    }

    /// Lets every call succeed again.
    pub fn clear_faults(&self) {
        self.state.lock().faults.clear();
    }

    /// How many calls have failed because of [`fail_at`](Self::fail_at).
    pub fn fault_count(&self) -> usize {
        self.state.lock().faults.struck()
    }

    /// Makes one mutating call: `plan` checks it against the disk and says what it is.
    fn change(
        &self,
        action: &'static str,
        path: &Path,
        plan: impl FnOnce(&Disk) -> io::Result<Call>,
    ) -> Result<()> {
        self.state.lock().change(plan).map_err(Error::io(action, path))
    }

    /// Makes one call that changes nothing.
    fn observe<T>(
        &self,
        action: &'static str,
        path: &Path,
        look: impl FnOnce(&Disk) -> io::Result<T>,
    ) -> Result<T> {
        let mut state = self.state.lock();
        state.faults.observe().and_then(|()| look(&state.disk)).map_err(Error::io(action, path))
    }

    fn write_file(&self, path: &Path, number: FileNumber) -> SimWriteFile {
        SimWriteFile { fs: self.clone(), path: path.into(), number }
    }
}

impl State {
    fn change(&mut self, plan: impl FnOnce(&Disk) -> io::Result<Call>) -> io::Result<()> {
        let call = plan(&self.disk)?;
        match self.faults.strike(call) {
            Ok(call) => self.record(call),
            Err((error, left_behind)) => {
                if let Some(call) = left_behind {
                    self.record(call);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn record(&mut self, call: Call) {
        self.disk.apply(&call);
        self.calls.push(call);
    }

    /// Creates the file unless it is there; returns its number.
    fn create(&mut self, path: &Path, taken: Option<Create>) -> io::Result<FileNumber> {
        let existing = match self.disk.node(path) {
            Some(_) if taken == Some(Create::New) => return Err(ErrorKind::AlreadyExists.into()),
            Some(Node::Directory) => return Err(ErrorKind::IsADirectory.into()),
            Some(Node::File(number)) => Some(number),
            None => None,
        };
        match existing {
            Some(file) => {
                if taken == Some(Create::Replace) {
                    self.change(|_| Ok(Call::Truncate { path: path.into(), file, length: 0 }))?;
                }
                Ok(file)
            }
            None => {
                self.disk.parent_exists(path)?;
                let file = self.disk.next_file();
                self.change(|_| Ok(Call::Create { path: path.into(), file }))?;
                Ok(file)
            }
        }
    }
}

impl FileSystem for SimFs {
    fn create_directory(&self, directory: &Path) -> Result<()> {
        let mut missing: Vec<&Path> = Vec::new();
        for ancestor in directory.ancestors() {
            match self.state.lock().disk.node(ancestor) {
                Some(Node::Directory) => break,
                Some(Node::File(_)) => {
                    let error = io::Error::from(ErrorKind::NotADirectory);
                    return Err(Error::io("create directory", directory)(error));
                }
                None => missing.push(ancestor),
            }
        }
        for path in missing.into_iter().rev() {
            self.change("create directory", path, |_| {
                Ok(Call::CreateDirectory { path: path.into() })
            })?;
        }
        Ok(())
    }

    fn list(&self, directory: &Path) -> Result<Vec<Entry>> {
        self.observe("list directory", directory, |disk| disk.list(directory))
    }

    fn entry(&self, path: &Path) -> Result<Option<Entry>> {
        self.observe("look at", path, |disk| Ok(disk.entry(path)))
    }

    fn open(&self, path: &Path, _access: Access) -> Result<Arc<dyn ReadFile>> {
        let number = self.observe("open", path, |disk| disk.file(path))?;
        Ok(Arc::new(SimReadFile { fs: self.clone(), path: path.into(), number }))
    }

    fn create(&self, path: &Path, create: Create) -> Result<Arc<dyn WriteFile>> {
        let number =
            self.state.lock().create(path, Some(create)).map_err(Error::io("create", path))?;
        Ok(Arc::new(self.write_file(path, number)))
    }

    fn open_for_write(&self, path: &Path) -> Result<Arc<dyn WriteFile>> {
        let number = self.observe("open for writing", path, |disk| disk.file(path))?;
        Ok(Arc::new(self.write_file(path, number)))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.change("rename", from, |disk| {
            disk.file(from)?;
            disk.parent_exists(to)?;
            if from.parent() != to.parent() {
                return Err(ErrorKind::CrossesDevices.into());
            }
            match disk.node(to) {
                Some(Node::Directory) => Err(ErrorKind::IsADirectory.into()),
                _ => Ok(Call::Rename { from: from.into(), to: to.into() }),
            }
        })
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.change("link", to, |disk| {
            disk.file(from)?;
            disk.parent_exists(to)?;
            match disk.node(to) {
                Some(_) => Err(ErrorKind::AlreadyExists.into()),
                None => Ok(Call::HardLink { from: from.into(), to: to.into() }),
            }
        })
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.change("remove", path, |disk| {
            disk.file(path)?;
            Ok(Call::Remove { path: path.into() })
        })
    }

    fn set_mode(&self, path: &Path, mode: u32) -> Result<()> {
        self.change("change the mode of", path, |disk| {
            Ok(Call::SetMode { path: path.into(), file: disk.file(path)?, mode })
        })
    }

    fn sync_directory(&self, directory: &Path) -> Result<()> {
        self.change("sync directory", directory, |disk| match disk.node(directory) {
            Some(Node::Directory) => Ok(Call::SyncDirectory { path: directory.into() }),
            Some(Node::File(_)) => Err(ErrorKind::NotADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        })
    }

    fn lock(&self, path: &Path) -> Result<Option<Box<dyn LockGuard>>> {
        let mut state = self.state.lock();
        let number = state.create(path, None).map_err(Error::io("open lock file", path))?;
        if !state.locks.insert(path.to_path_buf()) {
            return Ok(None);
        }
        Ok(Some(Box::new(SimLock(self.write_file(path, number)))))
    }
}

#[derive(Debug)]
struct SimReadFile {
    fs: SimFs,
    path: Arc<Path>,
    number: FileNumber,
}

impl ReadFile for SimReadFile {
    fn length(&self) -> Result<u64> {
        self.fs.observe("look at", &self.path, |disk| Ok(disk.bytes(self.number).len() as u64))
    }

    fn read_at<'a>(
        &'a self,
        offset: u64,
        length: usize,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]> {
        let found = self.fs.observe("read", &self.path, |disk| {
            let start = usize::try_from(offset).ok();
            let range = start.and_then(|start| Some(start..start.checked_add(length)?));
            let bytes = range.and_then(|range| disk.bytes(self.number).get(range));
            Ok(bytes.map(|bytes| {
                scratch.clear();
                scratch.extend_from_slice(bytes);
            }))
        })?;
        match found {
            Some(()) => Ok(scratch),
            None => Err(real::ends_early(&self.path, offset, length)),
        }
    }
}

#[derive(Debug)]
struct SimWriteFile {
    fs: SimFs,
    path: Arc<Path>,
    number: FileNumber,
}

impl WriteFile for SimWriteFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.write_parts_at(offset, &[IoSlice::new(bytes)])
    }

    fn write_parts_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> Result<()> {
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        if bytes.is_empty() {
            return Ok(());
        }
        self.fs.change("write", &self.path, |_| {
            let end = offset.saturating_add(bytes.len() as u64);
            in_memory(end)?;
            Ok(Call::Write {
                path: Arc::clone(&self.path),
                file: self.number,
                offset: in_memory(offset)?,
                bytes: bytes.into(),
            })
        })
    }

    fn reserve(&self, _offset: u64, _length: u64) {}

    fn truncate(&self, length: u64) -> Result<()> {
        self.fs.change("truncate", &self.path, |_| {
            let length = in_memory(length)?;
            Ok(Call::Truncate { path: Arc::clone(&self.path), file: self.number, length })
        })
    }

    fn sync(&self) -> Result<()> {
        self.fs.change("sync", &self.path, |_| {
            Ok(Call::Sync { path: Arc::clone(&self.path), file: self.number })
        })
    }
}

fn in_memory(length: u64) -> io::Result<usize> {
    if length > FILE_LENGTH_MAX {
        return Err(ErrorKind::FileTooLarge.into());
    }
    usize::try_from(length).map_err(|_| ErrorKind::FileTooLarge.into())
}

#[derive(Debug)]
struct SimLock(SimWriteFile);

impl LockGuard for SimLock {
    fn write_content(&self, content: &[u8]) -> Result<()> {
        self.0.truncate(0)?;
        self.0.write_at(0, content)
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.0.fs.state.lock().locks.remove(&*self.0.path);
    }
}

#[cfg(test)]
mod tests;
