//! Directories that LevelDB wrote, read by the LSM engine.

use std::collections::BTreeMap;
use std::fs;
use std::ops::{Bound, ControlFlow};

use engines::lsm::{Lsm, Options};
use engines::{Direction, Engine, Error, KeyRange};

use crate::golden::{Expected, Golden, contents, fingerprint};

const DIRECTORIES: [&str; 11] = [
    "log-only",
    "compacted",
    "bloom",
    "uncompressed",
    "multi-level",
    "large-records",
    "batches",
    "reopened",
    "prefixes",
    "minecraft-zlib",
    "zstd",
];

fn scan(engine: &dyn Engine, range: KeyRange<'_>, direction: Direction) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    engine
        .scan(range, direction, &mut |key, _| {
            keys.push(key.to_vec());
            ControlFlow::Continue(())
        })
        .unwrap();
    keys
}

/// Everything that can be read, in every way.
fn check(engine: &dyn Engine, expected: &Expected, name: &str) {
    assert_eq!(&contents(engine), expected, "{name}");
    let mut keys: Vec<_> = expected.keys().cloned().collect();
    assert_eq!(scan(engine, KeyRange::all(), Direction::Forward), keys, "{name}");
    keys.reverse();
    assert_eq!(scan(engine, KeyRange::all(), Direction::Backward), keys, "{name}");
    for (key, want) in expected {
        let value = engine.get_vec(key).unwrap();
        assert_eq!(value.as_deref().map(fingerprint).as_ref(), Some(want), "{name}: {key:?}");
        let mut missing = key.clone();
        missing.extend_from_slice(b"\0missing");
        assert_eq!(engine.get_vec(&missing).unwrap(), None, "{name}");
    }
    check_ranges(engine, expected, name);
}

/// Ranges between some of the keys, with every kind of bound.
fn check_ranges(engine: &dyn Engine, expected: &Expected, name: &str) {
    let keys: Vec<_> = expected.keys().collect();
    for step in [1, 7, keys.len() / 3 + 1] {
        let (Some(low), Some(high)) = (keys.get(step), keys.get(keys.len().saturating_sub(step)))
        else {
            continue;
        };
        for (start, end) in [
            (Bound::Included(low.as_slice()), Bound::Included(high.as_slice())),
            (Bound::Excluded(low.as_slice()), Bound::Excluded(high.as_slice())),
            (Bound::Unbounded, Bound::Excluded(high.as_slice())),
            (Bound::Excluded(low.as_slice()), Bound::Unbounded),
        ] {
            if low > high {
                continue;
            }
            let range = KeyRange { start, end };
            let mut inside: Vec<_> =
                keys.iter().filter(|key| range.contains(key)).map(|key| key.to_vec()).collect();
            assert_eq!(scan(engine, range, Direction::Forward), inside, "{name} {range:?}");
            inside.reverse();
            assert_eq!(scan(engine, range, Direction::Backward), inside, "{name} {range:?}");
        }
    }
}

#[test]
fn what_leveldb_wrote_is_read_as_it_reads_it_and_survives_compaction_and_reopening() {
    for name in DIRECTORIES {
        let golden = Golden::copy("leveldb", name);
        assert!(!golden.expected.is_empty(), "{name}");
        assert!(Lsm::recognizes(golden.directory()), "{name}");
        for round in 0..2 {
            let engine = Lsm::open(golden.directory(), Options::default()).unwrap();
            check(&engine, &golden.expected, name);
            if round == 0 {
                engine.compact().unwrap();
                check(&engine, &golden.expected, name);
            }
            Box::new(engine).close().unwrap();
        }
    }
}

#[test]
fn what_is_written_to_leveldbs_directories_lies_over_what_was_there() {
    for name in DIRECTORIES {
        let golden = Golden::copy("leveldb", name);
        let mut expected: BTreeMap<_, _> = golden.expected.clone();
        let options =
            Options { memtable_bytes: 4 << 10, table_bytes: 8 << 10, ..Options::default() };
        let engine = Lsm::open(golden.directory(), options.clone()).unwrap();
        for (index, key) in golden.expected.keys().enumerate() {
            match index % 3 {
                0 => {
                    engine.delete(key).unwrap();
                    expected.remove(key);
                }
                1 => {
                    engine.put(key, b"overwritten").unwrap();
                    expected.insert(key.clone(), fingerprint(b"overwritten"));
                }
                _ => {}
            }
        }
        check(&engine, &expected, name);
        engine.compact().unwrap();
        check(&engine, &expected, name);
        drop(engine);
        check(&Lsm::open(golden.directory(), options).unwrap(), &expected, name);
    }
}

#[test]
fn another_key_order_is_refused_by_name_and_nothing_is_changed() {
    let golden = Golden::copy("leveldb", "foreign-comparator");
    let listing = |directory: &std::path::Path| {
        let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
        let files = files.filter(|file| file.file_name() != "LOCK");
        files
            .map(|file| (file.file_name(), fs::read(file.path()).unwrap()))
            .collect::<BTreeMap<_, _>>()
    };
    let before = listing(golden.directory());
    match Lsm::open(golden.directory(), Options::default()).err() {
        Some(Error::ComparatorMismatch { found, wanted, .. }) => {
            assert_eq!(found, "idb_cmp1");
            assert_eq!(wanted, "leveldb.BytewiseComparator");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(listing(golden.directory()), before);
}
