//! Bitcask against an ordered map: whatever is done, both hold the same.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use engines::bitcask::{Bitcask, Options};
use engines::fs::FileSystem;
use engines::fs::sim::{CrashModel, SimFs};
use engines::{Batch, Direction, Durability, Engine, Error, KeyRange};
use proptest::prelude::*;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Debug, Clone)]
enum Step {
    Put(u8, u16),
    Delete(u8),
    Write(Vec<(u8, Option<u16>)>),
    Sync,
    Compact,
    Quiesce,
    /// Closes and opens again, without the hint files if so.
    Reopen(bool),
    /// Scans from one key to another.
    Scan(u8, u8, bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = || 0..24u8;
    let size = || prop_oneof![8 => 0..200u16, 1 => 200..6_000u16];
    let operation = (key(), proptest::option::of(size()));
    let step = prop_oneof![
        12 => (key(), size()).prop_map(|(key, size)| Step::Put(key, size)),
        4 => key().prop_map(Step::Delete),
        4 => proptest::collection::vec(operation, 0..8).prop_map(Step::Write),
        1 => Just(Step::Sync),
        1 => Just(Step::Compact),
        1 => Just(Step::Quiesce),
        1 => any::<bool>().prop_map(Step::Reopen),
        1 => (key(), key(), any::<bool>()).prop_map(|(from, to, back)| Step::Scan(from, to, back)),
    ];
    proptest::collection::vec(step, 1..120)
}

fn options() -> impl Strategy<Value = Options> {
    let durability = prop::sample::select(&Durability::ALL[..]);
    (durability, 100..5_000u64, 0..2_000usize, any::<bool>(), 1..4usize).prop_map(
        |(durability, max_file_bytes, buffer_bytes, merges, small_files)| {
            let mut options =
                Options { durability, max_file_bytes, buffer_bytes, ..Options::default() };
            options.merge.enabled = merges;
            options.merge.small_file_bytes = max_file_bytes / 2;
            options.merge.trigger_small_files = small_files;
            options
        },
    )
}

/// Keys of many lengths, the empty one too.
fn key(number: u8) -> Vec<u8> {
    vec![number; usize::from(number) * 3 % 40]
}

/// No two values are alike.
fn value(step: usize, size: u16) -> Vec<u8> {
    let mut value = vec![b'v'; usize::from(size)];
    let stamp = step.to_be_bytes();
    let length = stamp.len().min(value.len());
    value[..length].copy_from_slice(&stamp[stamp.len() - length..]);
    value
}

fn open(disk: &SimFs, options: &Options) -> Bitcask {
    Bitcask::open_in(Arc::new(disk.clone()), Path::new("/data"), options.clone()).unwrap()
}

fn remove_hints(disk: &SimFs) {
    for entry in disk.list(Path::new("/data")).unwrap() {
        if entry.name().unwrap().ends_with(".hint") {
            disk.remove(&entry.path).unwrap();
        }
    }
}

fn scan(store: &Bitcask, range: KeyRange<'_>, direction: Direction) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        found.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    };
    store.scan(range, direction, &mut visit).unwrap();
    found
}

fn check(store: &Bitcask, model: &Model) {
    let found = scan(store, KeyRange::all(), Direction::Forward);
    assert!(found.iter().map(|(key, value)| (key, value)).eq(model.iter()), "scan");
    for number in 0..24 {
        let key = key(number);
        assert_eq!(store.get_vec(&key).unwrap().as_ref(), model.get(&key));
    }
    assert_eq!(store.stats().unwrap().live_records, Some(model.len() as u64));
}

fn check_range(store: &Bitcask, model: &Model, from: u8, to: u8, back: bool) {
    let (from, to) = (key(from).min(key(to)), key(from).max(key(to)));
    let direction = if back { Direction::Backward } else { Direction::Forward };
    let found = scan(store, KeyRange::between(&from, &to), direction);
    let range = (Bound::Included(from), Bound::Excluded(to));
    let mut expected: Vec<_> =
        model.range(range).map(|(key, value)| (key.clone(), value.clone())).collect();
    if back {
        expected.reverse();
    }
    assert_eq!(found, expected);
}

fn apply(model: &mut Model, key: Vec<u8>, value: Option<Vec<u8>>) {
    match value {
        Some(value) => model.insert(key, value),
        None => model.remove(&key),
    };
}

fn run(steps: Vec<Step>, options: &Options) {
    let disk = SimFs::new();
    let mut store = open(&disk, options);
    let mut model = Model::new();
    for (number, step) in steps.into_iter().enumerate() {
        match step {
            Step::Put(which, size) => {
                store.put(&key(which), &value(number, size)).unwrap();
                apply(&mut model, key(which), Some(value(number, size)));
            }
            Step::Delete(which) => {
                store.delete(&key(which)).unwrap();
                apply(&mut model, key(which), None);
            }
            Step::Write(operations) => {
                let mut batch = Batch::new();
                for (at, (which, size)) in operations.into_iter().enumerate() {
                    let new = size.map(|size| value(number * 1_000 + at, size));
                    match &new {
                        Some(new) => batch.put(&key(which), new).unwrap(),
                        None => batch.delete(&key(which)).unwrap(),
                    }
                    apply(&mut model, key(which), new);
                }
                store.write(&batch).unwrap();
            }
            Step::Sync => store.sync().unwrap(),
            Step::Quiesce => store.quiesce().unwrap(),
            Step::Compact => {
                store.compact().unwrap();
                assert_eq!(store.stats().unwrap().dead_bytes, Some(0));
                check(&store, &model);
            }
            Step::Reopen(without_hints) => {
                Box::new(store).close().unwrap();
                if without_hints {
                    remove_hints(&disk);
                }
                store = open(&disk, options);
                assert_eq!(store.damage(), []);
                check(&store, &model);
            }
            Step::Scan(from, to, back) => check_range(&store, &model, from, to, back),
        }
    }
    check(&store, &model);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn a_bitcask_is_an_ordered_map(steps in steps(), options in options()) {
        run(steps, &options);
    }
}

#[test]
fn a_directory_is_opened_once_and_created_only_if_asked() {
    let disk = SimFs::new();
    let no_create = Options { create: false, ..Options::default() };
    let at = |path: &str, options: &Options| {
        Bitcask::open_in(Arc::new(disk.clone()), Path::new(path), options.clone())
    };
    assert!(matches!(at("/data", &no_create), Err(Error::NotADatabase { .. })));
    assert_eq!(disk.mark(), 0);
    let store = at("/data", &Options::default()).unwrap();
    assert!(matches!(at("/data", &Options::default()), Err(Error::Locked { .. })));
    store.put(b"key", b"value").unwrap();
    drop(store);
    assert_eq!(at("/data", &no_create).unwrap().get_vec(b"key").unwrap().unwrap(), b"value");
}

/// The tombstone of a key is kept as long as an older file holds the key, and no longer.
#[test]
fn a_deleted_key_stays_deleted_through_partial_merges() {
    let disk = SimFs::new();
    let mut options = Options { max_file_bytes: 1_000, ..Options::default() };
    options.merge.enabled = false;
    // The first file holds the key, and enough that lives for no merge to want it.
    let store = open(&disk, &options);
    store.put(b"key", &[1; 100]).unwrap();
    store.put(b"stays", &[2; 800]).unwrap();
    store.put(b"next file", &[3; 500]).unwrap();
    store.delete(b"key").unwrap();
    store.delete(b"next file").unwrap();
    Box::new(store).close().unwrap();

    options.merge.enabled = true;
    options.merge.small_file_bytes = 0;
    options.merge.trigger_dead_fraction = 0.5;
    options.merge.threshold_dead_fraction = 0.5;
    let store = open(&disk, &options);
    store.quiesce().unwrap();
    assert_eq!(store.stats().unwrap().compaction_count, Some(1), "the second file was merged");
    assert!(disk.read(Path::new("/data/1.bitcask.data")).is_some(), "the first was not");
    Box::new(store).close().unwrap();

    options.merge.enabled = false;
    for _ in 0..2 {
        let store = open(&disk, &options);
        assert_eq!(store.get_vec(b"key").unwrap(), None);
        assert_eq!(store.get_vec(b"stays").unwrap().unwrap(), [2; 800]);
        store.compact().unwrap();
        assert_eq!(store.stats().unwrap().dead_bytes, Some(0));
        Box::new(store).close().unwrap();
        remove_hints(&disk);
    }
}

/// Compacting takes the room of one file more, and gives back file after file.
#[test]
fn compacting_gives_space_back_step_by_step() {
    const FILE: u64 = 10_000;
    let disk = SimFs::new();
    let mut options = Options { max_file_bytes: FILE, ..Options::default() };
    options.merge.enabled = false;
    let store = open(&disk, &options);
    for round in 0..5u8 {
        for key in 0..200u8 {
            store.put(&[key], &[round; 300]).unwrap();
        }
    }
    store.quiesce().unwrap();
    let (start, written) = (disk.mark(), store.stats().unwrap().disk_bytes.unwrap());
    store.compact().unwrap();
    let live = store.stats().unwrap().disk_bytes.unwrap();
    assert_eq!(store.stats().unwrap().dead_bytes, Some(0));

    let sizes: Vec<u64> = disk
        .trace()
        .images(CrashModel::KeepAll)
        .filter(|image| image.cut >= start)
        .map(|image| {
            let entries = image.disk.list(Path::new("/data")).unwrap();
            let is_data = |name: &str| name.contains(".bitcask.data");
            entries.iter().filter(|e| e.name().is_some_and(is_data)).map(|e| e.length).sum()
        })
        .collect();
    let (before, peak) = (sizes[0], *sizes.iter().max().unwrap());
    assert!(written > 4 * live);
    // What dies with its file goes before anything is copied.
    assert!(peak <= before + FILE, "{before} grows to {peak}");
    let steps = sizes.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert!(steps as u64 >= (written - live) / FILE, "{steps} steps");
    let half = sizes.iter().position(|size| *size < before / 2).unwrap();
    assert!(half < sizes.len() / 2, "half is given back by the first half of the calls");
}

/// Readers, scans, a writer and merges at the same time, on real files. Each key's value carries a
/// number that only grows; a reader never sees it shrink.
#[test]
fn readers_and_scans_go_on_while_files_are_written_and_merged() {
    const KEYS: u64 = 200;
    let directory = tempfile::tempdir().unwrap();
    let options = Options { max_file_bytes: 20_000, ..Options::default() };
    let store = Bitcask::open(directory.path(), options.clone()).unwrap();
    let number = |value: &[u8]| u64::from_be_bytes(value[..8].try_into().unwrap());
    let write = |key: u64, round: u64| {
        let mut value = vec![u8::try_from(round % 256).unwrap(); 100];
        value[..8].copy_from_slice(&round.to_be_bytes());
        store.put(&key.to_be_bytes(), &value).unwrap();
    };
    (0..KEYS).for_each(|key| write(key, 0));
    let (done, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for reader in 0..3 {
            let (store, done, rounds) = (&store, &done, &rounds);
            scope.spawn(move || {
                let mut seen = BTreeMap::new();
                let mut turn = 0u64;
                while !done.load(Ordering::Acquire) {
                    let key = (turn * 7 + reader) % KEYS;
                    let value = store.get_vec(&key.to_be_bytes()).unwrap().expect("never deleted");
                    let before = seen.insert(key, number(&value));
                    assert!(before <= Some(number(&value)), "key {key} went back");
                    turn += 1;
                    if turn.is_multiple_of(500) {
                        // One moment: a round is written in the order of the keys.
                        let found = scan(store, KeyRange::all(), Direction::Forward);
                        let numbers: Vec<_> = found.iter().map(|(_, v)| number(v)).collect();
                        assert_eq!(numbers.len() as u64, KEYS);
                        assert!(numbers.is_sorted_by(|a, b| a >= b), "{numbers:?}");
                        assert!(numbers[0] <= numbers.last().unwrap() + 1, "{numbers:?}");
                    }
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                store.compact().unwrap();
            }
        });
        for round in 1..=150 {
            (0..KEYS).for_each(|key| write(key, round));
        }
        done.store(true, Ordering::Release);
    });
    store.compact().unwrap();
    let stats = store.stats().unwrap();
    assert_eq!((stats.live_records, stats.dead_bytes), (Some(KEYS), Some(0)));
    assert!(stats.compaction_count.unwrap() > 0 && rounds.load(Ordering::Relaxed) > 0);
    Box::new(store).close().unwrap();
    let store = Bitcask::open(directory.path(), options).unwrap();
    for (_, value) in scan(&store, KeyRange::all(), Direction::Forward) {
        assert_eq!(number(&value), 150);
    }
}

#[test]
fn threads_that_write_together_each_find_their_own() {
    for durability in Durability::ALL {
        let disk = SimFs::new();
        let options = Options { durability, max_file_bytes: 10_000, ..Options::default() };
        let store = open(&disk, &options);
        std::thread::scope(|scope| {
            for thread in 0..4u8 {
                let store = &store;
                scope.spawn(move || {
                    for turn in 0..300u32 {
                        let key = [&[thread][..], &(turn % 50).to_be_bytes()].concat();
                        store.put(&key, &turn.to_be_bytes()).unwrap();
                        let found = store.get_vec(&key).unwrap().unwrap();
                        assert_eq!(found, turn.to_be_bytes());
                        if turn.is_multiple_of(7) {
                            store.delete(&key).unwrap();
                            assert_eq!(store.get_vec(&key).unwrap(), None);
                        }
                    }
                });
            }
        });
        let before = scan(&store, KeyRange::all(), Direction::Forward);
        Box::new(store).close().unwrap();
        assert_eq!(scan(&open(&disk, &options), KeyRange::all(), Direction::Forward), before);
    }
}

/// An overwrite makes the old record dead, and a merge removes dead records; if the overwrite is
/// lost in a crash, the old record must still be there, or both would be gone.
#[test]
fn a_merge_removes_nothing_whose_successor_may_be_lost() {
    const KEYS: u8 = 250;
    let disk = SimFs::new();
    let open = |disk: &SimFs| {
        // One active file, so that nothing but the merge has a reason to sync it.
        let options = Options { max_file_bytes: 1 << 20, ..Options::default() };
        Bitcask::open_in(Arc::new(disk.clone()), Path::new("/data"), options).unwrap()
    };
    let engine = open(&disk);
    (0..KEYS).for_each(|key| engine.put(&[key], &[0; 100]).unwrap());
    engine.sync().unwrap();
    let synced = disk.mark();
    let merging = AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while engine.stats().unwrap().compaction_count.unwrap() < 5 {
                engine.compact().unwrap();
            }
            merging.store(false, Ordering::Release);
        });
        let mut round = 0u8;
        while merging.load(Ordering::Acquire) {
            round = round.wrapping_add(1);
            for key in (0..KEYS).rev() {
                engine.put(&[key], &[round; 100]).unwrap();
                // Keeps the history short: the merge should see some overwrites, not thousands.
                std::thread::sleep(Duration::from_micros(20));
            }
        }
    });
    drop(engine);
    for image in disk.trace().images(CrashModel::DropUnsynced) {
        if image.cut < synced || image.unchanged {
            continue;
        }
        let engine = open(&image.disk);
        for key in 0..KEYS {
            assert!(engine.get_vec(&[key]).unwrap().is_some(), "cut {}: key {key}", image.cut);
        }
    }
}
