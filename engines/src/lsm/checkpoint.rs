//! A second database that holds what this one held at one moment.
//!
//! 1. While writers and changes of the table set wait, the logs are handed to the system and opened
//!    for reading, and the table set is taken. That is the moment.
//! 2. The tables get second names in the target: they never change, and as long as the table set is
//!    held none is removed. The logs are copied up to the moment.
//! 3. A manifest that tells of these tables and logs is written, and CURRENT last: until then the
//!    target is no database.

use std::path::Path;
use std::sync::Arc;

use super::copy::{copy, link_or_copy};
use super::core::{Core, Home};
use super::filename::{FileKind, FileNumber};
use super::janitor::Disposal;
use super::key::Sequence;
use super::manifest::{Manifest, TableSet};
use super::store::Lsm;
use super::version::Version;
use crate::fs::{Access, ReadFile, create_directory_durably};
use crate::{Error, Result};

/// What makes up the database at one moment.
struct Moment {
    version: Arc<Version>,
    /// What tables do not hold yet, the oldest first.
    logs: Vec<Log>,
    last_sequence: Sequence,
    /// Larger than any in use.
    manifest: FileNumber,
}

struct Log {
    number: FileNumber,
    file: Arc<dyn ReadFile>,
    length: u64,
}

impl Lsm {
    /// Makes a database in `target` that holds what this one holds at a moment within the call,
    /// while reading and writing go on. Tables are not copied but linked, if `target` lies in the
    /// same file system. The new database is independent, and survives power loss.
    ///
    /// # Errors
    /// - [`Error::InvalidArgument`] if `target` exists and is not an empty directory.
    /// - [`Error::Poisoned`], [`Error::Suspended`] after a failed write: what the log holds then is
    ///   not certain.
    /// - I/O errors; what was made in `target` is removed then.
    pub fn checkpoint(&self, target: impl AsRef<Path>) -> Result<()> {
        let target = target.as_ref();
        let core = &*self.core;
        let fs = &*core.home.fs;
        refuse_taken(core, target)?;
        let moment = core.moment()?;
        create_directory_durably(fs, target)?;
        core.write_checkpoint(&moment, target).inspect_err(|_| {
            // Only what was just made is there.
            let made = fs.list(target).unwrap_or_default();
            made.iter().for_each(|entry| drop(fs.remove(&entry.path)));
        })
    }
}

fn refuse_taken(core: &Core, target: &Path) -> Result<()> {
    let fs = &*core.home.fs;
    let is_free = match fs.entry(target)? {
        None => true,
        Some(entry) => entry.is_directory && fs.list(target)?.is_empty(),
    };
    if is_free {
        return Ok(());
    }
    Err(Error::InvalidArgument(format!(
        "{} is there already: a checkpoint needs a directory of its own",
        target.display()
    )))
}

impl Core {
    fn moment(&self) -> Result<Moment> {
        let mut log = self.lock_writers();
        self.poison.check()?;
        let (active, length, last_sequence) = self.hand_over_log(&mut log)?;
        // Nobody installs a flush, and with it removes a log, as long as this is held.
        let _manifest = self.manifest.lock();
        let view = self.view.load_full();
        let mut logs = Vec::new();
        for frozen in view.frozen.iter().rev() {
            let number = frozen.log.number;
            logs.push(Log { number, file: self.open_log(number)?, length: frozen.log_bytes });
        }
        logs.push(Log { number: active, file: self.open_log(active)?, length });
        let version = Arc::clone(&view.version);
        Ok(Moment { version, logs, last_sequence, manifest: self.file_numbers.take() })
    }

    fn open_log(&self, number: FileNumber) -> Result<Arc<dyn ReadFile>> {
        self.home.fs.open(&self.home.path(FileKind::Log(number)), Access::Positioned)
    }

    fn write_checkpoint(&self, moment: &Moment, target: &Path) -> Result<()> {
        let fs = &self.home.fs;
        for (_, table) in moment.version.tables() {
            let kind = self.kind_of_table(table.info.number)?;
            link_or_copy(&**fs, &self.home.path(kind), &kind.path(target))?;
        }
        for log in &moment.logs {
            copy(&**fs, &*log.file, &FileKind::Log(log.number).path(target), log.length)?;
        }
        let (disposal, _orders) = Disposal::new();
        let home = Home {
            fs: Arc::clone(fs),
            directory: target.to_path_buf(),
            options: self.home.options.clone(),
            disposal,
            pace: None,
        };
        let oldest = moment.logs.first().map(|log| log.number).unwrap_or_default();
        let set = TableSet {
            version: &moment.version,
            log_number: oldest,
            next_file_number: FileNumber(moment.manifest.0 + 1),
            last_sequence: moment.last_sequence,
        };
        Manifest::create(&home, moment.manifest, set).map(drop)
    }

    /// Under which suffix a table lies.
    fn kind_of_table(&self, number: FileNumber) -> Result<FileKind> {
        let old = FileKind::OldTable(number);
        let is_old = self.home.fs.entry(&self.home.path(old))?.is_some();
        Ok(if is_old { old } else { FileKind::Table(number) })
    }
}
