//! What is known of a log beside its bytes: whether it is on disk, name and all, and whether
//! anybody still needs it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::core::Home;
use super::filename::{FileKind, FileNumber};
use crate::Result;
use crate::fs::{Create, WriteFile};

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
        if self.is_retired() {
            return Ok(());
        }
        self.file.sync()?;
        self.sync_name(home)
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Acquire)
    }

    pub(crate) fn retire(&self) {
        self.is_retired.store(true, Ordering::Release);
    }
}
