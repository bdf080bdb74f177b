//! Prefixes as ranges of keys.

use std::ops::Bound;

use crate::KeyRange;

/// All keys that start with the same bytes. It owns the two ends of the range that such keys lie
/// in, which [`KeyRange`] borrows:
///
/// ```
/// use engines::Prefix;
///
/// let users = Prefix::new("user/");
/// assert!(users.range().contains(b"user/7"));
/// assert!(!users.range().contains(b"user0"));
/// ```
///
/// Every ordered engine takes it: `store.scan(users.range(), Direction::Forward, &mut visit)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    prefix: Vec<u8>,
    /// The smallest key that is larger than all of them, if there is one.
    end: Option<Vec<u8>>,
}

impl Prefix {
    /// The keys that start with `prefix`; with an empty one, every key.
    pub fn new(prefix: impl Into<Vec<u8>>) -> Self {
        let prefix = prefix.into();
        let mut end = prefix.clone();
        // The next larger sequence of at most as many bytes. Behind 0xff there is none, so the
        // byte before it is the one that grows.
        while end.pop_if(|last| *last == u8::MAX).is_some() {}
        let end = match end.last_mut() {
            Some(last) => {
                *last += 1;
                Some(end)
            }
            None => None,
        };
        Self { prefix, end }
    }

    /// The range that holds these keys and no other.
    pub fn range(&self) -> KeyRange<'_> {
        KeyRange {
            start: Bound::Included(&self.prefix),
            end: self.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All sequences of up to three bytes out of the smallest, the largest and their neighbours.
    fn sequences() -> Vec<Vec<u8>> {
        let mut all = vec![Vec::new()];
        for length in 1..=3 {
            let shorter: Vec<_> =
                all.iter().filter(|key: &&Vec<u8>| key.len() == length - 1).cloned().collect();
            for key in shorter {
                all.extend([0, 1, 0x7f, 0xfe, 0xff].map(|byte| [&key[..], &[byte]].concat()));
            }
        }
        all
    }

    #[test]
    fn the_range_holds_what_starts_with_the_prefix_and_nothing_else() {
        let keys = sequences();
        assert_eq!(keys.len(), 1 + 5 + 25 + 125);
        for prefix in &keys {
            let owner = Prefix::new(prefix.as_slice());
            for key in &keys {
                let inside = owner.range().contains(key);
                assert_eq!(inside, key.starts_with(prefix), "{prefix:?} {key:?}");
            }
        }
    }

    #[test]
    fn the_end_is_the_smallest_key_behind_them() {
        let end = |prefix: &[u8]| Prefix::new(prefix).end;
        assert_eq!(end(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(end(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(end(b"\xff\xff"), None);
        assert_eq!(end(b""), None);
    }
}
