//! Which files to merge: a pure choice.

use crate::bitcask::clock::Timestamp;
use crate::bitcask::names::FileId;
use crate::bitcask::options::MergePolicy;

/// What the choice is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) id: FileId,
    pub(super) length: u64,
    pub(super) live_bytes: u64,
    pub(super) tombstone_bytes: u64,
    /// The part of the live bytes that has probably expired, see [`expired_bytes`].
    pub(super) expired_bytes: u64,
    /// The earliest time at which something in the file may have died.
    pub(super) dead_since: Option<Timestamp>,
    /// Damaged files are left for a person to look at.
    pub(super) damaged: bool,
    /// The file is written to. It is sealed early only for the sake of time.
    pub(super) active: bool,
}

impl Candidate {
    /// Bytes of records that were overwritten or deleted, damage counted as such.
    pub(super) fn shadowed_bytes(&self) -> u64 {
        self.length.saturating_sub(self.live_bytes).saturating_sub(self.tombstone_bytes)
    }

    fn has_been_dead_too_long(&self, policy: &MergePolicy, now: Timestamp) -> bool {
        let age = self.dead_since.map(|since| u64::from(now.saturating_sub(since)));
        age.zip(policy.max_dead_age).is_some_and(|(age, limit)| age >= limit.as_secs())
    }
}

/// The files to merge now, ascending; none if it is not worth it.
///
/// A tombstone is dead weight only if nothing older is left that it hides: if each older file is
/// merged too, or holds nothing that was overwritten or deleted.
pub(super) fn choose(
    candidates: &[Candidate],
    policy: &MergePolicy,
    now: Timestamp,
) -> Vec<FileId> {
    let mut chosen = Vec::new();
    let (mut triggered, mut small_count, mut gain) = (false, 0, false);
    let mut tombstones_are_dead = true;
    for file in candidates {
        let kept_tombstones = if tombstones_are_dead { 0 } else { file.tombstone_bytes };
        let kept = file.live_bytes.saturating_sub(file.expired_bytes);
        let dead = file.length.saturating_sub(kept).saturating_sub(kept_tombstones);
        let share = |bytes: u64| bytes as f64 / file.length.max(1) as f64;
        let too_long = dead > 0 && file.has_been_dead_too_long(policy, now);
        let expires =
            file.expired_bytes > 0 && share(file.expired_bytes) >= policy.trigger_dead_fraction;
        let reaches =
            |fraction: f64, bytes: u64| dead > 0 && (share(dead) >= fraction || dead >= bytes);
        let worth = if file.active {
            too_long || expires
        } else {
            too_long || reaches(policy.threshold_dead_fraction, policy.threshold_dead_bytes)
        };
        let small = !file.active && file.length < policy.small_file_bytes;
        if file.damaged || !(worth || small) {
            tombstones_are_dead &= file.shadowed_bytes() == 0;
            continue;
        }
        chosen.push(file.id);
        small_count += usize::from(small);
        gain |= worth;
        triggered |=
            worth && (too_long || reaches(policy.trigger_dead_fraction, policy.trigger_dead_bytes));
    }
    triggered |= small_count >= policy.trigger_small_files.max(2);
    if triggered && (gain || small_count > 1) { chosen } else { Vec::new() }
}

