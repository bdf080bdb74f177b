//! The policy, case by case.

use super::*;
use crate::KeyRange;
use crate::lsm::edit::TableInfo;
use crate::lsm::janitor::Disposal;
use crate::lsm::key::{EntryKind, Sequence, push_internal_key};
use crate::lsm::key_count::KeySketch;

const MIB: u64 = 1 << 20;

/// A table: level, number, smallest and largest user key, size in MiB.
type Spec<'a> = (usize, u64, &'a str, &'a str, u64);

fn table((_, number, smallest, largest, mib): Spec<'_>, is_clean: bool) -> Arc<TableFile> {
    let key = |user: &str| {
        let mut key = Vec::new();
        push_internal_key(&mut key, user.as_bytes(), Sequence(number), EntryKind::Value);
        key
    };
    let info = TableInfo {
        number: FileNumber(number),
        size: mib * MIB,
        smallest: key(smallest),
        largest: key(largest),
    };
    TableFile::new(info, is_clean, Disposal::nowhere())
}

fn version(specs: &[Spec<'_>]) -> Version {
    Version::new(specs.iter().map(|spec| (spec.0, table(*spec, false)))).unwrap()
}

fn options() -> Options {
    Options {
        level0_tables: 8,
        level1_bytes: 100 * MIB,
        level_ratio: 10,
        table_bytes: 10 * MIB,
        ..Options::default()
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Picked {
    Nothing,
    Move(usize, usize, Vec<u64>),
    Merge(Vec<(usize, u64)>, usize),
}

fn describe(choice: Option<Choice>) -> Picked {
    match choice {
        None => Picked::Nothing,
        Some(Choice::Move { from, to, tables }) => {
            let mut numbers: Vec<_> = tables.iter().map(|table| table.info.number.0).collect();
            numbers.sort_unstable();
            Picked::Move(from, to, numbers)
        }
        Some(Choice::Merge(merge)) => {
            let mut inputs: Vec<_> =
                merge.inputs.iter().map(|(level, table)| (*level, table.info.number.0)).collect();
            inputs.sort_unstable();
            Picked::Merge(inputs, merge.output_level)
        }
    }
}

fn pick_with(version: &Version, busy: &[u64], read_debt_bytes: u64) -> Picked {
    let busy = busy.iter().copied().map(FileNumber).collect();
    let options = options();
    describe(pick(&Situation { version, options: &options, busy: &busy, read_debt_bytes }))
}

fn picked(specs: &[Spec<'_>]) -> Picked {
    pick_with(&version(specs), &[], 0)
}

/// Overlapping level-0 tables.
fn level0(count: u64) -> Vec<Spec<'static>> {
    (0..count).map(|at| (0, 100 + at, "a", "z", 1)).collect()
}

fn all_of(specs: &[Spec<'_>]) -> Vec<(usize, u64)> {
    let mut all: Vec<_> = specs.iter().map(|spec| (spec.0, spec.1)).collect();
    all.sort_unstable();
    all
}

#[test]
fn level_zero_gathers_tables_until_there_are_enough() {
    assert_eq!(picked(&level0(7)), Picked::Nothing);
    assert_eq!(picked(&level0(8)), Picked::Merge(all_of(&level0(8)), 1));
}

#[test]
fn level_zero_is_merged_when_it_is_half_of_what_lies_below() {
    let mut specs = level0(4);
    specs.push((1, 1, "a", "c", 5));
    specs.push((2, 2, "x", "z", 4));
    assert_eq!(picked(&specs), Picked::Nothing);
    specs[0].4 = 2;
    // Five of nine: level 1 is taken along, level 2 is not.
    let inputs = all_of(&specs).into_iter().filter(|(level, _)| *level < 2).collect();
    assert_eq!(picked(&specs), Picked::Merge(inputs, 1));
    // Fewer tables are not worth it, however large.
    let few = [(0, 100, "a", "z", 50), (0, 101, "a", "z", 50), (1, 1, "a", "z", 5)];
    assert_eq!(picked(&few), Picked::Nothing);
}

#[test]
fn level_zero_is_merged_when_enough_of_all_is_overwritten() {
    let table_of = |level, number, keys: std::ops::Range<u32>| {
        let mut sketch = KeySketch::default();
        keys.clone().for_each(|key| sketch.add(&key.to_be_bytes()));
        // As many KiB as thousands of keys.
        let mut info = table((level, number, "a", "z", 0), true).info.clone();
        info.size = u64::from(keys.end - keys.start) / 1000 * 1024;
        (level, TableFile::written(info, true, Some(sketch), Disposal::nowhere()))
    };
    let picked_of = |below: u32, level0: &[std::ops::Range<u32>]| {
        let level0 = (10..).zip(level0).map(|(number, keys)| table_of(0, number, keys.clone()));
        let below = (below > 0).then(|| table_of(1, 1, 0..below));
        pick_with(&Version::new(level0.chain(below)).unwrap(), &[], 0)
    };
    let k = 10_000;
    let all_of = |count: u64| -> Vec<_> { (10..10 + count).map(|number| (0, number)).collect() };
    // New keys take no space twice, however many they are and whatever lies below.
    let news = [10 * k..12 * k, 12 * k..14 * k, 14 * k..16 * k, 16 * k..18 * k];
    assert_eq!(picked_of(0, &news), Picked::Nothing);
    assert_eq!(picked_of(k, &news), Picked::Nothing);
    // Half a table in vain beside four and a half, and one and a half beside three and a half.
    let half = [0..k, k..2 * k, 2 * k..3 * k, 3 * k..4 * k, 7 * k / 2..9 * k / 2];
    assert_eq!(picked_of(0, &half), Picked::Nothing);
    let more = [0..k, k..2 * k, 2 * k..3 * k, 5 * k / 2..7 * k / 2, 0..k];
    assert_eq!(picked_of(0, &more), Picked::Merge(all_of(5), 1));
    // Four in vain beside thirty, and beside ten.
    let again = [0..k, k..2 * k, 2 * k..3 * k, 3 * k..4 * k];
    assert_eq!(picked_of(30 * k, &again), Picked::Nothing);
    let inputs = all_of(4).into_iter().chain([(1, 1)]).collect();
    assert_eq!(picked_of(10 * k, &again), Picked::Merge(inputs, 1));
}

#[test]
fn reads_that_have_paid_for_a_merge_get_it() {
    let mut specs = level0(4);
    specs.push((1, 1, "a", "z", 20));
    let version = version(&specs);
    assert_eq!(pick_with(&version, &[], 24 * MIB - 1), Picked::Nothing);
    assert_eq!(pick_with(&version, &[], 24 * MIB), Picked::Merge(all_of(&specs), 1));
}

#[test]
fn level_zero_tables_that_stand_alone_move_down() {
    let mut specs = level0(7);
    specs.push((0, 1, "A", "B", 1));
    specs.push((1, 2, "0", "1", 1));
    assert_eq!(picked(&specs), Picked::Move(0, 1, vec![1]));
    // Not over a table of level 1 that shares a key.
    specs.push((1, 3, "B", "BB", 1));
    let inputs = all_of(&specs).into_iter().filter(|(_, number)| *number != 2).collect();
    assert_eq!(picked(&specs), Picked::Merge(inputs, 1));
}

#[test]
fn a_table_that_would_overlap_too_much_from_its_new_level_is_rewritten() {
    // Twice the ratio times the size of a table: 200 MiB.
    let with_below = |mib| picked(&[(1, 1, "a", "c", 150), (3, 2, "b", "b", mib)]);
    assert_eq!(with_below(200), Picked::Move(1, 2, vec![1]));
    assert_eq!(with_below(201), Picked::Merge(vec![(1, 1)], 2));
    let mut specs = level0(7);
    specs.extend([(0, 1, "A", "B", 1), (2, 2, "A", "B", 201)]);
    let inputs = all_of(&specs).into_iter().filter(|(_, number)| *number != 2).collect();
    assert_eq!(picked(&specs), Picked::Merge(inputs, 1));
}

#[test]
fn sequential_tables_all_move() {
    let keys = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let specs: Vec<_> = (0u64..).zip(keys).map(|(at, key)| (0, 10 + at, key, key, 1)).collect();
    assert_eq!(picked(&specs), Picked::Move(0, 1, (10..18).collect()));
}

#[test]
fn nothing_is_picked_that_a_running_compaction_reads() {
    let mut specs = level0(8);
    specs.push((1, 1, "c", "d", 1));
    for busy in [100, 107, 1] {
        assert_eq!(pick_with(&version(&specs), &[busy], 0), Picked::Nothing);
    }
}

#[test]
fn a_level_over_its_size_gives_a_table_to_the_next() {
    let level1 = [(1, 1, "a", "c", 50), (1, 2, "d", "f", 50), (1, 3, "g", "i", 1)];
    let mut specs = level1.to_vec();
    specs.push((2, 4, "b", "e", 1));
    // Table 1 alone would bring table 4 in; then table 2 comes for nothing.
    assert_eq!(picked(&specs), Picked::Merge(vec![(1, 1), (1, 2), (2, 4)], 2));
    let mut version = version(&specs);
    version.set_pointer(1, level1_largest(&version, 1));
    assert_eq!(pick_with(&version, &[], 0), Picked::Move(1, 2, vec![3]));
    version.set_pointer(1, level1_largest(&version, 2));
    // Round the end.
    assert!(matches!(pick_with(&version, &[], 0), Picked::Merge(..)));
    assert_eq!(picked(&specs[..2]), Picked::Nothing);
}

fn level1_largest(version: &Version, at: usize) -> Vec<u8> {
    version.level(1)[at].info.largest.clone()
}

#[test]
fn tables_that_more_below_would_have_to_follow_are_left_out() {
    let specs =
        [(1, 1, "a", "c", 60), (1, 2, "d", "m", 60), (2, 3, "b", "e", 1), (2, 4, "k", "p", 1)];
    assert_eq!(picked(&specs), Picked::Merge(vec![(1, 1), (2, 3)], 2));
}

#[test]
fn the_last_level_may_grow() {
    assert_eq!(picked(&[(6, 1, "a", "b", 1 << 40)]), Picked::Nothing);
}

fn full(tables: &[(Spec<'_>, bool)]) -> Vec<Picked> {
    let version =
        Version::new(tables.iter().map(|(spec, is_clean)| (spec.0, table(*spec, *is_clean))))
            .unwrap();
    let plan = plan_full_compaction(&version, &options());
    plan.into_iter().map(|choice| describe(Some(choice))).collect()
}

#[test]
fn a_full_compaction_rewrites_what_overlaps_and_leaves_what_is_clean() {
    let plan = full(&[
        ((1, 1, "a", "b", 1), true),
        ((0, 2, "c", "e", 1), true),
        ((0, 3, "d", "f", 1), true),
        ((1, 4, "g", "h", 1), false),
        ((0, 5, "i", "j", 1), true),
        ((1, 6, "k", "l", 1), false),
    ]);
    let expected = [
        // Table 1 stays where it is; 2, 3 and 4 have nothing between them that does.
        Picked::Merge(vec![(0, 2), (0, 3), (1, 4)], 1),
        Picked::Move(0, 1, vec![5]),
        Picked::Merge(vec![(1, 6)], 1),
    ];
    assert_eq!(plan, expected);
    assert_eq!(full(&[]), []);
    assert_eq!(full(&[((1, 1, "a", "z", 1), true)]), []);
}

#[test]
fn a_full_compaction_ends_where_everything_fits_and_not_above_what_is_there() {
    let level = |specs: &[Spec<'_>]| full_compaction_level(&version(specs), &options());
    assert_eq!(level(&[(0, 1, "a", "b", 100)]), 1);
    assert_eq!(level(&[(0, 1, "a", "b", 101)]), 2);
    assert_eq!(level(&[(0, 1, "a", "b", 1), (4, 2, "a", "b", 1)]), 4);
    assert_eq!(level(&[(0, 1, "a", "b", 1 << 40)]), 6);
    assert_eq!(level(&[]), 1);
}

fn described(plan: impl IntoIterator<Item = Choice>) -> Vec<Picked> {
    plan.into_iter().map(|choice| describe(Some(choice))).collect()
}

fn of_range(tables: &[(Spec<'_>, bool)], start: &str, end: &str) -> (Vec<Picked>, Vec<Picked>) {
    let version =
        Version::new(tables.iter().map(|(spec, is_clean)| (spec.0, table(*spec, *is_clean))))
            .unwrap();
    let range = KeyRange::between(start.as_bytes(), end.as_bytes());
    (described(plan_level0(&version, range)), described(plan_below_level0(&version, range)))
}

#[test]
fn a_range_takes_of_level_zero_what_holds_its_keys_and_what_that_overlaps() {
    let tables = [
        ((0, 9, "a", "c", 1), true),
        ((0, 8, "c", "f", 1), true),
        ((0, 7, "g", "h", 1), true),
        ((1, 3, "a", "b", 1), true),
        ((1, 4, "f", "g", 1), true),
        ((1, 5, "h", "k", 1), true),
    ];
    let inputs = vec![(0, 8), (0, 9), (1, 3), (1, 4)];
    assert_eq!(of_range(&tables, "d", "e").0, [Picked::Merge(inputs, 1)]);
    // The end is not part of it: "h" alone.
    let inputs = vec![(0, 7), (1, 4), (1, 5)];
    assert_eq!(of_range(&tables, "g", "h").0, [Picked::Merge(inputs, 1)]);
    assert_eq!(of_range(&tables, "i", "z").0, []);
    assert_eq!(of_range(&tables[..3], "g", "z").0, [Picked::Move(0, 1, vec![7])]);
}

#[test]
fn a_range_goes_to_the_deepest_level_that_has_some_of_it_and_takes_along_what_it_overlaps() {
    let tables = [
        ((1, 1, "a", "e", 1), true),
        ((1, 2, "m", "p", 1), true),
        ((2, 3, "b", "c", 1), true),
        ((2, 4, "e", "j", 1), true),
        ((3, 5, "j", "l", 1), true),
        ((3, 6, "m", "m", 1), true),
        ((4, 7, "q", "z", 1), true),
    ];
    // Table 1 holds keys of the range and brings in 3 and 4, which brings in 5.
    let inputs = vec![(1, 1), (2, 3), (2, 4), (3, 5)];
    assert_eq!(of_range(&tables, "d", "k").1, [Picked::Merge(inputs, 3)]);
    let inputs = vec![(1, 2), (3, 6)];
    assert_eq!(of_range(&tables, "m", "n").1, [Picked::Merge(inputs, 3)]);
    // Level 1 is the deepest with keys of the range, and its table is clean.
    assert_eq!(of_range(&tables, "n", "o").1, []);
    // An only table that may hold something to reclaim is rewritten where it is.
    let only = [((2, 1, "a", "c", 1), false)];
    assert_eq!(of_range(&only, "b", "c").1, [Picked::Merge(vec![(2, 1)], 2)]);
}
