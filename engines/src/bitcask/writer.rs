//! The append path: the active file, its rotation, and what is not synced yet.

use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::data_file::{DataFile, Tail, Usage};
use super::names::{self, FileId};
use super::shared::{Shared, usage_of_length};
use crate::fs::{Access, Appender, Create, Filler, WriteFile};
use crate::{Durability, Error, Result};

/// After how many more bytes the written part of the active file is mapped for readers.
const MAP_STEP_BYTES: u64 = 32 << 20;

/// How many files may be sealed and not synced: each holds a file descriptor. The background thread
/// keeps it far below, unless files are tiny, or a merge takes long.
const UNSYNCED_FILES_MAX: usize = 64;

/// How much memory an encoding buffer keeps between batches.
const KEEP_BUFFER_BYTES: usize = 4 << 20;

/// The state behind the writer's lock.
#[derive(Debug)]
pub(super) struct Writer {
    /// Larger than every id that was ever seen here.
    next_id: u64,
    /// Opened by the first append.
    active: Option<Active>,
    /// The number of appends so far.
    sequence: u64,
    /// Files that are written to no more, and not synced yet.
    sealed_unsynced: Vec<(FileId, Arc<dyn WriteFile>)>,
    /// Names in the directory that are not synced yet.
    directory_unsynced: bool,
    pub(super) buffers: Buffers,
}

/// Memory that is used again from call to call.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    /// The encoded records of a batch.
    pub(super) records: Vec<u8>,
    /// The size of each record of a batch; 0 where nothing is written.
    pub(super) sizes: Vec<u32>,
}

#[derive(Debug)]
struct Active {
    data: Arc<DataFile>,
    file: Appender,
    /// Where the next record goes, buffered ones counted.
    end: u64,
    mapped_end: u64,
}

/// What a sync has to do.
#[derive(Debug)]
pub(super) struct Unsynced {
    pub(super) files: Vec<Arc<dyn WriteFile>>,
    pub(super) directory: bool,
    pub(super) sequence: u64,
}

impl Writer {
    pub(super) fn new(next_id: u64, unsynced: Vec<(FileId, Arc<dyn WriteFile>)>) -> Self {
        Self {
            next_id,
            active: None,
            sequence: 0,
            // What an earlier process left may not have reached the disk, names included.
            directory_unsynced: !unsynced.is_empty(),
            sealed_unsynced: unsynced,
            buffers: Buffers::default(),
        }
    }

    /// The file that the next append, of `size` bytes, will go to.
    pub(super) fn file_for(&self, shared: &Shared, size: u64) -> Result<FileId> {
        match &self.active {
            Some(active) if !active.is_full(shared, size) => Ok(active.data.id),
            _ => FileId::try_from(self.next_id).map_err(|_| out_of_ids()),
        }
    }

    /// Appends `parts`, which are whole records, to the active file; a full one is rotated first.
    /// Returns where they start.
    pub(super) fn append(&mut self, shared: &Shared, parts: &[&[u8]]) -> Result<(FileId, u64)> {
        let size: usize = parts.iter().map(|part| part.len()).sum();
        if self.active.as_ref().is_some_and(|active| active.is_full(shared, size as u64)) {
            self.seal(shared)?;
        }
        let mut active = match self.active.take() {
            Some(active) => active,
            None => self.open_active(shared)?,
        };
        let start = active.end;
        if let Err(error) = active.append(shared, parts, size) {
            self.keep_after_failure(shared, active);
            return Err(error);
        }
        self.sequence += 1;
        shared.queue.note_append();
        let id = active.data.id;
        self.active = Some(active);
        Ok((id, start))
    }

