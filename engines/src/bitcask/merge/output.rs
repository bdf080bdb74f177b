//! A file that a merge writes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::super::hint::HintWriter;
use crate::Result;
use crate::bitcask::data_file::{DataFile, Usage};
use crate::bitcask::keydir::Location;
use crate::bitcask::names::{self, FileId};
use crate::bitcask::record::{Header, Record};
use crate::bitcask::shared::Shared;
use crate::bitcask::tombstone;
use crate::fs::{Access, Appender, Create, Filler};

/// What is gathered before a write.
const WRITE_BYTES: usize = 1 << 20;

/// A data file under a temporary name. Nothing points at it yet.
#[derive(Debug)]
pub(super) struct Output<'a> {
    id: FileId,
    file: Appender,
    hint: Option<HintWriter<'a>>,
    pending: Vec<u8>,
    /// Of what was copied so far; `length` is set at the end.
    usage: Arc<Usage>,
    /// Where each record comes from, in the order of the file. 16 bytes a record are all that a
    /// merge keeps of it in memory.
    sources: Vec<Location>,
}

impl<'a> Output<'a> {
    pub(super) fn create(shared: &'a Shared, id: FileId) -> Result<Self> {
        let path = names::temporary_data(&shared.directory, id);
        Ok(Self {
            id,
            file: Appender::new(shared.fs.create(&path, Create::Replace)?, 0, Filler::Ones),
            hint: Some(HintWriter::create(shared.fs.as_ref(), &shared.directory, id)?),
            pending: Vec::with_capacity(WRITE_BYTES / 4),
            usage: Arc::default(),
            sources: Vec::new(),
        })
    }

    pub(super) fn is_full(&self, next_size: u32, limit: u64) -> bool {
        self.length() > 0 && self.length() + u64::from(next_size) > limit
    }

    pub(super) fn has_tombstones(&self) -> bool {
        self.usage.tombstone_bytes() > 0
    }

    /// Copies a record, timestamp and all. A tombstone becomes one that our own and Basho's merges
    /// keep for as long as it is needed.
    pub(super) fn copy(
        &mut self,
        from: Location,
        header: Header,
        record: &Record<'_>,
    ) -> Result<()> {
        if record.is_tombstone() && !tombstone::is_v1(record.value) {
            return self.delete(from, record);
        }
        self.add(from, header, record)
    }

    /// Writes a tombstone in place of a record.
    pub(super) fn delete(&mut self, from: Location, record: &Record<'_>) -> Result<()> {
        let value = tombstone::v1(from.file);
        let header = Header::new(record.timestamp, record.key, &value)?;
        self.add(from, header, &Record { value: &value, ..*record })
    }

    fn add(&mut self, from: Location, header: Header, record: &Record<'_>) -> Result<()> {
        let (offset, is_tombstone) = (self.length(), record.is_tombstone());
        if let Some(hint) = &mut self.hint {
            hint.add(header, offset, record.key, is_tombstone)?;
        }
        for part in [&header.to_bytes(), record.key, record.value] {
            self.pending.extend_from_slice(part);
        }
        if is_tombstone {
            self.usage.add_tombstone(u32::try_from(header.record_bytes()).unwrap_or(u32::MAX));
            self.usage.note_death(|| record.timestamp);
        } else {
            self.usage.ages.include(record.timestamp);
        }
        self.sources.push(from);
        if self.pending.len() >= WRITE_BYTES { self.write_pending() } else { Ok(()) }
    }

    /// Syncs data and hint, gives both their names, and opens the file for readers.
    pub(super) fn make_durable(&mut self, shared: &Shared) -> Result<Arc<DataFile>> {
        self.write_pending()?;
        self.file.finish()?;
        self.file.file().sync()?;
        if let Some(hint) = self.hint.take() {
            hint.finish()?;
        }
        let path = names::data(&shared.directory, self.id);
        shared.fs.rename(&names::temporary_data(&shared.directory, self.id), &path)?;
        shared.fs.sync_directory(&shared.directory)?;
        let reader = shared.fs.open(&path, Access::Mapped)?;
        let usage = self.usage.clone();
        usage.length.store(self.length(), Ordering::Release);
        Ok(Arc::new(DataFile { id: self.id, path, reader, usage, tail: None }))
    }

    pub(super) fn into_sources(self) -> Vec<Location> {
        self.sources
    }

    /// Takes back what was written. What cannot be removed is harmless: the temporary names are
    /// cleared away by the next open, and a copy holds nothing that its input does not.
    pub(super) fn abandon(self, shared: &Shared) {
        if let Some(hint) = self.hint {
            hint.abandon();
        }
        for path in [
            names::temporary_data(&shared.directory, self.id),
            names::data(&shared.directory, self.id),
            names::hint(&shared.directory, self.id),
        ] {
            let _ = shared.fs.remove(&path);
        }
    }

    fn length(&self) -> u64 {
        self.file.end() + self.pending.len() as u64
    }

    fn write_pending(&mut self) -> Result<()> {
        self.file.append(&self.pending)?;
        self.pending.clear();
        Ok(())
    }
}
