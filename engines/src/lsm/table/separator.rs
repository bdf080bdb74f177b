//! Short keys for the index.

use crate::lsm::key::{SEEK_KIND, Sequence, push_internal_key, user_key};

/// Replaces `key` by a short one that is not before it and is before `next`, both internal keys.
pub(super) fn shorten_to_separator(key: &mut Vec<u8>, next: &[u8]) {
    let (start, limit) = (user_key(key), user_key(next));
    let shared = start.iter().zip(limit).take_while(|(left, right)| left == right).count();
    let (Some(&differs), Some(&bound)) = (start.get(shared), limit.get(shared)) else {
        // One is the beginning of the other.
        return;
    };
    if differs < u8::MAX && differs + 1 < bound {
        shorten(key, shared);
    }
}

/// Replaces `key`, an internal key, by a short one that is not before it.
pub(super) fn shorten_to_successor(key: &mut Vec<u8>) {
    if let Some(at) = user_key(key).iter().position(|byte| *byte != u8::MAX) {
        shorten(key, at);
    }
}

/// Raises the byte `at` of the user key, which is below 0xff, and drops what follows, if that
/// makes the key shorter. The tag becomes the largest, which comes before all others of that user
/// key.
fn shorten(key: &mut Vec<u8>, at: usize) {
    if at + 1 < user_key(key).len() {
        key[at] += 1;
        key.truncate(at + 1);
        push_internal_key(key, &[], Sequence::MAX, SEEK_KIND);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lsm::key::{EntryKind, compare};

    fn internal(user_key: &[u8], sequence: u64) -> Vec<u8> {
        let mut key = Vec::new();
        push_internal_key(&mut key, user_key, Sequence(sequence), EntryKind::Value);
        key
    }

    fn separator(start: &[u8], limit: &[u8]) -> Vec<u8> {
        let mut key = internal(start, 100);
        shorten_to_separator(&mut key, &internal(limit, 200));
        key
    }

    #[test]
    fn a_key_is_shortened_only_where_it_gets_shorter() {
        let max = Sequence::MAX.0;
        assert_eq!(separator(b"foobar", b"hello"), internal(b"g", max));
        assert_eq!(separator(b"abcdefg", b"abzz"), internal(b"abd", max));
        // The same user key, neighbours, one the beginning of the other, nothing to drop.
        for (start, limit) in
            [("foo", "foo"), ("foo", "fop"), ("foo", "foobar"), ("foobar", "foo"), ("abc", "abz")]
        {
            assert_eq!(
                separator(start.as_bytes(), limit.as_bytes()),
                internal(start.as_bytes(), 100)
            );
        }
    }

    #[test]
    fn a_successor_raises_the_first_byte_that_can_be() {
        for (key, expected) in [
            (&b"foo"[..], internal(b"g", Sequence::MAX.0)),
            (b"\xff\xffab", internal(b"\xff\xffb", Sequence::MAX.0)),
            (b"\xff\xff", internal(b"\xff\xff", 100)),
            (b"a", internal(b"a", 100)),
            (b"", internal(b"", 100)),
        ] {
            let mut shortened = internal(key, 100);
            shorten_to_successor(&mut shortened);
            assert_eq!(shortened, expected);
        }
    }

    proptest! {
        #[test]
        fn separators_lie_between(
            left in prop::collection::vec(0u8..4, 0..6),
            right in prop::collection::vec(prop::sample::select(vec![0, 1, 2, 254, 255]), 0..6),
            sequences: (u32, u32),
        ) {
            let mut keys =
                [internal(&left, sequences.0.into()), internal(&right, sequences.1.into())];
            keys.sort_by(|left, right| compare(left, right));
            let mut separator = keys[0].clone();
            shorten_to_separator(&mut separator, &keys[1]);
            prop_assert!(compare(&keys[0], &separator).is_le());
            prop_assert!(keys[0] == keys[1] || compare(&separator, &keys[1]).is_lt());
            prop_assert!(separator.len() <= keys[0].len());
            let mut successor = keys[1].clone();
            shorten_to_successor(&mut successor);
            prop_assert!(compare(&keys[1], &successor).is_le());
        }
    }
}
