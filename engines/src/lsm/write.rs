//! Writing: the log first, then the memtable, then it is visible.
//!
//! 1. The writer lays its operations down in the arena, in the form in which the log holds them.
//! 2. One leader at a time (see `group`) makes room, appends the batches of the whole group to the
//!    log as one record, syncs it if the level is `power`, and inserts them into the memtable. The
//!    memtable's entries point into what was laid down: a value is copied once.
//! 3. The new last sequence is published: all of the group becomes visible at once.
//!
//! # Errors
//! If an append or a sync fails, nobody knows what the log holds at its end: nothing is written to
//! it ever again, and nothing is acknowledged until the database is reopened.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Instant;

use bytes::{BufMut, Bytes, BytesMut};
use parking_lot::{Mutex, MutexGuard};

use super::arena::Arena;
use super::coding::{Cursor, Malformed};
use super::core::Core;
use super::filename::FileNumber;
use super::group::{LastGroup, Queue, Turn, Write};
use super::key::{EntryKind, Sequence};
use super::log::{LogOptions, LogWriter};
use super::log_file::LogFile;
use super::memtable::{Memtable, Record};
use super::options::Options;
use super::throttle::Pressure;
use super::view::Frozen;
use super::write_batch::encode_header;
use crate::{Batch, Durability, Error, Result};

/// The larger a group, the cheaper each of its batches and the longer the first one waits.
const GROUP_BYTES: usize = 1 << 20;
/// What may wait in the process at the level `buffered`.
const BUFFER_BYTES: usize = 64 << 10;
const ARENA_CHUNK_BYTES: usize = 256 << 10;
/// A varint32.
const MAX_LENGTH_BYTES: usize = 5;

/// Who writes, and the log that is written.
pub(crate) struct Writers {
    arena: Arena,
    queue: Queue,
    log: Mutex<Log>,
}

/// The active log.
pub(crate) struct Log {
    writer: LogWriter,
    file: Arc<LogFile>,
    /// Logs before it that may not be on disk yet, the oldest first. Not kept: to close one whose
    /// file is removed takes milliseconds.
    older: Vec<Weak<LogFile>>,
    last_sequence: Sequence,
    last_group: LastGroup,
}

impl Writers {
    pub(crate) fn new(options: &Options, file: Arc<LogFile>, last_sequence: Sequence) -> Self {
        let chunk_bytes = ARENA_CHUNK_BYTES.min(options.memtable_bytes / 4);
        let writer = log_writer(options, &file);
        let last_group = LastGroup::default();
        let log = Log { writer, file, older: Vec::new(), last_sequence, last_group };
        Self { arena: Arena::new(chunk_bytes), queue: Queue::default(), log: Mutex::new(log) }
    }

    /// Keeps writers out. Held across the log's I/O: it is what orders writes.
    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock()
    }
}

