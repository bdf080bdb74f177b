//! What is known of a log beside its bytes: whether it is on disk, name and all, and whether
//! anybody still needs it.

use std::io::IoSlice;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::core::Home;
use super::filename::{FileKind, FileNumber};
use crate::fs::{Create, WriteFile};
use crate::{Error, Result};

/// A log that this process made.
#[derive(Debug)]
pub(crate) struct LogFile {
    pub(crate) number: FileNumber,
    file: Arc<dyn WriteFile>,
    is_name_synced: AtomicBool,
    /// Its entries lie in tables: nothing of it need survive.
    is_retired: AtomicBool,
}

impl LogFile {
    pub(crate) fn create(home: &Home, number: FileNumber) -> Result<Arc<Self>> {
        let file = home.fs.create(&home.path(FileKind::Log(number)), Create::New)?;
        Ok(Arc::new(Self {
            number,
            file,
            is_name_synced: AtomicBool::new(false),
            is_retired: AtomicBool::new(false),
        }))
    }

    /// The log of an engine that only reads.
    pub(crate) fn unwritable(home: &Home) -> Arc<Self> {
        Arc::new(Self {
            number: FileNumber(0),
            file: Unwritable::of(home),
            is_name_synced: AtomicBool::new(false),
            is_retired: AtomicBool::new(false),
        })
    }

    pub(crate) fn file(&self) -> &Arc<dyn WriteFile> {
        &self.file
    }

    /// Makes the log's name survive power loss: a synced record in a file that is not found again
    /// is lost all the same.
    pub(crate) fn sync_name(&self, home: &Home) -> Result<()> {
        if !self.is_name_synced.load(Ordering::Acquire) {
            home.sync_names()?;
            self.is_name_synced.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Makes what was written so far survive power loss, the name included.
    pub(crate) fn sync(&self, home: &Home) -> Result<()> {
        if self.is_retired.load(Ordering::Acquire) {
            return Ok(());
        }
        self.file.sync()?;
        self.sync_name(home)
    }

    /// Gives back what was prepared behind the records, which end at `length`.
    pub(crate) fn cut_off(&self, length: u64) -> Result<()> {
        self.file.truncate(length)
    }

    pub(crate) fn retire(&self) {
        self.is_retired.store(true, Ordering::Release);
    }
}

/// In place of the files of an engine that only reads. Nothing comes to it, for writing ends before
/// that; if something did, it would be refused here.
#[derive(Debug)]
pub(crate) struct Unwritable(PathBuf);

impl Unwritable {
    pub(crate) fn of(home: &Home) -> Arc<dyn WriteFile> {
        Arc::new(Self(home.directory.clone()))
    }

    fn refuse(&self, operation: &'static str) -> Result<()> {
        Err(Error::ReadOnly { directory: self.0.clone(), operation })
    }
}

impl WriteFile for Unwritable {
    fn write_at(&self, _offset: u64, _bytes: &[u8]) -> Result<()> {
        self.refuse("write")
    }

    fn write_parts_at(&self, _offset: u64, _parts: &[IoSlice<'_>]) -> Result<()> {
        self.refuse("write")
    }

    fn reserve(&self, _offset: u64, _length: u64) {}

    fn truncate(&self, _length: u64) -> Result<()> {
        self.refuse("truncate")
    }

    fn sync(&self) -> Result<()> {
        self.refuse("sync")
    }
}
