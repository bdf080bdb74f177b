//! Something that happens in the middle of a merge.

use std::path::Path;
use std::sync::{Arc, Mutex};

use engines::fs::sim::SimFs;
use engines::fs::{Access, Create, Entry, FileSystem, LockGuard, ReadFile, WriteFile};

/// When to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// A merge has something to copy, and is about to create its output.
    OutputCreated,
    /// A data file is about to be removed.
    DataRemoved,
}

/// A disk on which something happens just before the first call of a kind.
#[derive(Debug)]
pub(crate) struct Beside {
    disk: SimFs,
    moment: Moment,
    act: Mutex<Option<Act>>,
}

struct Act(Box<dyn FnOnce() + Send>);

impl Beside {
    pub(crate) fn new(disk: &SimFs, moment: Moment) -> Self {
        Self { disk: disk.clone(), moment, act: Mutex::default() }
    }

    /// What is done then, once.
    pub(crate) fn then(&self, act: impl FnOnce() + Send + 'static) {
        *self.act.lock().unwrap() = Some(Act(Box::new(act)));
    }

    fn comes(&self, moment: Moment) {
        if moment == self.moment
            && let Some(Act(act)) = self.act.lock().unwrap().take()
        {
            act();
        }
    }
}

impl std::fmt::Debug for Act {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Act")
    }
}

impl FileSystem for Beside {
    fn remove(&self, path: &Path) -> engines::Result<()> {
        if path.extension().is_some_and(|extension| extension == "data") {
            self.comes(Moment::DataRemoved);
        }
        self.disk.remove(path)
    }

    fn create_directory(&self, directory: &Path) -> engines::Result<()> {
        self.disk.create_directory(directory)
    }
    fn list(&self, directory: &Path) -> engines::Result<Vec<Entry>> {
        self.disk.list(directory)
    }
    fn entry(&self, path: &Path) -> engines::Result<Option<Entry>> {
        self.disk.entry(path)
    }
    fn open(&self, path: &Path, access: Access) -> engines::Result<Arc<dyn ReadFile>> {
        self.disk.open(path, access)
    }
    fn create(&self, path: &Path, create: Create) -> engines::Result<Arc<dyn WriteFile>> {
        if path.to_string_lossy().ends_with(".data.tmp") {
            self.comes(Moment::OutputCreated);
        }
        self.disk.create(path, create)
    }
    fn open_for_write(&self, path: &Path) -> engines::Result<Arc<dyn WriteFile>> {
        self.disk.open_for_write(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> engines::Result<()> {
        self.disk.rename(from, to)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> engines::Result<()> {
        self.disk.hard_link(from, to)
    }
    fn set_mode(&self, path: &Path, mode: u32) -> engines::Result<()> {
        self.disk.set_mode(path, mode)
    }
    fn sync_directory(&self, directory: &Path) -> engines::Result<()> {
        self.disk.sync_directory(directory)
    }
    fn lock(&self, path: &Path) -> engines::Result<Option<Box<dyn LockGuard>>> {
        self.disk.lock(path)
    }
}
