//! Write batches: what one record of a log holds.
//!
//! ```text
//! 0   fixed64  sequence of the first operation
//! 8   fixed32  count of operations
//! 12  the operations, as in crate::batch:
//!       0x01 prefixed key, prefixed value   put
//!       0x00 prefixed key                   deletion
//! ```
//! The operations take the sequences from the first on, one each.

use super::coding::{Cursor, Malformed};
use super::key::Sequence;
use crate::Operation;

/// The bytes before the operations.
pub(crate) const HEADER_BYTES: usize = 12;

const DELETION: u8 = 0;
const PUT: u8 = 1;

/// The header of a batch. The body is [`Batch::records`](crate::Batch::records), or those of
/// several batches one after the other with their counts summed.
pub(crate) fn encode_header(first: Sequence, count: u32) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&first.0.to_le_bytes());
    header[8..].copy_from_slice(&count.to_le_bytes());
    header
}

/// A batch read from a log, checked as a whole: it applies entirely or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WriteBatch<'a> {
    first: Sequence,
    count: u32,
    records: &'a [u8],
}

impl<'a> WriteBatch<'a> {
    /// Decodes a record of a log.
    ///
    /// # Errors
    /// Truncation, an unknown tag, a count that is not the number of operations, a sequence over
    /// 56 bits.
    pub(crate) fn decode(record: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(record);
        let first = Sequence(cursor.fixed64("the sequence of a batch")?);
        let count = cursor.fixed32("the count of a batch")?;
        let batch = Self { first, count, records: cursor.rest() };
        if first.0.checked_add(u64::from(count)).is_none_or(|next| next > Sequence::MAX.0 + 1) {
            let problem = format!("{count} operations from sequence {} on", first.0);
            return Err(Malformed::new(0, problem));
        }
        let mut found = 0u64;
        while !cursor.is_empty() {
            read_operation(&mut cursor)?;
            found += 1;
        }
        if found != u64::from(count) {
            let problem = format!("the batch says {count} operations and holds {found}");
            return Err(Malformed::new(8, problem));
        }
        Ok(batch)
    }

    /// The sequence of the first operation.
    pub(crate) fn first_sequence(&self) -> Sequence {
        self.first
    }

    /// The sequence of the last operation; `None` if the batch is empty.
    pub(crate) fn last_sequence(&self) -> Option<Sequence> {
        Some(Sequence(self.first.0 + u64::from(self.count.checked_sub(1)?)))
    }

    /// The number of operations.
    #[cfg(test)]
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// The operations in order, each with its sequence.
    #[cfg(test)]
    pub(crate) fn operations(&self) -> impl Iterator<Item = (Sequence, Operation<'a>)> + use<'a> {
        let mut cursor = Cursor::new(self.records);
        let mut sequence = self.first.0;
        // Decoding cannot fail: `decode` has read it all.
        std::iter::from_fn(move || {
            let operation = read_operation(&mut cursor).ok()?;
            let this = Sequence(sequence);
            sequence += 1;
            Some((this, operation))
        })
    }
}

fn read_operation<'a>(cursor: &mut Cursor<'a>) -> Result<Operation<'a>, Malformed> {
    let at = cursor.position();
    match cursor.byte("the tag of an operation")? {
        PUT => {
            let key = cursor.prefixed("the key of a put")?;
            Ok(Operation::Put { key, value: cursor.prefixed("the value of a put")? })
        }
        DELETION => Ok(Operation::Delete { key: cursor.prefixed("the key of a deletion")? }),
        tag => Err(Malformed::new(at, format!("unknown tag {tag} of an operation"))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Batch;

    const BYTES: &[u8] = b"\x07\x01\0\0\0\0\0\0\x02\0\0\0\x01\x01k\x05value\x00\x04gone";

    fn encode(first: u64, batch: &Batch) -> Vec<u8> {
        [&encode_header(Sequence(first), batch.count())[..], batch.records()].concat()
    }

    #[test]
    fn the_bytes_are_the_documented_ones() {
        let mut batch = Batch::new();
        batch.put(b"k", b"value").unwrap();
        batch.delete(b"gone").unwrap();
        assert_eq!(encode(0x107, &batch), BYTES);
        let decoded = WriteBatch::decode(BYTES).unwrap();
        assert_eq!(decoded.last_sequence(), Some(Sequence(0x108)));
        let operations: Vec<_> = decoded.operations().collect();
        assert_eq!(
            operations,
            [
                (Sequence(0x107), Operation::Put { key: b"k", value: b"value" }),
                (Sequence(0x108), Operation::Delete { key: b"gone" }),
            ]
        );
    }

    #[test]
    fn every_truncation_and_every_wrong_count_is_refused() {
        for length in 0..BYTES.len() {
            assert!(WriteBatch::decode(&BYTES[..length]).is_err(), "{length}");
        }
        for count in [0, 1, 3, u8::MAX] {
            let mut wrong = BYTES.to_vec();
            wrong[8] = count;
            assert_eq!(WriteBatch::decode(&wrong).unwrap_err().at, 8);
        }
        let mut wrong = BYTES.to_vec();
        wrong[HEADER_BYTES] = 2;
        assert_eq!(WriteBatch::decode(&wrong).unwrap_err().at, HEADER_BYTES);
    }

    #[test]
    fn sequences_end_at_56_bits_and_an_empty_batch_has_none() {
        let mut batch = Batch::new();
        batch.delete(b"").unwrap();
        assert!(WriteBatch::decode(&encode(Sequence::MAX.0, &batch)).is_ok());
        assert!(WriteBatch::decode(&encode(Sequence::MAX.0 + 1, &batch)).is_err());
        assert!(WriteBatch::decode(&encode(u64::MAX, &batch)).is_err());
        let empty = encode(0, &Batch::new());
        assert_eq!(WriteBatch::decode(&empty).unwrap().last_sequence(), None);
    }

    proptest! {
        #[test]
        fn random_bytes_are_decoded_or_refused(bytes: Vec<u8>) {
            if let Ok(batch) = WriteBatch::decode(&bytes) {
                prop_assert_eq!(batch.operations().count(), batch.count() as usize);
            }
        }

        #[test]
        fn what_was_batched_is_read_back(
            operations in prop::collection::vec(
                (any::<Vec<u8>>(), prop::option::of(any::<Vec<u8>>())), 0..20),
        ) {
            let mut batch = Batch::new();
            for (key, value) in &operations {
                match value {
                    Some(value) => batch.put(key, value).unwrap(),
                    None => batch.delete(key).unwrap(),
                }
            }
            let bytes = encode(5, &batch);
            let decoded = WriteBatch::decode(&bytes).unwrap();
            prop_assert_eq!(
                decoded.operations().map(|(_, operation)| operation).collect::<Vec<_>>(),
                batch.iter().collect::<Vec<_>>()
            );
        }
    }
}
