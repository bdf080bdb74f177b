//! Memory for records: few large chunks instead of one allocation a record.
//!
//! Records are cut off the front of a chunk one after the other and share it; when the last of them
//! is gone, which is when the memtable that holds them is, the chunk is used again.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;

/// Hands out memory for records.
#[derive(Debug)]
pub(crate) struct Arena {
    chunk_bytes: usize,
    chunks: Mutex<Chunks>,
}

#[derive(Debug, Default)]
struct Chunks {
    current: BytesMut,
    /// Used up, the oldest first.
    spent: VecDeque<BytesMut>,
}

impl Arena {
    pub(crate) fn new(chunk_bytes: usize) -> Self {
        Self { chunk_bytes, chunks: Mutex::default() }
    }

    /// A record of at most `capacity` bytes that `write` appends.
    pub(crate) fn record(&self, capacity: usize, write: impl FnOnce(&mut BytesMut)) -> Bytes {
        if capacity > self.chunk_bytes / 4 {
            let mut own = BytesMut::with_capacity(capacity);
            write(&mut own);
            return own.freeze();
        }
        let mut chunks = self.chunks.lock();
        if chunks.current.capacity() - chunks.current.len() < capacity {
            chunks.renew(self.chunk_bytes);
        }
        write(&mut chunks.current);
        chunks.current.split().freeze()
    }
}

impl Chunks {
    fn renew(&mut self, chunk_bytes: usize) {
        let spent = std::mem::take(&mut self.current);
        if spent.capacity() > 0 {
            self.spent.push_back(spent);
        }
        // If the oldest is still in use, so are the others, most likely.
        if let Some(mut oldest) = self.spent.pop_front() {
            if oldest.try_reclaim(chunk_bytes) {
                self.current = oldest;
                return;
            }
            self.spent.push_front(oldest);
        }
        self.current = BytesMut::with_capacity(chunk_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_keep_their_bytes_and_chunks_are_used_again() {
        let arena = Arena::new(1024);
        let mut first_chunk = None;
        for round in 0..3u8 {
            let records: Vec<_> = (0..64u8)
                .map(|at| arena.record(64, |out| out.extend_from_slice(&[at ^ round; 60])))
                .collect();
            for (at, record) in (0u8..).zip(&records) {
                assert_eq!(record.as_ref(), [at ^ round; 60]);
            }
            first_chunk.get_or_insert(records[0].as_ptr());
            if round == 2 {
                let chunk_count = arena.chunks.lock().spent.len() + 1;
                assert!(chunk_count <= 5, "{chunk_count} chunks for four chunks' worth");
            }
        }
        let large = arena.record(2000, |out| out.extend_from_slice(&[7; 2000]));
        assert_eq!(large.as_ref(), [7; 2000]);
    }
}
