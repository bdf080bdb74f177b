//! Several operations that are applied together.
//!
//! Layout of the records, which is also the body of LevelDB's write batch, so that the LSM engine
//! writes them as they are:
//! ```text
//! put:      0x01  varint32 key length  key  varint32 value length  value
//! deletion: 0x00  varint32 key length  key
//! ```

use crate::{Error, Result};

const DELETION: u8 = 0;
const PUT: u8 = 1;

/// Puts and deletions in order; the later one of a key wins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    records: Vec<u8>,
    count: u32,
}

/// One operation of a [`Batch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Store a value.
    Put {
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
    },
    /// Remove a key.
    Delete {
        /// The key.
        key: &'a [u8],
    },
}

impl<'a> Operation<'a> {
    /// The key that the operation changes.
    pub fn key(&self) -> &'a [u8] {
        match self {
            Operation::Put { key, .. } | Operation::Delete { key } => key,
        }
    }
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a put.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for a key or value of 4 GiB and over, or the 2^32nd operation; the
    /// batch is as it was.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (key_length, value_length) = (length("key", key)?, length("value", value)?);
        self.count = self.next_count()?;
        self.records.reserve(11 + key.len() + value.len());
        self.records.push(PUT);
        push_varint(&mut self.records, key_length);
        self.records.extend_from_slice(key);
        push_varint(&mut self.records, value_length);
        self.records.extend_from_slice(value);
        Ok(())
    }

    /// Adds a deletion.
    ///
    /// # Errors
    /// As [`put`](Batch::put).
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        let key_length = length("key", key)?;
        self.count = self.next_count()?;
        self.records.push(DELETION);
        push_varint(&mut self.records, key_length);
        self.records.extend_from_slice(key);
        Ok(())
    }

    /// The number of operations.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether there is nothing to apply.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The bytes that the operations take, framing included.
    pub fn size_bytes(&self) -> usize {
        self.records.len()
    }

    /// Takes every operation out; the memory stays for reuse.
    pub fn clear(&mut self) {
        self.records.clear();
        self.count = 0;
    }

    /// The operations in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = Operation<'_>> {
        let mut rest = self.records.as_slice();
        std::iter::from_fn(move || {
            let (&tag, after) = rest.split_first()?;
            let (key, after) = split_prefixed(after)?;
            let operation = if tag == PUT {
                let (value, after) = split_prefixed(after)?;
                rest = after;
                Operation::Put { key, value }
            } else {
                rest = after;
                Operation::Delete { key }
            };
            Some(operation)
        })
    }

    /// The records in LevelDB's layout, without the header of sequence and count.
    pub(crate) fn records(&self) -> &[u8] {
        &self.records
    }

    fn next_count(&self) -> Result<u32> {
        self.count.checked_add(1).ok_or(Error::TooLarge {
            what: "batch",
            size: 1 << 32,
            limit: u32::MAX.into(),
        })
    }
}

fn length(what: &'static str, bytes: &[u8]) -> Result<u32> {
    u32::try_from(bytes.len()).map_err(|_| Error::TooLarge {
        what,
        size: bytes.len() as u64,
        limit: u32::MAX.into(),
    })
}

fn push_varint(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push((number & 0x7f) as u8);
}

/// Splits a length-prefixed slice off. `None` cannot happen: only this file wrote the bytes.
fn split_prefixed(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (mut length, mut shift) = (0u64, 0);
    for (at, &byte) in bytes.iter().enumerate().take(5) {
        length |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return bytes[at + 1..].split_at_checked(usize::try_from(length).ok()?);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_records_are_the_body_of_a_leveldb_write_batch() {
        let mut batch = Batch::new();
        batch.put(b"k", b"value").unwrap();
        batch.delete(b"gone").unwrap();
        assert_eq!(batch.records(), b"\x01\x01k\x05value\x00\x04gone");
        assert_eq!(batch.count(), 2);
    }

    #[test]
    fn iteration_returns_what_was_added_whatever_the_lengths() {
        let long = vec![7u8; 300_000];
        let mut batch = Batch::new();
        batch.put(b"", b"").unwrap();
        batch.put(&long[..128], &long).unwrap();
        batch.delete(b"").unwrap();
        let operations: Vec<_> = batch.iter().collect();
        assert_eq!(
            operations,
            [
                Operation::Put { key: b"", value: b"" },
                Operation::Put { key: &long[..128], value: &long },
                Operation::Delete { key: b"" },
            ]
        );
        batch.clear();
        assert!(batch.is_empty() && batch.iter().next().is_none());
    }
}
