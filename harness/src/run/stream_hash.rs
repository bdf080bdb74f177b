//! What tells whether two engines were given the same operations.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::workload::op::{Kind, Op};

/// The hash of an operation stream: equal for two engines if, and in practice only if, both were
/// given the same operations. It sums over the operations, so that threads need no common order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StreamHash {
    sum: u64,
    count: u64,
}

impl StreamHash {
    /// Adds one operation: its kind, its key, and its value or how far it scans.
    pub(super) fn add(&mut self, op: &Op, key: &[u8], value: &[u8]) {
        let key = xxh3_64(key);
        let hash = match op.kind {
            // As it has been from the first result on.
            Kind::Insert => xxh3_64_with_seed(value, key),
            kind => {
                let what = (op.length << 8 | kind as u64).to_le_bytes();
                xxh3_64_with_seed(&what, xxh3_64_with_seed(value, key))
            }
        };
        self.sum = self.sum.wrapping_add(hash);
        self.count += 1;
    }

    /// Adds the operations of another part of the stream.
    pub(crate) fn merge(&mut self, other: Self) {
        self.sum = self.sum.wrapping_add(other.sum);
        self.count += other.count;
    }

    /// The operations added so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// As results have it.
    pub(crate) fn digest(&self) -> String {
        format!("xxh3-sum:{:016x}", self.sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_two_keys_exchanged_are_another_stream() {
        let (mut straight, mut crossed) = (StreamHash::default(), StreamHash::default());
        let op = Op::put(Kind::Insert, 0, 0);
        straight.add(&op, b"a", b"1");
        straight.add(&op, b"b", b"2");
        crossed.add(&op, b"a", b"2");
        crossed.add(&op, b"b", b"1");
        assert_ne!(straight, crossed);
    }
}
