//! The figures that Bitcask tells of its files, against an independent walk through those files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use engines::bitcask::{Bitcask, FileStats, Options};
use engines::{Batch, Engine, KeyRange, Prefix};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::golden::{Golden, remove_hints};

/// A record as the format describes it: 14 bytes of header, key, value.
struct Record {
    file: u32,
    size: u64,
    key: Vec<u8>,
    is_tombstone: bool,
}

/// Every record of the directory, in the order that decides which one of a key is the newest.
fn walk(directory: &Path, files: &[FileStats]) -> Vec<Record> {
    let mut records = Vec::new();
    for file in files {
        let bytes = fs::read(directory.join(format!("{}.bitcask.data", file.id))).unwrap();
        let mut rest = &bytes[..usize::try_from(file.length_bytes).unwrap()];
        while !rest.is_empty() {
            let key_size = u16::from_be_bytes(rest[8..10].try_into().unwrap()) as usize;
            let value_size = u32::from_be_bytes(rest[10..14].try_into().unwrap()) as usize;
            let (record, after) = rest.split_at(14 + key_size + value_size);
            records.push(Record {
                file: file.id,
                size: record.len() as u64,
                key: record[14..14 + key_size].to_vec(),
                is_tombstone: record[14 + key_size..].starts_with(b"bitcask_tombstone"),
            });
            rest = after;
        }
    }
    records
}

/// (live records, bytes, dead records, bytes, tombstones, bytes) of each file.
fn expected(records: &[Record]) -> BTreeMap<u32, [u64; 6]> {
    let mut newest = BTreeMap::new();
    for (at, record) in records.iter().enumerate() {
        newest.insert(&record.key, at);
    }
    let mut figures = BTreeMap::new();
    for (at, record) in records.iter().enumerate() {
        let file: &mut [u64; 6] = figures.entry(record.file).or_default();
        let kind = match record.is_tombstone {
            true => 4,
            false if newest[&record.key] == at => 0,
            false => 2,
        };
        file[kind] += 1;
        file[kind + 1] += record.size;
    }
    figures
}

fn check(store: &Bitcask, directory: &Path, with_hints: bool) {
    let files = store.files().unwrap();
    assert!(files.is_sorted_by_key(|file| file.id));
    let expected = expected(&walk(directory, &files));
    assert_eq!(files.iter().filter(|file| file.length_bytes > 0).count(), expected.len());
    for file in &files {
        let found = [
            file.live_records,
            file.live_bytes,
            file.dead_records,
            file.dead_bytes,
            file.tombstone_records,
            file.tombstone_bytes,
        ];
        assert_eq!(Some(&found), expected.get(&file.id), "{}", file.id);
        assert_eq!(found[1] + found[3] + found[5], file.length_bytes);
        assert_eq!((file.damaged_bytes, file.is_damaged), (0, false));
        assert_eq!(file.path, directory.join(format!("{}.bitcask.data", file.id)));
        let hint = directory.join(format!("{}.bitcask.hint", file.id));
        // The background thread may write one meanwhile.
        assert!(file.has_hint == hint.exists() || (!with_hints && hint.exists()));
        assert!(!file.is_active || !file.has_hint);
        assert!(!with_hints || file.is_active || file.has_hint);
    }
    assert!(files.iter().rev().skip(1).all(|file| !file.is_active), "the last one is active");
    check_totals(store, &files);
}

fn check_totals(store: &Bitcask, files: &[FileStats]) {
    let sum = |figure: fn(&FileStats) -> u64| Some(files.iter().map(figure).sum::<u64>());
    let stats = store.stats().unwrap();
    assert_eq!(stats.live_records, sum(|file| file.live_records));
    assert_eq!(stats.disk_bytes, sum(|file| file.length_bytes));
    let not_live = |file: &FileStats| file.dead_bytes + file.tombstone_bytes + file.damaged_bytes;
    assert_eq!(stats.dead_bytes, sum(not_live));
    assert_eq!(stats.file_count, Some(files.len() as u64));
    let detail = |name: &str| {
        let found = stats.details.iter().find(|(detail, _)| detail == name);
        Some(found.unwrap().1.parse::<u64>().unwrap())
    };
    assert_eq!(detail("live_bytes"), sum(|file| file.live_bytes));
    assert_eq!(detail("tombstone_bytes"), sum(|file| file.tombstone_bytes));
    assert_eq!(detail("keydir_bytes"), stats.memory_bytes);
}

fn random_write(store: &Bitcask, random: &mut ChaCha8Rng) {
    let key = [random.random_range(0..60u8)];
    let value = vec![7; random.random_range(0..300)];
    match random.random_range(0..10) {
        0..6 => store.put(&key, &value).unwrap(),
        6..8 => store.delete(&key).unwrap(),
        _ => {
            let mut batch = Batch::new();
            batch.put(&key, &value).unwrap();
            batch.put(&[random.random_range(0..60u8)], &value).unwrap();
            batch.delete(&[random.random_range(0..60u8)]).unwrap();
            batch.put(&key, b"twice in a batch").unwrap();
            store.write(&batch).unwrap();
        }
    }
}

