//! Building blocks; see the parent for the layout.

use super::FIXED32_BYTES;
use crate::lsm::coding::push_varint64;

/// Builds one block after the other in the same memory.
#[derive(Debug)]
pub(crate) struct BlockBuilder {
    buffer: Vec<u8>,
    restarts: Vec<u32>,
    restart_interval: usize,
    entries_since_restart: usize,
    entry_count: usize,
    last_key: Vec<u8>,
}

impl BlockBuilder {
    /// A restart point every `restart_interval` entries; 0 counts as 1.
    pub(crate) fn new(restart_interval: usize) -> Self {
        Self {
            buffer: Vec::new(),
            restarts: vec![0],
            restart_interval: restart_interval.max(1),
            entries_since_restart: 0,
            entry_count: 0,
            last_key: Vec::new(),
        }
    }

    /// Adds an entry. Its key comes after all keys so far in the order of the block; key and
    /// value are under 4 GiB, and so is [`size`](Self::size) before this entry.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) {
        let shared = if self.entries_since_restart < self.restart_interval {
            shared_prefix(&self.last_key, key)
        } else {
            let offset = u32::try_from(self.buffer.len());
            debug_assert!(offset.is_ok(), "the caller ends blocks before");
            self.restarts.push(offset.unwrap_or(u32::MAX));
            self.entries_since_restart = 0;
            0
        };
        self.buffer.reserve(15 + key.len() - shared + value.len());
        push_varint64(&mut self.buffer, shared as u64);
        push_varint64(&mut self.buffer, (key.len() - shared) as u64);
        push_varint64(&mut self.buffer, value.len() as u64);
        self.buffer.extend_from_slice(&key[shared..]);
        self.buffer.extend_from_slice(value);
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&key[shared..]);
        self.entries_since_restart += 1;
        self.entry_count += 1;
    }

    /// The size of the block if it were finished now, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.buffer.len() + (self.restarts.len() + 1) * FIXED32_BYTES
    }

    /// Whether nothing was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.entry_count == 0
    }

    /// The key that was added last; empty before the first.
    pub(crate) fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Ends the block and returns it. [`reset`](Self::reset) before the next one.
    pub(crate) fn finish(&mut self) -> &[u8] {
        for restart in &self.restarts {
            self.buffer.extend_from_slice(&restart.to_le_bytes());
        }
        let count = u32::try_from(self.restarts.len()).unwrap_or(u32::MAX);
        self.buffer.extend_from_slice(&count.to_le_bytes());
        &self.buffer
    }

    /// Starts a new block.
    pub(crate) fn reset(&mut self) {
        self.buffer.clear();
        self.restarts.truncate(1);
        self.entries_since_restart = 0;
        self.entry_count = 0;
        self.last_key.clear();
    }
}

fn shared_prefix(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_the_documented_ones() {
        let mut builder = BlockBuilder::new(2);
        for _ in 0..2 {
            builder.add(b"apple", b"1");
            builder.add(b"apply", b"");
            assert!(!builder.is_empty());
            builder.add(b"apt", b"22");
            assert_eq!(builder.last_key(), b"apt");
            let expected = b"\x00\x05\x01apple1\x04\x01\x00y\x00\x03\x02apt22\
                             \x00\0\0\0\x0d\0\0\0\x02\0\0\0";
            assert_eq!(builder.size(), expected.len());
            assert_eq!(builder.finish(), expected);
            builder.reset();
        }
        assert!(builder.is_empty());
        assert_eq!(builder.finish(), b"\0\0\0\0\x01\0\0\0");
    }
}