impl Core {
    pub(crate) fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let (key_length, value_length) = (length("key", key)?, length("value", value)?);
        let size = 1 + 2 * MAX_LENGTH_BYTES + key.len() + value.len();
        check_size("record", size)?;
        let records = self.writers.arena.record(size, |out| {
            out.put_u8(EntryKind::Value as u8);
            put_varint32(out, key_length);
            out.put_slice(key);
            put_varint32(out, value_length);
            out.put_slice(value);
        });
        self.commit(Write { records, count: 1 })
    }

    pub(crate) fn delete(&self, key: &[u8]) -> Result<()> {
        let key_length = length("key", key)?;
        let size = 1 + MAX_LENGTH_BYTES + key.len();
        check_size("record", size)?;
        let records = self.writers.arena.record(size, |out| {
            out.put_u8(EntryKind::Deletion as u8);
            put_varint32(out, key_length);
            out.put_slice(key);
        });
        self.commit(Write { records, count: 1 })
    }

    pub(crate) fn write(&self, batch: &Batch) -> Result<()> {
        if batch.is_empty() {
            return self.poison.check();
        }
        let size = batch.size_bytes();
        check_size("batch", size)?;
        let records = self.writers.arena.record(size, |out| out.put_slice(batch.records()));
        self.commit(Write { records, count: batch.count() })
    }

    fn commit(&self, write: Write) -> Result<()> {
        match self.writers.queue.enter(write) {
            Turn::Done(outcome) => outcome,
            Turn::Lead(own) => {
                let outcome = self.lead(own);
                self.writers.queue.pass_on();
                outcome
            }
        }
    }

    /// Writes its own batch and those that wait.
    fn lead(&self, own: Write) -> Result<()> {
        let mut log = self.writers.lock();
        self.poison.check()?;
        self.make_room(&mut log, own.records.len())?;
        self.writers.queue.gather(&log.last_group);
        let (mut bytes, mut count) = (own.records.len(), own.count);
        let followers = self.writers.queue.take(|write| {
            bytes += write.records.len();
            match count.checked_add(write.count).filter(|_| bytes <= GROUP_BYTES) {
                Some(sum) => count = sum,
                None => return false,
            }
            true
        });
        let (followers, mut group): (Vec<_>, Vec<_>) = followers.into_iter().unzip();
        log.last_group.followers = group.len();
        group.insert(0, own);
        let outcome = self.write_group(&mut log, group, count);
        let failure = outcome.as_ref().err().map(ToString::to_string);
        for follower in followers {
            follower.finish(match &failure {
                None => Ok(()),
                Some(cause) => {
                    let poisoned = || Error::Poisoned { cause: cause.clone() };
                    Err(self.poison.check().err().unwrap_or_else(poisoned))
                }
            });
        }
        outcome
    }

    fn write_group(&self, log: &mut Log, group: Vec<Write>, count: u32) -> Result<()> {
        let first = Sequence(log.last_sequence.0 + 1);
        let last = Sequence(log.last_sequence.0 + u64::from(count));
        if last > Sequence::MAX {
            return Err(Error::InvalidArgument("all 2^56 sequences are used up".to_owned()));
        }
        let header = encode_header(first, count);
        match group.as_slice() {
            [own] => log.writer.add(&[&header, &own.records]),
            group => {
                let records = group.iter().map(|write| write.records.as_ref());
                let parts: Vec<_> = std::iter::once(header.as_slice()).chain(records).collect();
                log.writer.add(&parts);
            }
        }
        // Used up even if it fails: what a failed append left must not be taken for later writes.
        log.last_sequence = last;
        let bytes: usize = group.iter().map(|write| write.records.len()).sum();
        self.counters.record_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.send(log).map_err(|error| self.poisoned(error))?;
        let view = self.view.load();
        let mut next = first;
        for write in group {
            next = insert(&view.active, next, write.records).map_err(|e| self.poisoned(e))?;
        }
        self.visible.store(last.0, Ordering::Release);
        Ok(())
    }

    /// Brings the log to where the durability level wants it.
    fn send(&self, log: &mut Log) -> Result<()> {
        log.writer.commit()?;
        if self.home.options.durability == Durability::Power {
            self.sync_older(log)?;
            let start = Instant::now();
            log.writer.sync()?;
            log.last_group.sync = start.elapsed();
            log.file.sync_name(&self.home)?;
        }
        Ok(())
    }

    /// A synced record must not come after one that may be lost: the logs before go first.
    fn sync_older(&self, log: &mut Log) -> Result<()> {
        for older in log.older.iter().filter_map(Weak::upgrade) {
            older.sync(&self.home)?;
        }
        log.older.clear();
        Ok(())
    }

    /// Makes everything acknowledged survive power loss.
    pub(crate) fn sync(&self) -> Result<()> {
        self.poison.check()?;
        let mut log = self.writers.lock();
        // Whoever held it may have failed.
        self.poison.check()?;
        log.writer.flush().map_err(|error| self.poisoned(error))?;
        let mut files: Vec<_> = log.older.iter().filter_map(Weak::upgrade).collect();
        files.push(Arc::clone(&log.file));
        // Others may go on writing while the system syncs what is there.
        drop(log);
        for file in &files {
            file.sync(&self.home).map_err(|error| self.poisoned(error))?;
        }
        // The one that was active has grown since, if it is among the older ones by now.
        files.pop();
        let is_synced = |older| files.iter().any(|file| std::ptr::eq(Arc::as_ptr(file), older));
        self.writers.lock().older.retain(|older| !is_synced(older.as_ptr()));
        Ok(())
    }

    /// Sends what waits in the process to the system, and gives back what was prepared. The last
    /// thing that happens to the logs.
    pub(crate) fn finish_log(&self) -> Result<()> {
        self.poison.check()?;
        let mut log = self.writers.lock();
        log.writer.finish().map_err(|error| self.poisoned(error))?;
        // Whatever is still to be flushed is read from these at the next open.
        let view = self.view.load();
        view.frozen.iter().try_for_each(|frozen| frozen.log.cut_off(frozen.log_bytes))
    }

    /// Freezes the active memtable, unless it is empty.
    pub(crate) fn freeze(&self) -> Result<()> {
        let mut log = self.writers.lock();
        self.poison.check()?;
        if self.view.load().active.is_empty() {
            return Ok(());
        }
        self.wait_for_room()?;
        self.freeze_active(&mut log)
    }

    /// Sees to it that the active memtable takes another group, not faster than background work
    /// keeps up with.
    fn make_room(&self, log: &mut Log, bytes: usize) -> Result<()> {
        let options = &self.home.options;
        let (active_bytes, pressure) = {
            let view = self.view.load();
            let is_last_memtable = view.frozen.len() + 1 >= options.memtable_count;
            let pressure = match self.background.is_paused() {
                // No merge would end it.
                true => Pressure { is_last_memtable, ..Pressure::default() },
                false => Pressure {
                    is_last_memtable,
                    level0_excess: (view.version.level(0).len())
                        .saturating_sub(options.level0_slowdown_tables),
                    garbage: view.version.garbage().unwrap_or_default(),
                },
            };
            (view.active.bytes(), pressure)
        };
        if let Some(delay) = self.throttle.delay(bytes, pressure) {
            // The log stays locked: others must not overtake.
            let start = Instant::now();
            std::thread::sleep(delay);
            self.throttle.slept(start.elapsed());
            self.counters.stalled(start.elapsed());
        }
        if active_bytes < options.memtable_bytes {
            return Ok(());
        }
        self.wait_for_room()?;
        self.freeze_active(log)
    }

    /// Waits until one more memtable may be frozen.
    fn wait_for_room(&self) -> Result<()> {
        let start = Instant::now();
        if self.background.wait_for_room(self)? {
            self.counters.stalled(start.elapsed());
        }
        Ok(())
    }

    /// Hands the whole log to the system. Returns its number, its length in bytes, and its last
    /// sequence.
    pub(super) fn hand_over_log(&self, log: &mut Log) -> Result<(FileNumber, u64, Sequence)> {
        log.writer.flush().map_err(|error| self.poisoned(error))?;
        Ok((log.file.number, log.writer.written(), log.last_sequence))
    }

    /// Keeps writers out.
    pub(super) fn lock_writers(&self) -> MutexGuard<'_, Log> {
        self.writers.lock()
    }

    /// Puts a new log in place of one that a failed append has left unusable. What was acknowledged
    /// and did not get into it is on its way to a table then.
    pub(super) fn replace_broken_log(&self, log: &mut Log) -> Result<()> {
        if log.writer.is_broken() { self.freeze_active(log) } else { Ok(()) }
    }

    /// Puts a new memtable and a new log in place of the active ones.
    fn freeze_active(&self, log: &mut Log) -> Result<()> {
        // If this fails nothing has changed: the next write tries again.
        let number = self.file_numbers.take();
        let file = LogFile::create(&self.home, number)?;
        match log.writer.is_broken() {
            true => log.writer.cut_off_failed()?,
            // Whatever the old log still holds back goes to the system now. What was prepared for
            // more is given back by the flush.
            false => log.writer.flush().map_err(|error| self.poisoned(error))?,
        }
        let log_bytes = log.writer.written();
        log.writer = log_writer(&self.home.options, &file);
        let old = std::mem::replace(&mut log.file, file);
        log.older.retain(|older| older.strong_count() > 0);
        log.older.push(Arc::downgrade(&old));
        let memtable = Arc::clone(&self.view.load().active);
        let table = self.file_numbers.take();
        let frozen = Arc::new(Frozen { memtable, table, log: old, log_bytes, next_log: number });
        self.view.change(|view| {
            view.active = Arc::new(Memtable::new());
            view.frozen.insert(0, Arc::clone(&frozen));
        });
        self.background.add_flush(frozen);
        Ok(())
    }
}