    /// Ends the active file, if there is one: it is read through a mapping from now on, and the
    /// background thread syncs it and writes its hint file.
    pub(super) fn seal(&mut self, shared: &Shared) -> Result<()> {
        let Some(active) = &mut self.active else { return Ok(()) };
        active.flush()?;
        // What is behind the records is told from them when the file is loaded: this alone needs
        // no success.
        let _ = active.file.finish();
        let id = active.data.id;
        if active.end == 0 {
            shared.change_files(|files| files.remove(id));
            self.active = None;
            return shared.fs.remove(&names::data(&shared.directory, id));
        }
        active.data.usage.ages.include(shared.time.now());
        let reader = shared.fs.open(&active.data.path, Access::Mapped)?;
        let sealed = Arc::new(active.data.with_reader(reader, None));
        shared.change_files(|files| files.insert(sealed.clone()));
        self.sealed_unsynced.push((id, active.file.file().clone()));
        self.active = None;
        shared.queue.seal(id);
        Ok(())
    }

    /// Sets `count` ids aside that are larger than those of all files, and smaller than those of
    /// all files that will be written to from now on.
    pub(super) fn reserve_ids(&mut self, shared: &Shared, count: u64) -> Result<Range<FileId>> {
        self.seal(shared)?;
        let first = self.next_id;
        let after = first.saturating_add(count);
        let id = |number| FileId::try_from(number).map_err(|_| out_of_ids());
        let ids = id(first)?..id(after)?;
        self.next_id = after;
        Ok(ids)
    }

    /// The append that must be synced before the last write may be acknowledged, if one must.
    pub(super) fn must_sync(&self, durability: Durability) -> Option<u64> {
        let must = match durability {
            Durability::Power => true,
            Durability::Buffered | Durability::Process => {
                self.sealed_unsynced.len() > UNSYNCED_FILES_MAX
            }
        };
        must.then_some(self.sequence)
    }

    /// Hands buffered bytes to the system, and says what must be synced for everything so far to
    /// survive power loss. The caller does sync it.
    pub(super) fn take_unsynced(&mut self) -> Result<Unsynced> {
        if let Some(active) = &mut self.active {
            // First: if it fails, nothing must have been taken.
            active.flush()?;
        }
        let mut files: Vec<_> =
            std::mem::take(&mut self.sealed_unsynced).into_iter().map(|(_, file)| file).collect();
        files.extend(self.active.as_ref().map(|active| active.file.file().clone()));
        let directory = std::mem::take(&mut self.directory_unsynced);
        Ok(Unsynced { files, directory, sequence: self.sequence })
    }

    /// What the active file holds.
    pub(super) fn active_usage(&self) -> Option<&Usage> {
        self.active.as_ref().map(|active| &*active.data.usage)
    }

    pub(super) fn is_active(&self, id: FileId) -> bool {
        self.active.as_ref().is_some_and(|active| active.data.id == id)
    }

    /// A sealed file that was not synced yet.
    pub(super) fn unsynced_file(&self, id: FileId) -> Option<Arc<dyn WriteFile>> {
        self.sealed_unsynced.iter().find(|(other, _)| *other == id).map(|(_, file)| file.clone())
    }

    /// A sealed file was synced.
    pub(super) fn mark_synced(&mut self, id: FileId) {
        self.sealed_unsynced.retain(|(other, _)| *other != id);
    }

    /// Lets go of the memory that a large batch took.
    pub(super) fn trim_buffers(&mut self) {
        if self.buffers.records.capacity() > KEEP_BUFFER_BYTES {
            self.buffers = Buffers::default();
        }
    }

    fn open_active(&mut self, shared: &Shared) -> Result<Active> {
        let id = FileId::try_from(self.next_id).map_err(|_| out_of_ids())?;
        let path = names::data(&shared.directory, id);
        shared.write_lock.set_active(&path)?;
        let file = shared.fs.create(&path, Create::New)?;
        self.next_id += 1;
        self.directory_unsynced = true;
        let reader = shared.fs.open(&path, Access::Positioned)?;
        let buffered = shared.options.durability == Durability::Buffered;
        let tail = buffered.then(|| Arc::new(Tail::default()));
        let data = Arc::new(DataFile { id, path, reader, usage: usage_of_length(0), tail });
        data.usage.ages.include(shared.time.now());
        shared.change_files(|files| files.insert(data.clone()));
        let file = Appender::new(file, 0, Filler::Ones);
        Ok(Active { data, file, end: 0, mapped_end: 0 })
    }

