//! How far a table that is being written reaches over the level below its own.
//!
//! When its turn comes to be merged down, a table is merged with all that it overlaps there. Where
//! keys are spread evenly that is `level_ratio` times its size; but few keys spread over the whole
//! key space make a small table that brings in the whole level below: a compaction that runs for
//! minutes, takes as much space again meanwhile, and keeps level 0 from being merged into the level
//! that it reads. So a table ends where it reaches over twice what is usual. (LevelDB ends it at
//! ten tables, which is its ratio; even keys would cut every other table short here.) About as much
//! is rewritten in all, but in steps of bounded size: for the 160 keys over 1.7 MB of the test, 14
//! steps of at most 133 KB that read 1.77 MB together, where there was one of 1.74 MB.

use std::sync::Arc;

use super::edit::LEVEL_COUNT;
use super::options::Options;
use super::version::{TableFile, UserRange, Version};

/// The most that a table of `level` is to overlap one level down, in bytes.
fn limit(options: &Options) -> u64 {
    options.table_bytes.saturating_mul(options.level_ratio).saturating_mul(2)
}

/// Whether a table of `level` over `range` would reach too far.
pub(crate) fn is_too_wide(
    version: &Version,
    level: usize,
    range: UserRange<'_>,
    options: &Options,
) -> bool {
    let sizes = below(version, level, range).map(|table| table.info.size);
    sizes.sum::<u64>() > limit(options)
}

fn below<'a>(
    version: &'a Version,
    level: usize,
    range: UserRange<'a>,
) -> impl Iterator<Item = &'a Arc<TableFile>> {
    let level = Some(level + 1).filter(|below| *below < LEVEL_COUNT);
    level.into_iter().flat_map(move |below| version.overlapping(below, range))
}

/// Follows the keys of one table after the other.
pub(crate) struct Reach<'a> {
    /// The tables below that have not been passed.
    ahead: std::slice::Iter<'a, Arc<TableFile>>,
    passed_bytes: u64,
    limit: u64,
}

impl<'a> Reach<'a> {
    /// For tables of `level`.
    pub(crate) fn new(version: &'a Version, level: usize, options: &Options) -> Self {
        let tables = if level + 1 < LEVEL_COUNT { version.level(level + 1) } else { &[] };
        Self { ahead: tables.iter(), passed_bytes: 0, limit: limit(options) }
    }

    /// On to `user_key`, at or behind the last one. Tells whether the table reaches too far with
    /// it: over more than the limit beside the table below in which the key lies.
    pub(crate) fn extend(&mut self, user_key: &[u8]) -> bool {
        while let [next, ..] = self.ahead.as_slice()
            && next.largest() < user_key
        {
            self.passed_bytes += next.info.size;
            self.ahead.next();
        }
        self.passed_bytes > self.limit
    }

    /// The last key is the first of a new table.
    pub(crate) fn restart(&mut self) {
        self.passed_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lsm::Lsm;
    use crate::lsm::edit::TableInfo;
    use crate::lsm::filename::FileNumber;
    use crate::lsm::janitor::Disposal;
    use crate::lsm::key::{EntryKind, Sequence, push_internal_key};
    use crate::lsm::picker::{Choice, Merge, plan_level0};
    use crate::{Compression, Engine, KeyRange};

    fn table(number: u64, smallest: &str, largest: &str, size: u64) -> Arc<TableFile> {
        let key = |user: &str| {
            let mut key = Vec::new();
            push_internal_key(&mut key, user.as_bytes(), Sequence(number), EntryKind::Value);
            key
        };
        let (smallest, largest) = (key(smallest), key(largest));
        let info = TableInfo { number: FileNumber(number), size, smallest, largest };
        TableFile::new(info, true, Disposal::nowhere())
    }

    #[test]
    fn a_table_reaches_too_far_when_it_has_passed_more_than_the_limit() {
        let options = Options { table_bytes: 10, level_ratio: 2, ..Options::default() };
        let tables = [("b", "c", 15), ("e", "f", 25), ("h", "i", 1), ("k", "l", 50)];
        let tables = (1..).zip(tables).map(|(n, (from, to, size))| (2, table(n, from, to, size)));
        let version = Version::new(tables).unwrap();
        let mut reach = Reach::new(&version, 1, &options);
        let follow = |reach: &mut Reach<'_>, keys: &[&str]| -> Vec<bool> {
            keys.iter().map(|key| reach.extend(key.as_bytes())).collect()
        };
        // 15 and 25 are the limit of 40, and 1 more is too much.
        assert_eq!(
            follow(&mut reach, &["a", "c", "d", "g", "i", "j"]),
            [false, false, false, false, false, true]
        );
        reach.restart();
        assert_eq!(follow(&mut reach, &["j", "l", "m"]), [false, false, true]);
        // Nothing lies below the tables of level 2.
        assert_eq!(follow(&mut Reach::new(&version, 2, &options), &["a", "z"]), [false, false]);
        let is_wide = |smallest: &str, largest: &str| {
            let (smallest, largest) = (smallest.as_bytes(), largest.as_bytes());
            is_too_wide(&version, 1, UserRange { smallest, largest }, &options)
        };
        assert_eq!((is_wide("a", "g"), is_wide("a", "h"), is_wide("j", "z")), (false, true, true));
    }

    /// 160 keys, all over 1.7 MB: no step of the next compaction reads all of that.
    #[test]
    fn few_keys_over_all_others_end_in_tables_that_are_merged_one_by_one() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options {
            compression: Compression::None,
            memtable_bytes: 16 << 10,
            table_bytes: 16 << 10,
            level1_bytes: 1 << 20,
            level_ratio: 4,
            ..Options::default()
        };
        let store = Lsm::open(directory.path(), options.clone()).unwrap();
        let key = |at: u32| at.to_be_bytes();
        for at in 0..8000 {
            store.put(&key(at), &[7; 200]).unwrap();
        }
        store.compact().unwrap();
        for part in 0..2 {
            for at in 0..80 {
                store.put(&key(at * 100 + part * 50), b"new").unwrap();
            }
            store.flush().unwrap();
        }
        let merge = plan_level0(&store.core.view.load().version, KeyRange::all()).unwrap();
        store.core.carry_out(merge, 1).unwrap();
        let version = Arc::clone(&store.core.view.load().version);
        assert!(version.level_bytes(2) > 1_600_000 && version.level(0).is_empty());
        let steps = version.level(1).iter().map(|upper| {
            let lower: Vec<_> = version.overlapping(2, upper.range()).cloned().collect();
            let lower = lower.into_iter().map(|table| (2, table));
            let inputs = lower.chain([(1, Arc::clone(upper))]).collect();
            Merge { inputs, output_level: 2 }
        });
        let steps: Vec<_> = steps.collect();
        let largest = steps.iter().map(Merge::input_bytes).max().unwrap();
        let all: u64 = steps.iter().map(Merge::input_bytes).sum();
        // What is passed, the table with the first key, the one with the last, each up to half as
        // large again, and the table itself.
        assert!(largest <= limit(&options) + 4 * options.table_bytes, "{largest} in one step");
        assert!(all < version.level_bytes(2) * 3 / 2, "{all} in all");
        for step in steps {
            store.core.carry_out(Choice::Merge(step), 1).unwrap();
        }
        for at in 0..8000 {
            let expected = if at % 50 == 0 { &b"new"[..] } else { &[7; 200] };
            assert_eq!(store.get_vec(&key(at)).unwrap().unwrap(), expected);
        }
    }
}
