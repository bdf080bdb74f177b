//! Which entries a merge keeps.
//!
//! The entries of one user key come newest first. Snapshots cut the time line into stripes: between
//! two neighbouring snapshots nobody can look, so of each stripe only the newest entry of a key is
//! visible to anybody, and the others go. A deletion that is the newest of the oldest stripe goes
//! too, if nothing older of its key lies in a level below the output.

use super::key::{EntryKind, ParsedKey, Sequence};

/// Decides entry by entry, over entries in internal key order.
#[derive(Debug)]
pub(crate) struct Retention<'a> {
    /// The sequences that somebody may still read at, ascending. Readers at the present hold a
    /// version and need no place here.
    snapshots: &'a [Sequence],
    user_key: Option<Vec<u8>>,
    /// The stripe of the last entry of `user_key`.
    stripe: usize,
}

impl<'a> Retention<'a> {
    pub(crate) fn new(snapshots: &'a [Sequence]) -> Self {
        debug_assert!(snapshots.is_sorted());
        Self { snapshots, user_key: None, stripe: 0 }
    }

    /// Whether `entry` is kept. `may_hold_below` tells whether older entries of its key may lie
    /// below the output level; it is asked for deletions only.
    pub(crate) fn keeps(
        &mut self,
        entry: &ParsedKey<'_>,
        may_hold_below: impl FnOnce() -> bool,
    ) -> bool {
        let stripe = self.snapshots.partition_point(|snapshot| *snapshot < entry.sequence);
        let is_same_key = self.user_key.as_deref() == Some(entry.user_key);
        if is_same_key && stripe == self.stripe {
            return false;
        }
        self.stripe = stripe;
        if !is_same_key {
            let saved = self.user_key.get_or_insert_default();
            saved.clear();
            saved.extend_from_slice(entry.user_key);
        }
        entry.kind == EntryKind::Value || stripe > 0 || may_hold_below()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is kept of the versions of one key, each given as sequence and kind, newest first.
    fn kept(snapshots: &[u64], versions: &[(u64, EntryKind)], below: bool) -> Vec<u64> {
        let snapshots: Vec<_> = snapshots.iter().copied().map(Sequence).collect();
        let mut retention = Retention::new(&snapshots);
        let keeps = |(sequence, kind): &(u64, EntryKind)| {
            let entry = ParsedKey { user_key: b"k", sequence: Sequence(*sequence), kind: *kind };
            retention.keeps(&entry, || below).then_some(*sequence)
        };
        versions.iter().filter_map(keeps).collect()
    }

    use EntryKind::{Deletion as D, Value as V};

    #[test]
    fn without_snapshots_the_newest_value_alone_stays() {
        assert_eq!(kept(&[], &[(9, V), (7, D), (5, V)], true), [9]);
    }

    #[test]
    fn a_deletion_stays_as_long_as_it_hides_something_below() {
        assert_eq!(kept(&[], &[(9, D), (5, V)], true), [9]);
        assert_eq!(kept(&[], &[(9, D), (5, V)], false), [] as [u64; 0]);
    }

    #[test]
    fn what_a_snapshot_sees_stays() {
        let versions = [(9, V), (8, V), (7, D), (5, V), (3, V)];
        assert_eq!(kept(&[8], &versions, true), [9, 8]);
        assert_eq!(kept(&[7], &versions, true), [9, 7]);
        assert_eq!(kept(&[4, 6, 7], &versions, true), [9, 7, 5, 3]);
        assert_eq!(kept(&[9], &versions, true), [9]);
        assert_eq!(kept(&[2], &versions, true), [9]);
    }

    #[test]
    fn a_deletion_over_older_entries_that_a_snapshot_keeps_stays() {
        assert_eq!(kept(&[5], &[(7, D), (5, V)], false), [7, 5]);
        assert_eq!(kept(&[7], &[(7, D), (5, V)], false), [] as [u64; 0]);
    }

    #[test]
    fn keys_do_not_hide_one_another() {
        let mut retention = Retention::new(&[]);
        for user_key in [&b""[..], b"a", b"b"] {
            let entry = ParsedKey { user_key, sequence: Sequence(1), kind: V };
            assert!(retention.keeps(&entry, || true));
            assert!(!retention.keeps(&entry, || true));
        }
    }
}
