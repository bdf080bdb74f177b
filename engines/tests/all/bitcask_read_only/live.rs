//! A writer in the same process.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use engines::bitcask::{Bitcask, Options, ReadOnlyBitcask};
use engines::fs::sim::SimFs;
use engines::fs::{FileSystem, RealFs};
use engines::{Engine, KeyRange};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Model, check, random_step, restless};
use crate::records::folded;

/// Several readers, each refreshed now and then; a refreshed one holds what the writer holds, the
/// others what they held.
///
/// `calls` counts the calls that change the file system.
fn run(
    fs: &Arc<dyn FileSystem>,
    calls: impl Fn() -> usize,
    directory: &Path,
    options: &Options,
    seed: u64,
    steps: u32,
) {
    println!("seed {seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let open = || Bitcask::open_in(fs.clone(), directory, options.clone()).unwrap();
    let mut store = open();
    let mut model = Model::new();
    let mut readers: Vec<(ReadOnlyBitcask, Model)> = Vec::new();
    for number in 0..steps {
        random_step(&store, &mut model, &mut random, number);
        match random.random_range(0..60) {
            0 if readers.len() < 4 && !model.is_empty() => {
                readers.push((
                    ReadOnlyBitcask::open_in(fs.clone(), directory).unwrap(),
                    model.clone(),
                ));
            }
            1..8 if !readers.is_empty() => {
                let which = random.random_range(0..readers.len());
                let (reader, held) = &mut readers[which];
                if random.random_bool(0.1) {
                    check(reader, held);
                }
                reader.refresh().unwrap();
                held.clone_from(&model);
                check(reader, held);
                store.quiesce().unwrap();
                reader.refresh().unwrap();
                let calls_before = calls();
                assert!(!reader.refresh().unwrap(), "nothing was done since");
                check(reader, held);
                check(&ReadOnlyBitcask::open_in(fs.clone(), directory).unwrap(), held);
                assert_eq!(calls(), calls_before, "a reader changes nothing");
            }
            8 => {
                Box::new(store).close().unwrap();
                store = open();
            }
            _ => {}
        }
    }
    for (reader, _) in &readers {
        reader.refresh().unwrap();
        check(reader, &model);
    }
    drop(store);
}

#[test]
fn a_refreshed_reader_holds_what_the_writer_holds() {
    for round in 0..4 {
        let directory = tempfile::tempdir().unwrap();
        let fs: Arc<dyn FileSystem> = Arc::new(RealFs);
        let mut options = restless();
        match round {
            1 => options.merge.enabled = false,
            2 => options.max_file_bytes = 300,
            3 => options.max_file_bytes = 1 << 20,
            _ => {}
        }
        run(&fs, || 0, directory.path(), &options, rand::random(), 500);
        let disk = SimFs::new();
        let fs: Arc<dyn FileSystem> = Arc::new(disk.clone());
        run(&fs, || disk.mark(), Path::new("/data"), &options, rand::random(), 1_500);
    }
}

/// What write number `number` does: its key, and its value unless it deletes.
fn write_of(number: u64) -> (Vec<u8>, Option<Vec<u8>>) {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let key = (mixed % 50).to_be_bytes().to_vec();
    let value = [&number.to_be_bytes()[..], &vec![1; (mixed % 300) as usize]].concat();
    (key, (!mixed.is_multiple_of(7)).then_some(value))
}

/// While the writer goes on, a refresh finds the outcome of its first writes up to some number that
/// was reached during the refresh, without a gap.
#[test]
fn what_a_refresh_finds_beside_a_busy_writer_is_a_moment_of_it() {
    const WRITES: u64 = 60_000;
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options { max_file_bytes: 100_000, ..restless() };
    options.merge.small_file_bytes = 50_000;
    let store = Bitcask::open(directory.path(), options).unwrap();
    let (begun, done, merging) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(true));
    store.put(b"first", b"").unwrap();
    let refreshed = std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..WRITES {
                begun.store(number + 1, Ordering::SeqCst);
                match write_of(number) {
                    (key, Some(value)) => store.put(&key, &value).unwrap(),
                    (key, None) => store.delete(&key).unwrap(),
                }
                done.store(number + 1, Ordering::SeqCst);
            }
            merging.store(false, Ordering::SeqCst);
        });
        scope.spawn(|| {
            while merging.load(Ordering::SeqCst) {
                store.compact().unwrap();
            }
        });
        let reader = ReadOnlyBitcask::open(directory.path()).unwrap();
        let (mut model, mut at, mut refreshed) = (Model::new(), 0, 0);
        model.insert(b"first".to_vec(), Vec::new());
        while at < WRITES {
            let done_before = done.load(Ordering::SeqCst);
            reader.refresh().unwrap();
            let begun_after = begun.load(Ordering::SeqCst);
            refreshed += 1;
            let found = folded(&reader);
            // The moment: the first one, from what was done before on, at which the model is that.
            while at < done_before || model != found {
                if at >= begun_after {
                    let differ = |key: &&Vec<u8>| model.get(*key) != found.get(*key);
                    let number = |value: Option<&Vec<u8>>| {
                        value.map(|value| u64::from_be_bytes(value[..8].try_into().unwrap()))
                    };
                    let keys = model.keys().chain(found.keys()).filter(differ);
                    let rows: Vec<_> =
                        keys.map(|key| (number(model.get(key)), number(found.get(key)))).collect();
                    panic!("no moment from {done_before} to {begun_after}: {rows:?}");
                }
                match write_of(at) {
                    (key, Some(value)) => model.insert(key, value),
                    (key, None) => model.remove(&key),
                };
                at += 1;
            }
            assert_eq!(reader.damage(), []);
        }
        refreshed
    });
    println!("{refreshed} refreshes");
    assert!(refreshed > 10);
}

