//! Puts, deletions and batches: records appended, then the keydir changed, both under the writer's
//! lock, so that memory and disk agree on the order.

use std::collections::HashMap;

use super::keydir::Location;
use super::names::FileId;
use super::record::Header;
use super::shared::Shared;
use super::tombstone;
use super::writer::{Buffers, Writer};
use crate::{Batch, Operation, Result};

/// Records up to this size are put together in memory and written as one piece; of larger ones the
/// parts are written from where they are.
const GATHER_BYTES: u64 = 32 << 10;

impl Shared {
    pub(super) fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        tombstone::check_value(value)?;
        // The checksum is computed before the lock is taken.
        let header = Header::new(self.time.now(), key, value)?;
        let mut writer = self.lock_writer()?;
        let location = self.append(&mut writer, header, key, value)?;
        self.point_at(&writer, key, location)?;
        let must_sync = writer.must_sync(self.options.durability);
        drop(writer);
        self.acknowledge(must_sync)
    }

    pub(super) fn delete(&self, key: &[u8]) -> Result<()> {
        let mut writer = self.lock_writer()?;
        if self.keydir.get(key).is_some() {
            let size = Header::without_crc(0, key, &tombstone::v1(0))?.record_bytes();
            let value = tombstone::v1(writer.file_for(self, size)?);
            let header = Header::new(self.time.now(), key, &value)?;
            let tombstone = self.append(&mut writer, header, key, &value)?;
            self.forget(&writer, key, tombstone);
        }
        // If the key was not there, its deletion by another thread may still have to be synced.
        let must_sync = writer.must_sync(self.options.durability);
        drop(writer);
        self.acknowledge(must_sync)
    }

    pub(super) fn write_batch(&self, batch: &Batch) -> Result<()> {
        let at_most_bytes = check_batch(batch)?;
        let mut writer = self.lock_writer()?;
        let mut buffers = std::mem::take(&mut writer.buffers);
        let encoded = self.encode_for_its_file(batch, at_most_bytes, &writer, &mut buffers);
        let written = encoded.and_then(|()| {
            if buffers.records.is_empty() {
                return Ok(());
            }
            let (file, offset) = writer.append(self, &[&buffers.records])?;
            self.apply(&writer, batch, file, offset, &buffers.sizes)
        });
        writer.buffers = buffers;
        writer.trim_buffers();
        written?;
        let must_sync = writer.must_sync(self.options.durability);
        drop(writer);
        self.acknowledge(must_sync)
    }

    /// Appends one record.
    fn append(
        &self,
        writer: &mut Writer,
        header: Header,
        key: &[u8],
        value: &[u8],
    ) -> Result<Location> {
        let head = header.to_bytes();
        let (file, offset) = if header.record_bytes() > GATHER_BYTES {
            writer.append(self, &[&head, key, value])?
        } else {
            let mut record = std::mem::take(&mut writer.buffers.records);
            record.clear();
            for part in [&head, key, value] {
                record.extend_from_slice(part);
            }
            let appended = writer.append(self, &[&record]);
            writer.buffers.records = record;
            appended?
        };
        Ok(Location { file, offset, size: record_size(header) })
    }

    /// Encodes a batch with tombstones that name the file it will be written to. Which one that is
    /// may depend on the size, and the size on which keys are there to be deleted; but not on the
    /// file, so that the second attempt is right.
    fn encode_for_its_file(
        &self,
        batch: &Batch,
        at_most_bytes: u64,
        writer: &Writer,
        buffers: &mut Buffers,
    ) -> Result<()> {
        let supposed = writer.file_for(self, at_most_bytes)?;
        self.encode(batch, supposed, buffers)?;
        let file = writer.file_for(self, buffers.records.len() as u64)?;
        if file == supposed { Ok(()) } else { self.encode(batch, file, buffers) }
    }

    /// Puts the records of a batch one after the other. The deletion of a key that is not there
    /// gets none.
    fn encode(&self, batch: &Batch, file: FileId, buffers: &mut Buffers) -> Result<()> {
        let timestamp = self.time.now();
        let tombstone = tombstone::v1(file);
        let mut touched = Touched::default();
        buffers.records.clear();
        buffers.sizes.clear();
        for (index, operation) in batch.iter().enumerate() {
            let key = operation.key();
            let value = match operation {
                Operation::Put { value, .. } => {
                    touched.put(key);
                    value
                }
                Operation::Delete { .. } => {
                    let is_there = touched.delete(batch, index, key);
                    if !is_there.unwrap_or_else(|| self.keydir.get(key).is_some()) {
                        buffers.sizes.push(0);
                        continue;
                    }
                    &tombstone[..]
                }
            };
            let header = Header::new(timestamp, key, value)?;
            for part in [&header.to_bytes(), key, value] {
                buffers.records.extend_from_slice(part);
            }
            buffers.sizes.push(record_size(header));
        }
        Ok(())
    }

    /// Points the keydir at the records of a batch, which start at `offset`.
    fn apply(
        &self,
        writer: &Writer,
        batch: &Batch,
        file: FileId,
        mut offset: u64,
        sizes: &[u32],
    ) -> Result<()> {
        for (operation, &size) in batch.iter().zip(sizes) {
            let location = Location { file, offset, size };
            match operation {
                Operation::Put { key, .. } => self.point_at(writer, key, location)?,
                Operation::Delete { key } if size > 0 => self.forget(writer, key, location),
                Operation::Delete { .. } => {}
            }
            offset += u64::from(size);
        }
        Ok(())
    }

    /// The record at `location`, in the active file, is the newest of `key`.
    fn point_at(&self, writer: &Writer, key: &[u8], location: Location) -> Result<()> {
        let old = self.keydir.insert(key, location)?;
        if let Some(usage) = writer.active_usage() {
            usage.add_live(location.size);
        }
        if let Some(old) = old {
            self.bury(old);
        }
        Ok(())
    }

    /// The record at `tombstone`, in the active file, deletes `key`.
    fn forget(&self, writer: &Writer, key: &[u8], tombstone: Location) {
        if let Some(usage) = writer.active_usage() {
            usage.add_tombstone(tombstone.size);
            usage.note_death(|| self.time.now());
        }
        if let Some(old) = self.keydir.remove(key) {
            self.bury(old);
        }
    }
}