    /// Undoes a failed append, which may have left a part of itself. Where that fails too, the
    /// file is written to no more.
    fn keep_after_failure(&mut self, shared: &Shared, mut active: Active) {
        // A buffer that could not be flushed is whole, and is written to the same place again.
        let buffered = active.data.tail.is_some();
        if buffered || active.file.finish().is_ok() {
            self.active = Some(active);
        } else {
            let id = active.data.id;
            self.sealed_unsynced.push((id, active.file.file().clone()));
            shared.queue.seal(id);
        }
    }
}

impl Active {
    fn is_full(&self, shared: &Shared, size: u64) -> bool {
        self.end > 0 && self.end.saturating_add(size) > shared.options.max_file_bytes
    }

    fn append(&mut self, shared: &Shared, parts: &[&[u8]], size: usize) -> Result<()> {
        match self.data.tail.clone() {
            Some(tail) => self.buffer(&tail, parts, size, shared.options.buffer_bytes)?,
            None => self.write(parts)?,
        }
        self.end += size as u64;
        self.data.usage.length.store(self.end, Ordering::Release);
        self.map_written_part(shared);
        Ok(())
    }

    fn buffer(&mut self, tail: &Tail, parts: &[&[u8]], size: usize, limit: usize) -> Result<()> {
        if tail.buffer.read().bytes.len() + size > limit {
            self.flush()?;
        }
        let mut buffer = tail.buffer.write();
        if buffer.bytes.is_empty() {
            buffer.start = self.end;
        }
        for part in parts {
            buffer.bytes.extend_from_slice(part);
        }
        Ok(())
    }

    /// Hands the buffer to the system. If that fails the buffer stays, and readers find the
    /// records there; the next flush writes all of it again to the same place.
    fn flush(&mut self) -> Result<()> {
        let Some(tail) = &self.data.tail else { return Ok(()) };
        {
            // Held across the write, for reading only: readers go on, and only this thread, which
            // has the writer's lock, changes the buffer.
            let buffer = tail.buffer.read();
            if buffer.bytes.is_empty() {
                return Ok(());
            }
            self.file.append(&buffer.bytes)?;
        }
        let mut buffer = tail.buffer.write();
        buffer.start += buffer.bytes.len() as u64;
        buffer.bytes.clear();
        if buffer.bytes.capacity() > KEEP_BUFFER_BYTES {
            buffer.bytes = Vec::new();
        }
        Ok(())
    }

    fn write(&mut self, parts: &[&[u8]]) -> Result<()> {
        match parts {
            [whole] => self.file.append(whole),
            parts => {
                let mut slices = [IoSlice::new(&[]); 3];
                for (slice, part) in slices.iter_mut().zip(parts) {
                    *slice = IoSlice::new(part);
                }
                self.file.append_parts(&slices[..parts.len().min(3)])
            }
        }
    }

    /// Lets readers find what was written so far without a system call, once it is much more than
    /// they find already.
    fn map_written_part(&mut self, shared: &Shared) {
        if self.end < self.mapped_end + MAP_STEP_BYTES {
            return;
        }
        self.mapped_end = self.end;
        // Where it cannot be mapped, the old handle still reads everything.
        if let Ok(reader) = shared.fs.open(&self.data.path, Access::MappedSoFar) {
            self.data = Arc::new(self.data.with_reader(reader, self.data.tail.clone()));
            shared.change_files(|files| files.insert(self.data.clone()));
        }
    }
}

pub(super) fn out_of_ids() -> Error {
    Error::TooLarge { what: "file id", size: 1 << 32, limit: u32::MAX.into() }
}
