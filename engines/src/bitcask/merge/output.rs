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
use crate::fs::{Access, Create, WriteFile};

/// What is gathered before a write.
const WRITE_BYTES: usize = 1 << 20;
/// How far ahead disk space is reserved.
const RESERVE_BYTES: u64 = 16 << 20;

/// A data file under a temporary name. Nothing points at it yet.
#[derive(Debug)]
pub(super) struct Output<'a> {
    id: FileId,
    file: Arc<dyn WriteFile>,
    hint: Option<HintWriter<'a>>,
    written_bytes: u64,
    reserved_bytes: u64,
    pending: Vec<u8>,
    usage: Arc<Usage>,
    /// Where each record that is no tombstone was copied from, in the order of the file. 16 bytes
    /// a record are all that a merge keeps of it in memory.
    sources: Vec<Location>,
}

impl<'a> Output<'a> {
    pub(super) fn create(shared: &'a Shared, id: FileId) -> Result<Self> {
        let path = names::temporary_data(&shared.directory, id);
        Ok(Self {
            id,
            file: shared.fs.create(&path, Create::Replace)?,
            hint: Some(HintWriter::create(shared.fs.as_ref(), &shared.directory, id)?),
            written_bytes: 0,
            reserved_bytes: 0,
            pending: Vec::with_capacity(WRITE_BYTES / 4),
            usage: Arc::default(),
            sources: Vec::new(),
        })
    }

    pub(super) fn is_full(&self, next_size: u32, limit: u64) -> bool {
        self.length() > 0 && self.length() + u64::from(next_size) > limit
    }

    /// Copies a record, timestamp and all.
    pub(super) fn copy(
        &mut self,
        from: Location,
        header: Header,
        record: &Record<'_>,
    ) -> Result<()> {
        let is_tombstone = record.is_tombstone();
        if let Some(hint) = &mut self.hint {
            hint.add(
                header,
                self.written_bytes + self.pending.len() as u64,
                record.key,
                is_tombstone,
            )?;
        }
        self.pending.extend_from_slice(&header.to_bytes());
        self.pending.extend_from_slice(record.key);
        self.pending.extend_from_slice(record.value);
        if is_tombstone {
            self.usage.add_tombstone(from.size);
        } else {
            self.sources.push(from);
        }
        if self.pending.len() >= WRITE_BYTES { self.write_pending() } else { Ok(()) }
    }

    /// Syncs data and hint, gives both their names, and opens the file for readers.
    pub(super) fn make_durable(&mut self, shared: &Shared) -> Result<Arc<DataFile>> {
        self.write_pending()?;
        // Gives back what was reserved; that alone needs no success.
        let _ = self.file.truncate(self.written_bytes);
        self.file.sync()?;
        if let Some(hint) = self.hint.take() {
            hint.finish()?;
        }
        let path = names::data(&shared.directory, self.id);
        shared.fs.rename(&names::temporary_data(&shared.directory, self.id), &path)?;
        shared.fs.sync_directory(&shared.directory)?;
        let reader = shared.fs.open(&path, Access::Mapped)?;
        let usage = self.usage.clone();
        usage.length.store(self.written_bytes, Ordering::Release);
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
        self.written_bytes + self.pending.len() as u64
    }

    fn write_pending(&mut self) -> Result<()> {
        let end = self.length();
        if end > self.reserved_bytes {
            self.reserved_bytes = end + RESERVE_BYTES;
            self.file.reserve(self.written_bytes, self.reserved_bytes - self.written_bytes);
        }
        self.file.write_at(self.written_bytes, &self.pending)?;
        self.written_bytes = end;
        self.pending.clear();
        Ok(())
    }
}