/// Reads, scans and refreshes of one reader at once. A reader's thread finds each key at a number
/// that only grows, and a scan finds one moment.
#[test]
fn reads_and_scans_go_on_during_refreshes() {
    const KEYS: u64 = 100;
    let directory = tempfile::tempdir().unwrap();
    let store = Bitcask::open(directory.path(), restless()).unwrap();
    let write_round = |round: u64| {
        for key in 0..KEYS {
            store.put(&key.to_be_bytes(), &round.to_be_bytes()).unwrap();
        }
    };
    write_round(0);
    let reader = ReadOnlyBitcask::open(directory.path()).unwrap();
    let done = AtomicBool::new(false);
    let number = |value: &[u8]| u64::from_be_bytes(value.try_into().unwrap());
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (reader, done) = (&reader, &done);
            scope.spawn(move || {
                let mut seen = BTreeMap::new();
                let mut turn = thread;
                while !done.load(Ordering::Acquire) {
                    turn += 1;
                    let key = turn % KEYS;
                    let value = reader.get_vec(&key.to_be_bytes()).unwrap().expect("never deleted");
                    assert!(seen.insert(key, number(&value)) <= Some(number(&value)));
                    if turn % 200 == 0 {
                        let mut numbers = Vec::new();
                        let mut visit = |_: &[u8], value: &[u8]| {
                            numbers.push(number(value));
                            std::ops::ControlFlow::Continue(())
                        };
                        let forward = engines::Direction::Forward;
                        reader.scan(KeyRange::all(), forward, &mut visit).unwrap();
                        assert_eq!(numbers.len() as u64, KEYS);
                        // A round is written in the order of the keys.
                        assert!(numbers.is_sorted_by(|a, b| a >= b), "{numbers:?}");
                        assert!(numbers[0] <= numbers.last().unwrap() + 1, "{numbers:?}");
                    }
                }
            });
        }
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                reader.refresh().unwrap();
            }
        });
        (1..200).for_each(write_round);
        done.store(true, Ordering::Release);
    });
}