/// How many of a file's `live_bytes` are of records from before `dropped_before`, if they were
/// written evenly from the time of the oldest record to that of the newest.
///
/// None is reckoned where the oldest record is not that old. So a merge, after which that is so,
/// is never followed by another for the same records.
pub(super) fn expired_bytes(
    live_bytes: u64,
    ages: Option<(Timestamp, Timestamp)>,
    dropped_before: Timestamp,
) -> u64 {
    let Some((oldest, newest)) = ages else { return 0 };
    let expired_seconds = dropped_before.saturating_sub(oldest);
    let seconds = newest.saturating_sub(oldest).saturating_add(1);
    if expired_seconds >= seconds {
        return live_bytes;
    }
    let bytes = u128::from(live_bytes) * u128::from(expired_seconds) / u128::from(seconds);
    u64::try_from(bytes).unwrap_or(live_bytes)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn file(id: FileId, length: u64, live_bytes: u64, tombstone_bytes: u64) -> Candidate {
        Candidate {
            id,
            length,
            live_bytes,
            tombstone_bytes,
            expired_bytes: 0,
            dead_since: None,
            damaged: false,
            active: false,
        }
    }

    fn choose(candidates: &[Candidate], policy: &MergePolicy) -> Vec<FileId> {
        super::choose(candidates, policy, 10_000)
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

    #[test]
    fn what_has_been_dead_too_long_goes_however_little_it_is() {
        let policy = MergePolicy { max_dead_age: Some(Duration::from_secs(1_000)), ..policy() };
        let dead_since = |since, file| Candidate { dead_since: Some(since), ..file };
        for (candidate, expected) in [
            (dead_since(9_000, file(1, 1_000, 999, 0)), &[1][..]),
            (dead_since(9_001, file(1, 1_000, 999, 0)), &[]),
            // From the future: the clock was put back.
            (dead_since(20_000, file(1, 1_000, 999, 0)), &[]),
            (file(1, 1_000, 999, 0), &[]),
            // Nothing is dead any more.
            (dead_since(9_000, file(1, 1_000, 1_000, 0)), &[]),
            // The file that is written to is sealed for it.
            (Candidate { active: true, ..dead_since(9_000, file(1, 1_000, 999, 0)) }, &[1]),
            (Candidate { damaged: true, ..dead_since(9_000, file(1, 1_000, 999, 0)) }, &[]),
        ] {
            assert_eq!(choose(&[candidate], &policy), expected, "{candidate:?}");
            assert_eq!(choose(&[candidate], &self::policy()), [], "{candidate:?}");
        }
        // A tombstone that an older file needs is not dead.
        let needs = [file(1, 1_000, 900, 0), dead_since(1, file(2, 1_000, 900, 100))];
        assert_eq!(choose(&needs, &policy), []);
    }

    #[test]
    fn what_has_expired_counts_as_dead() {
        let expired = |bytes, file| Candidate { expired_bytes: bytes, ..file };
        let files = [expired(60, file(1, 100, 100, 0)), expired(40, file(2, 100, 100, 0))];
        assert_eq!(choose(&files, &policy()), [1, 2]);
        assert_eq!(choose(&files[1..], &policy()), []);
        // Together with what is dead otherwise.
        assert_eq!(choose(&[expired(30, file(1, 100, 70, 0))], &policy()), [1]);
        assert_eq!(choose(&[expired(29, file(1, 100, 70, 0))], &policy()), []);
    }

    #[test]
    fn the_file_that_is_written_to_is_sealed_for_what_has_expired_only() {
        let active = |file| Candidate { active: true, ..file };
        assert_eq!(choose(&[active(file(1, 100, 0, 0))], &policy()), []);
        let expired = active(Candidate { expired_bytes: 60, ..file(1, 100, 100, 0) });
        assert_eq!(choose(&[expired], &policy()), [1]);
        let small = [file(1, 9, 9, 0), file(2, 9, 9, 0), active(file(3, 9, 9, 0))];
        assert_eq!(choose(&small, &policy()), []);
    }

    #[test]
    fn the_expired_part_is_estimated_from_the_oldest_and_the_newest_record() {
        for (ages, dropped_before, expected) in [
            (None, 10_000, 0),
            (Some((100, 199)), 0, 0),
            (Some((100, 199)), 100, 0),
            (Some((100, 199)), 150, 500),
            (Some((100, 199)), 199, 990),
            (Some((100, 199)), 200, 1_000),
            (Some((100, 100)), 100, 0),
            (Some((100, 100)), 101, 1_000),
            (Some((0, u32::MAX)), u32::MAX, 1_000),
        ] {
            assert_eq!(expired_bytes(1_000, ages, dropped_before), expected, "{ages:?}");
        }
        assert_eq!(expired_bytes(u64::MAX, Some((0, 1)), 1), u64::MAX / 2);
    }
}