fn log_writer(options: &Options, file: &LogFile) -> LogWriter {
    let buffer_bytes = match options.durability {
        Durability::Buffered => BUFFER_BYTES,
        Durability::Process | Durability::Power => 0,
    };
    LogWriter::new(Arc::clone(file.file()), 0, LogOptions { prepare: true, buffer_bytes })
}

/// Inserts the operations in `records` from sequence `next` on. Returns the sequence behind them.
pub(crate) fn insert(memtable: &Memtable, mut next: Sequence, records: Bytes) -> Result<Sequence> {
    let mut at = 0;
    while at < records.len() {
        let (kind, record, end) = split_record(&records, at).map_err(|malformed| {
            Error::InvalidArgument(format!("not a write batch: {}", malformed.problem))
        })?;
        memtable.insert(next, kind, record);
        next.0 += 1;
        at = end;
    }
    Ok(next)
}

/// The operation at `at`, and where it ends.
fn split_record(
    records: &Bytes,
    at: usize,
) -> std::result::Result<(EntryKind, Record, usize), Malformed> {
    let mut cursor = Cursor::new(&records[at..]);
    let kind = match cursor.byte("the tag of an operation")? {
        0 => EntryKind::Deletion,
        _ => EntryKind::Value,
    };
    let key = cursor.prefixed("a key")?.len();
    let key_end = at + cursor.position();
    let value = match kind {
        EntryKind::Deletion => 0,
        EntryKind::Value => cursor.prefixed("a value")?.len(),
    };
    let end = at + cursor.position();
    let key_start = key_end - key;
    let bytes = records.slice(key_start..end);
    let lengths = (u32::try_from(key), u32::try_from(end - value - key_start));
    match lengths {
        (Ok(key_length), Ok(value_start)) => {
            Ok((kind, Record::new(bytes, key_length, value_start), end))
        }
        _ => Err(Malformed::new(at, "a record of 4 GiB and over")),
    }
}

fn put_varint32(out: &mut BytesMut, mut number: u32) {
    while number >= 0x80 {
        let [low, ..] = number.to_le_bytes();
        out.put_u8(low | 0x80);
        number >>= 7;
    }
    let [low, ..] = number.to_le_bytes();
    out.put_u8(low);
}

fn length(what: &'static str, bytes: &[u8]) -> Result<u32> {
    u32::try_from(bytes.len()).map_err(|_| too_large(what, bytes.len()))
}

/// What goes into one record of the log stays under 4 GiB in all, framing included.
fn check_size(what: &'static str, size: usize) -> Result<()> {
    if size > MAX_RECORD_BYTES { Err(too_large(what, size)) } else { Ok(()) }
}

fn too_large(what: &'static str, size: usize) -> Error {
    Error::TooLarge { what, size: size as u64, limit: MAX_RECORD_BYTES as u64 }
}

/// Lengths inside a record and a block are 32 bits; leave room for what comes with the data.
const MAX_RECORD_BYTES: usize = u32::MAX as usize - (1 << 16);
