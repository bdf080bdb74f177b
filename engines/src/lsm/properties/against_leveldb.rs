//! What the real LevelDB tells and does, beside ours. Says so and ends if it is not there.

use std::path::Path;

use super::*;
use crate::lsm::Options;
use crate::peers::original::{self, Original};
use crate::{Compression, Engine};

/// A database with tables on several levels, closed, with nothing left to do.
fn database(directory: &Path, compression: Compression) {
    let options = Options {
        compression,
        memtable_bytes: 128 << 10,
        table_bytes: 64 << 10,
        level0_tables: 3,
        level1_bytes: 256 << 10,
        level_ratio: 3,
        ..Options::default()
    };
    let store = Lsm::open(directory, options).unwrap();
    for at in 0..20_000u32 {
        let key = [&(at.wrapping_mul(2_654_435_761) >> 12).to_be_bytes()[..], b" 'x"].concat();
        let value = at.to_le_bytes().repeat((at % 40) as usize);
        store.put(&key, &value).unwrap();
        if at % 9 == 0 {
            store.delete(&(at << 3).to_be_bytes()).unwrap();
        }
    }
    store.flush().unwrap();
    store.quiesce().unwrap();
    Box::new(store).close().unwrap();
}

fn copied(directory: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

#[test]
fn properties_and_sizes_are_those_that_leveldb_tells_of_the_same_directory() {
    if !original::is_available() {
        return;
    }
    for compression in [Compression::Snappy, Compression::None] {
        let directory = tempfile::tempdir().unwrap();
        database(directory.path(), compression);
        let copy = copied(directory.path());
        let original = Original::open(copy.path());
        let store = Lsm::open_read_only(directory.path(), Options::default()).unwrap();
        for level in 0..9 {
            let name = format!("leveldb.num-files-at-level{level}");
            assert_eq!(store.property(&name), original.property(&name), "{name}");
        }
        for name in ["leveldb.stats", "leveldb.sstables"] {
            assert_eq!(store.property(name), original.property(name), "{name}");
        }
        assert!(store.property("leveldb.stats").unwrap().lines().count() > 4);
        for name in ["", "stats", "leveldb.", "leveldb.num-files-at-level", "leveldb.other"] {
            assert_eq!(store.property(name), None, "{name}");
            assert_eq!(original.property(name).filter(|_| !name.ends_with("level")), None);
        }
        assert_eq!(store.property("leveldb.num-files-at-level+1"), None);

        let keys: Vec<Vec<u8>> = (0..60u32)
            .map(|at| (at * at * 300).to_be_bytes().to_vec())
            .chain([vec![], vec![0xff; 9]])
            .collect();
        let pairs: Vec<_> = keys
            .iter()
            .flat_map(|start| keys.iter().map(|end| (start.clone(), end.clone())))
            .collect();
        let ranges: Vec<_> =
            pairs.iter().map(|(start, end)| KeyRange::between(start, end)).collect();
        let sizes = store.approximate_sizes(&ranges).unwrap();
        assert_eq!(sizes, original.approximate_sizes(&pairs));
        assert!(sizes.iter().filter(|size| **size > 10_000).count() > 100);
    }
}

#[test]
fn what_leveldb_repairs_ours_reads_and_what_ours_repairs_leveldb_reads() {
    if !original::is_available() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    database(directory.path(), Compression::Snappy);
    let mut records = Vec::new();
    let read = |directory: &Path, records: &mut Vec<(Vec<u8>, Vec<u8>)>| {
        records.clear();
        let store = Lsm::open_read_only(directory, Options::default()).unwrap();
        store
            .fold(&mut |key, value| {
                records.push((key.to_vec(), value.to_vec()));
                std::ops::ControlFlow::Continue(())
            })
            .unwrap();
    };
    read(directory.path(), &mut records);
    let whole = records.clone();
    for damaged in ["CURRENT", "MANIFEST"] {
        let (ours, theirs) = (copied(directory.path()), copied(directory.path()));
        for copy in [&ours, &theirs] {
            for entry in std::fs::read_dir(copy.path()).unwrap() {
                let path = entry.unwrap().path();
                if path.file_name().unwrap().to_str().unwrap().starts_with(damaged) {
                    std::fs::remove_file(path).unwrap();
                }
            }
        }
        crate::lsm::repair(ours.path()).unwrap();
        assert!(Original::open(ours.path()).records() == whole, "{damaged}");
        original::repair(theirs.path());
        let by_leveldb = Original::open(theirs.path()).records();
        read(theirs.path(), &mut records);
        assert!(records == by_leveldb, "{damaged}");
    }
}