#[test]
fn the_figures_are_those_of_the_files() {
    let seed = rand::random();
    println!("seed {seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for merges in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let mut options = Options { max_file_bytes: 4_000, ..Options::default() };
        options.merge.enabled = merges;
        options.merge.small_file_bytes = 1_000;
        let mut store = Bitcask::open(directory.path(), options.clone()).unwrap();
        for round in 0..30 {
            (0..60).for_each(|_| random_write(&store, &mut random));
            store.quiesce().unwrap();
            check(&store, directory.path(), true);
            if round % 5 == 4 {
                Box::new(store).close().unwrap();
                if round % 10 == 9 {
                    remove_hints(directory.path());
                }
                store = Bitcask::open(directory.path(), options.clone()).unwrap();
                if !merges {
                    check(&store, directory.path(), false);
                }
            }
        }
        // Opening may have begun a merge.
        store.quiesce().unwrap();
        let before = store.stats().unwrap();
        store.compact().unwrap();
        check(&store, directory.path(), true);
        let after = store.stats().unwrap();
        let reclaimed = |stats: &engines::Stats| {
            let detail = stats.details.iter().find(|(name, _)| name == "reclaimed_bytes");
            detail.unwrap().1.parse::<u64>().unwrap()
        };
        let written = |stats: &engines::Stats| stats.compaction_written_bytes.unwrap();
        assert_eq!(
            before.disk_bytes.unwrap() + written(&after) - written(&before),
            after.disk_bytes.unwrap() + reclaimed(&after) - reclaimed(&before),
        );
        let had_dead = before.dead_bytes > Some(0);
        assert!(after.compaction_count > before.compaction_count || !had_dead);
        assert!(had_dead || merges, "nothing died in 1,800 writes");
        assert_eq!(after.dead_bytes, Some(0));
    }
}

/// A bit flipped in a value of the first file: its record is no record any more, and what it
/// overwrote or was overwritten by does not matter to the sum.
#[test]
fn damaged_bytes_are_told_apart() {
    let golden = Golden::copy("bitcask", "rolled");
    remove_hints(golden.directory());
    let file = golden.file("1.bitcask.data");
    let mut bytes = fs::read(&file).unwrap();
    let key_size = u64::from(u16::from_be_bytes(bytes[8..10].try_into().unwrap()));
    let value_size = u64::from(u32::from_be_bytes(bytes[10..14].try_into().unwrap()));
    bytes[0] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let mut options = Options::default();
    options.merge.enabled = false;
    let store = Bitcask::open(golden.directory(), options).unwrap();
    let files = store.files().unwrap();
    assert_eq!(files[0].damaged_bytes, 14 + key_size + value_size);
    assert!(files[0].is_damaged && files[1..].iter().all(|file| !file.is_damaged));
    assert!(files[1..].iter().all(|file| file.damaged_bytes == 0));
    check_totals(&store, &files);
}

#[test]
fn keys_come_in_order_from_any_range() {
    let seed = rand::random();
    println!("seed {seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let directory = tempfile::tempdir().unwrap();
    let store = Bitcask::open(directory.path(), Options::default()).unwrap();
    let mut model = BTreeMap::new();
    let short = |random: &mut ChaCha8Rng| -> Vec<u8> {
        let length = random.random_range(0..5);
        (0..length).map(|_| [0, 1, b'a', 0xfe, 0xff][random.random_range(0..5)]).collect()
    };
    for _ in 0..1_500 {
        let key = short(&mut random);
        if random.random_bool(0.8) {
            store.put(&key, &key).unwrap();
            model.insert(key.clone(), key);
        } else {
            store.delete(&key).unwrap();
            model.remove(&key);
        }
    }
    let all = store.keys(KeyRange::all());
    assert!(all.iter().eq(model.keys()));
    assert_eq!((all.count(), all.iter().len()), (model.len(), model.len()));
    for _ in 0..200 {
        let (from, to) = (short(&mut random), short(&mut random));
        let range = KeyRange::between(&from, &to);
        let keys = store.keys(range);
        assert!(keys.iter().eq(model.keys().filter(|key| range.contains(key))));
        let prefixed = store.keys(Prefix::new(from.as_slice()).range());
        let expected = model.keys().rev().filter(|key| key.starts_with(&from));
        assert!(prefixed.iter().rev().eq(expected), "{from:?}");
    }
    // A moment: what is written later does not show.
    store.put(b"later", b"").unwrap();
    assert!(all.iter().eq(model.keys()));
}
