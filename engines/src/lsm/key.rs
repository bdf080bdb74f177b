//! Internal keys: what memtables and tables are ordered by.
//!
//! ```text
//! user key | u64 little-endian: sequence << 8 | kind
//! ```
//! Order: user key ascending (bytewise), then the tag descending, so that the newest entry of a
//! user key comes first.

use std::cmp::Ordering;

/// The bytes behind the user key.
pub(crate) const TAG_BYTES: usize = 8;

/// A position in the order of writes: every operation of every batch takes the next one. 56 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Sequence(pub(crate) u64);

impl Sequence {
    /// The largest that fits beside the kind.
    pub(crate) const MAX: Self = Self((1 << 56) - 1);
}

/// What an entry says of its user key. Persisted: do not renumber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum EntryKind {
    Deletion = 0,
    Value = 1,
}

/// The kind to look up with: the largest, so that a lookup at a sequence finds every kind at it.
pub(crate) const SEEK_KIND: EntryKind = EntryKind::Value;

/// The eight bytes behind the user key, as a number.
pub(crate) fn tag(sequence: Sequence, kind: EntryKind) -> u64 {
    debug_assert!(sequence <= Sequence::MAX);
    sequence.0 << 8 | kind as u64
}

/// An internal key taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ParsedKey<'a> {
    pub(crate) user_key: &'a [u8],
    pub(crate) sequence: Sequence,
    pub(crate) kind: EntryKind,
}

impl<'a> ParsedKey<'a> {
    /// `None` if the bytes are too short for a tag or the kind is unknown.
    pub(crate) fn parse(internal_key: &'a [u8]) -> Option<Self> {
        let (user_key, tag) = internal_key.split_last_chunk::<TAG_BYTES>()?;
        let tag = u64::from_le_bytes(*tag);
        let kind = match tag & 0xff {
            0 => EntryKind::Deletion,
            1 => EntryKind::Value,
            _ => return None,
        };
        Some(Self { user_key, sequence: Sequence(tag >> 8), kind })
    }
}

/// Appends an internal key to `out`.
pub(crate) fn push_internal_key(
    out: &mut Vec<u8>,
    user_key: &[u8],
    sequence: Sequence,
    kind: EntryKind,
) {
    out.extend_from_slice(user_key);
    out.extend_from_slice(&tag(sequence, kind).to_le_bytes());
}

/// The user key of an internal key; the whole of one that is too short to have a tag.
pub(crate) fn user_key(internal_key: &[u8]) -> &[u8] {
    internal_key.split_last_chunk::<TAG_BYTES>().map_or(internal_key, |(user_key, _)| user_key)
}

/// The order of memtables and tables. Total on all bytes: what is too short has tag 0.
pub(crate) fn compare(left: &[u8], right: &[u8]) -> Ordering {
    let split = |key: &'_ [u8]| {
        key.split_last_chunk::<TAG_BYTES>().map_or(0, |(_, tag)| u64::from_le_bytes(*tag))
    };
    user_key(left).cmp(user_key(right)).then_with(|| split(right).cmp(&split(left)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(user: &[u8], sequence: u64, kind: EntryKind) -> Vec<u8> {
        let mut out = Vec::new();
        push_internal_key(&mut out, user, Sequence(sequence), kind);
        out
    }

    #[test]
    fn the_layout_is_key_then_little_endian_tag() {
        assert_eq!(key(b"ab", 0x0102, EntryKind::Value), b"ab\x01\x02\x01\0\0\0\0\0");
    }

    #[test]
    fn newer_comes_first_and_the_user_key_decides_before() {
        let newest = key(b"a", 9, EntryKind::Deletion);
        let older = key(b"a", 8, EntryKind::Value);
        let other = key(b"a\0", 100, EntryKind::Value);
        assert_eq!(compare(&newest, &older), Ordering::Less);
        assert_eq!(compare(&older, &other), Ordering::Less);
        assert_eq!(compare(&key(b"a", 8, EntryKind::Deletion), &older), Ordering::Greater);
    }

    #[test]
    fn short_or_unknown_keys_are_told_not_believed() {
        assert_eq!(ParsedKey::parse(b"1234567"), None);
        assert_eq!(ParsedKey::parse(b"\x02\0\0\0\0\0\0\0"), None);
        assert_eq!(user_key(b"1234567"), b"1234567");
    }
}
