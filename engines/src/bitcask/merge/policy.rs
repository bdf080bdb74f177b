//! Which files to merge: a pure choice.

use crate::bitcask::names::FileId;
use crate::bitcask::options::MergePolicy;

/// What the choice is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) id: FileId,
    pub(super) length: u64,
    pub(super) live_bytes: u64,
    pub(super) tombstone_bytes: u64,
    /// Damaged files are left for a person to look at.
    pub(super) damaged: bool,
}

impl Candidate {
    /// Bytes of records that were overwritten or deleted, damage counted as such.
    pub(super) fn shadowed_bytes(&self) -> u64 {
        self.length.saturating_sub(self.live_bytes).saturating_sub(self.tombstone_bytes)
    }
}

/// The sealed files to merge now, ascending; none if it is not worth it.
///
/// A tombstone is dead weight only if nothing older is left that it hides: if each older file is
/// merged too, or holds nothing that was overwritten or deleted.
pub(super) fn choose(candidates: &[Candidate], policy: &MergePolicy) -> Vec<FileId> {
    let mut chosen = Vec::new();
    let (mut triggered, mut small_count, mut gain) = (false, 0, false);
    let mut tombstones_are_dead = true;
    for file in candidates {
        let kept_tombstones = if tombstones_are_dead { 0 } else { file.tombstone_bytes };
        let dead = file.length.saturating_sub(file.live_bytes).saturating_sub(kept_tombstones);
        let fraction = dead as f64 / file.length.max(1) as f64;
        let small = file.length < policy.small_file_bytes;
        let worth = dead > 0
            && (fraction >= policy.threshold_dead_fraction || dead >= policy.threshold_dead_bytes);
        if file.damaged || !(worth || small) {
            tombstones_are_dead &= file.shadowed_bytes() == 0;
            continue;
        }
        chosen.push(file.id);
        small_count += usize::from(small);
        gain |= worth;
        triggered |= dead > 0
            && (fraction >= policy.trigger_dead_fraction || dead >= policy.trigger_dead_bytes);
    }
    triggered |= small_count >= policy.trigger_small_files.max(2);
    if triggered && (gain || small_count > 1) { chosen } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(id: FileId, length: u64, live_bytes: u64, tombstone_bytes: u64) -> Candidate {
        Candidate { id, length, live_bytes, tombstone_bytes, damaged: false }
    }

    fn policy() -> MergePolicy {
        MergePolicy {
            trigger_dead_fraction: 0.6,
            trigger_dead_bytes: 600,
            trigger_small_files: 3,
            threshold_dead_fraction: 0.4,
            threshold_dead_bytes: 400,
            small_file_bytes: 10,
            ..MergePolicy::default()
        }
    }

    #[test]
    fn a_trigger_takes_along_what_reaches_the_threshold() {
        let files = [file(1, 100, 61, 0), file(2, 100, 60, 0), file(3, 100, 40, 0)];
        assert_eq!(choose(&files, &policy()), [2, 3]);
        assert_eq!(choose(&files[..2], &policy()), []);
        let large =
            [file(1, 10_000, 9_400, 0), file(2, 10_000, 9_600, 0), file(3, 10_000, 9_601, 0)];
        assert_eq!(choose(&large, &policy()), [1, 2]);
        assert_eq!(choose(&large[1..], &policy()), []);
    }

    #[test]
    fn many_small_files_are_merged_and_one_is_not_merged_for_ever() {
        let files = [file(1, 9, 9, 0), file(2, 9, 9, 0), file(3, 9, 9, 0), file(4, 10, 10, 0)];
        assert_eq!(choose(&files, &policy()), [1, 2, 3]);
        assert_eq!(choose(&files[1..], &policy()), []);
        assert_eq!(choose(&[file(1, 0, 0, 0)], &policy()), []);
    }

    #[test]
    fn tombstones_count_as_dead_only_if_nothing_older_needs_them() {
        let needed = [file(1, 100, 90, 0), file(2, 100, 0, 100)];
        assert_eq!(choose(&needed, &policy()), []);
        let older_is_merged_too = [file(1, 100, 10, 0), file(2, 100, 0, 100)];
        assert_eq!(choose(&older_is_merged_too, &policy()), [1, 2]);
        let nothing_hidden_before = [file(1, 100, 100, 0), file(2, 100, 0, 100)];
        assert_eq!(choose(&nothing_hidden_before, &policy()), [2]);
    }

    #[test]
    fn damaged_files_are_left_alone_and_keep_later_tombstones() {
        let damaged = Candidate { damaged: true, ..file(1, 100, 10, 0) };
        assert_eq!(choose(&[damaged, file(2, 100, 0, 100)], &policy()), []);
    }
}