/// What the operations of a batch so far did to which key. Kept only from the first deletion on.
#[derive(Default)]
struct Touched<'a>(Option<HashMap<&'a [u8], bool>>);

impl<'a> Touched<'a> {
    fn put(&mut self, key: &'a [u8]) {
        if let Some(touched) = &mut self.0 {
            touched.insert(key, true);
        }
    }

    /// The operation at `index` deletes `key`: whether an earlier one left it there or not.
    fn delete(&mut self, batch: &'a Batch, index: usize, key: &'a [u8]) -> Option<bool> {
        let puts_so_far = || batch.iter().take(index).map(|put| (put.key(), true)).collect();
        self.0.get_or_insert_with(puts_so_far).insert(key, false)
    }
}

/// Refuses a batch of which some operation would be refused; returns the most bytes that its
/// records can take.
fn check_batch(batch: &Batch) -> Result<u64> {
    let mut bytes = 0;
    for operation in batch.iter() {
        let (key, value) = match operation {
            Operation::Put { key, value } => {
                tombstone::check_value(value)?;
                (key, value)
            }
            Operation::Delete { key } => (key, &tombstone::v1(0)[..]),
        };
        bytes += Header::without_crc(0, key, value)?.record_bytes();
    }
    Ok(bytes)
}

/// `Header::new` keeps records below 4 GiB.
fn record_size(header: Header) -> u32 {
    u32::try_from(header.record_bytes()).unwrap_or(u32::MAX)
}
