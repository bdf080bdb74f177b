//! Appending to a record log; see the parent for the layout.

use std::sync::Arc;

use super::{BLOCK_BYTES, FragmentType, HEADER_BYTES};
use crate::fs::{Appender, Filler, WriteFile};
use crate::lsm::coding::checksum;
use crate::{Error, Result};

/// A larger buffer is given back after the record that needed it.
const KEPT_BUFFER_BYTES: usize = 4 << 20;

/// How a log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogOptions {
    /// Whether the file is prepared ahead for many small writes, so that it is longer than its
    /// records until it is finished.
    pub(crate) prepare: bool,
    /// How many bytes may wait in memory before they are written; 0 writes at every
    /// [`commit`](LogWriter::commit).
    pub(crate) buffer_bytes: usize,
}

/// Appends records to a file that it alone writes.
///
/// Records are framed into memory by [`add`](Self::add) and go to the file together, as one write,
/// with [`commit`](Self::commit): a group of writers costs one call. After a failed write nobody
/// knows what the file holds at its end, so the writer refuses everything from then on.
#[derive(Debug)]
pub(crate) struct LogWriter {
    file: Appender,
    options: LogOptions,
    /// Framed, not yet written.
    pending: Vec<u8>,
    failure: Option<String>,
}

impl LogWriter {
    /// Writes into `file` from `offset` on: 0, or the end of its last whole record, with nothing
    /// behind it.
    pub(crate) fn new(file: Arc<dyn WriteFile>, offset: u64, options: LogOptions) -> Self {
        let file = match options.prepare {
            true => Appender::new(file, offset, Filler::Zeros),
            false => Appender::exact(file, offset),
        };
        Self { file, options, pending: Vec::new(), failure: None }
    }

    /// Appends one record: [`add`](Self::add) and [`commit`](Self::commit).
    pub(crate) fn append(&mut self, record: &[u8]) -> Result<()> {
        self.add(&[record]);
        self.commit()
    }

    /// Frames one record, made of `parts` one after the other, without writing.
    pub(crate) fn add(&mut self, parts: &[&[u8]]) {
        if self.failure.is_some() {
            return;
        }
        let mut source = Parts { parts, current: &[], left: 0 };
        source.left = parts.iter().map(|part| part.len()).sum();
        let fragment_count = source.left / (BLOCK_BYTES - HEADER_BYTES) + 2;
        self.pending.reserve(source.left + fragment_count * (HEADER_BYTES + HEADER_BYTES));
        let mut is_first = true;
        loop {
            let mut room = self.room_in_block();
            if room < HEADER_BYTES {
                self.pending.resize(self.pending.len() + room, 0);
                room = BLOCK_BYTES;
            }
            let length = source.left.min(room - HEADER_BYTES);
            let is_last = length == source.left;
            self.push_fragment(FragmentType::of(is_first, is_last), length, &mut source);
            is_first = false;
            if is_last {
                return;
            }
        }
    }

    /// Sends what was added to the file, unless it may wait in memory.
    ///
    /// # Errors
    /// [`Error::Poisoned`] after an earlier failure.
    pub(crate) fn commit(&mut self) -> Result<()> {
        if self.failure.is_none() && self.pending.len() < self.options.buffer_bytes {
            return Ok(());
        }
        self.flush()
    }

    /// Sends everything to the file.
    ///
    /// # Errors
    /// [`Error::Poisoned`] after an earlier failure.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.check_usable()?;
        if self.pending.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.file.append(&self.pending) {
            self.failure = Some(error.to_string());
            return Err(error);
        }
        self.pending.clear();
        if self.pending.capacity() > KEPT_BUFFER_BYTES {
            self.pending = Vec::new();
        }
        Ok(())
    }

    /// Makes everything that was appended survive power loss.
    ///
    /// # Errors
    /// After a failure of the sync itself too, the writer refuses everything: a second sync may
    /// falsely succeed.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.flush()?;
        self.file.file().sync().inspect_err(|error| self.failure = Some(error.to_string()))
    }

    /// Ends the log: writes what waits, and gives back what was prepared. Does not sync.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.flush()?;
        if self.options.prepare { self.file.finish() } else { Ok(()) }
    }

    /// Whether a write or a sync has failed, after which everything is refused.
    pub(crate) fn is_broken(&self) -> bool {
        self.failure.is_some()
    }

    /// Cuts off what a failed write may have left behind the last record.
    pub(crate) fn cut_off_failed(&mut self) -> Result<()> {
        self.pending = Vec::new();
        self.file.finish()
    }

    /// Where the next record goes: the length of the log, what waits in memory included.
    pub(crate) fn offset(&self) -> u64 {
        self.written() + self.pending.len() as u64
    }

    /// How much of the log the file holds.
    pub(crate) fn written(&self) -> u64 {
        self.file.end()
    }

    fn check_usable(&self) -> Result<()> {
        match &self.failure {
            None => Ok(()),
            Some(cause) => Err(Error::Poisoned { cause: cause.clone() }),
        }
    }

    fn room_in_block(&self) -> usize {
        let block_bytes = BLOCK_BYTES as u64;
        #[expect(clippy::cast_possible_truncation, reason = "at most BLOCK_BYTES")]
        let used = (self.offset() % block_bytes) as usize;
        BLOCK_BYTES - used
    }

    fn push_fragment(&mut self, kind: FragmentType, length: usize, source: &mut Parts<'_>) {
        let start = self.pending.len();
        self.pending.extend_from_slice(&[0; 4]);
        #[expect(clippy::cast_possible_truncation, reason = "fits: asserted beside BLOCK_BYTES")]
        self.pending.extend_from_slice(&(length as u16).to_le_bytes());
        self.pending.push(kind as u8);
        source.move_to(&mut self.pending, length);
        let crc = checksum(&[&self.pending[start + 6..]]);
        self.pending[start..start + 4].copy_from_slice(&crc.to_le_bytes());
    }
}

/// The bytes of a record that are still to be framed.
struct Parts<'a> {
    parts: &'a [&'a [u8]],
    current: &'a [u8],
    left: usize,
}

impl Parts<'_> {
    fn move_to(&mut self, out: &mut Vec<u8>, mut length: usize) {
        self.left -= length;
        while length > 0 {
            if self.current.is_empty() {
                let Some((first, rest)) = self.parts.split_first() else { return };
                (self.current, self.parts) = (first, rest);
                continue;
            }
            let (now, later) = self.current.split_at(length.min(self.current.len()));
            out.extend_from_slice(now);
            self.current = later;
            length -= now.len();
        }
    }
}
