//! What a request does, which depends on those before it on the same key.

use super::facts::Facts;
use super::requests::What;
use super::versions;
use crate::workload::op::{Kind, Op};

/// A request in the file of its part, before its key: what (1), length of the key (2), value (4),
/// length of a scan (4).
pub(super) struct Entry {
    pub(super) what: What,
    pub(super) value_bytes: u32,
    pub(super) length: u32,
}

pub(super) const ENTRY_BYTES: usize = 11;

impl Entry {
    pub(super) fn encode(&self, key_bytes: usize) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[0] = self.what as u8;
        // Keys were found to be no longer.
        bytes[1..3].copy_from_slice(&u16::try_from(key_bytes).unwrap_or(u16::MAX).to_le_bytes());
        bytes[3..7].copy_from_slice(&self.value_bytes.to_le_bytes());
        bytes[7..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    /// The request, and the length of its key.
    pub(super) fn decode(bytes: &[u8; ENTRY_BYTES]) -> (Self, usize) {
        let what = What::ALL.get(usize::from(bytes[0])).copied().unwrap_or(What::Get);
        let value_bytes = u32::from_le_bytes([bytes[3], bytes[4], bytes[5], bytes[6]]);
        let length = u32::from_le_bytes([bytes[7], bytes[8], bytes[9], bytes[10]]);
        (Self { what, value_bytes, length }, u16::from_le_bytes([bytes[1], bytes[2]]).into())
    }
}

/// A key, at some moment of the trace.
pub(super) struct Known {
    record: u64,
    /// The size of its value, now and at most.
    bytes: u32,
    most: u32,
    is_there: bool,
}

impl Known {
    /// A key that nothing was asked for yet.
    pub(super) fn new(record: u64) -> Self {
        Self { record, bytes: 0, most: 0, is_there: false }
    }

    /// What a request does: see `requests.rs`. Versions have the size alone.
    pub(super) fn take(&mut self, entry: &Entry, facts: &mut Facts) -> Op {
        let was_there = self.is_there;
        let kind = match (entry.what, was_there) {
            (What::Get, _) | (What::Add, true) | (What::Change, false) => Kind::Read,
            (What::Set, _) => Kind::Update,
            (What::Add | What::UpdateField, false) | (What::Insert, _) => Kind::Insert,
            (What::Change, true) => Kind::ReadModifyWrite,
            (What::UpdateField, true) => Kind::UpdateField,
            (What::Delete, _) => Kind::Delete,
            (What::Scan, _) => Kind::Scan,
        };
        if matches!(kind, Kind::Read | Kind::ReadModifyWrite | Kind::UpdateField) {
            *(if was_there { &mut facts.hits } else { &mut facts.misses }) += 1;
        }
        match kind {
            Kind::Read => return Op::read(self.record),
            Kind::Scan => return Op::scan(kind, self.record, entry.length.into()),
            Kind::Delete => {
                self.is_there = false;
                return Op::delete(self.record);
            }
            // One field of a value as large as before.
            Kind::UpdateField => {}
            _ => self.bytes = entry.value_bytes,
        }
        self.is_there = true;
        facts.put_bytes += u64::from(self.bytes);
        facts.data_bytes += u64::from(self.bytes.saturating_sub(self.most));
        self.most = self.most.max(self.bytes);
        Op::put(kind, self.record, versions::of_size(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, from `requests.rs`.
    #[test]
    fn what_a_request_does_depends_on_what_is_there() {
        let mut facts = Facts::default();
        let mut known = Known::new(7);
        let mut take =
            |what, value_bytes| known.take(&Entry { what, value_bytes, length: 5 }, &mut facts);
        let put = |kind, bytes| Op::put(kind, 7, versions::of_size(bytes));
        for (what, bytes, expected) in [
            (What::Get, 9, Op::read(7)),
            (What::Change, 9, Op::read(7)),
            (What::Add, 100, put(Kind::Insert, 100)),
            (What::Add, 50, Op::read(7)),
            (What::Get, 9, Op::read(7)),
            (What::Change, 120, put(Kind::ReadModifyWrite, 120)),
            (What::UpdateField, 9, put(Kind::UpdateField, 120)),
            (What::Set, 10, put(Kind::Update, 10)),
            (What::Scan, 0, Op::scan(Kind::Scan, 7, 5)),
            (What::Delete, 0, Op::delete(7)),
            (What::Delete, 0, Op::delete(7)),
            (What::UpdateField, 30, put(Kind::Insert, 30)),
            (What::Insert, 40, put(Kind::Insert, 40)),
        ] {
            assert_eq!(take(what, bytes), expected, "{what:?}");
        }
        assert_eq!((facts.hits, facts.misses), (4, 2));
        assert_eq!(facts.put_bytes, 100 + 120 + 120 + 10 + 30 + 40);
        assert_eq!(facts.data_bytes, 120, "the largest value there was");
    }
}
