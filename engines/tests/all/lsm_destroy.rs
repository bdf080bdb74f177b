//! Destroying a database: its own files go, all others stay.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use engines::fs::FileSystem;
use engines::fs::sim::{CrashModel, SimFs};
use engines::lsm::{Lsm, Options, destroy, destroy_in};
use engines::{Engine, Error};

fn listing(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let files = files.filter(|entry| entry.path().is_file());
    files
        .map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap()))
        .collect()
}

#[test]
fn the_files_of_the_database_go_and_no_others() {
    for name in ["log-only", "multi-level", "foreign-comparator"] {
        let golden = crate::golden::Golden::copy("leveldb", name);
        let foreign = ["notes.txt", "5.ldb", "000005.ldb.bak", "manifest-000002", "old CURRENT"];
        for name in foreign {
            fs::write(golden.file(name), name).unwrap();
        }
        fs::create_dir(golden.file("000099.ldb")).unwrap();
        destroy(golden.directory()).unwrap();
        let left = listing(golden.directory());
        assert_eq!(left.len(), foreign.len(), "{:?}", left.keys());
        assert!(foreign.iter().all(|name| left[*name] == name.as_bytes()));
        assert!(golden.file("000099.ldb").is_dir());
        // Nothing is left to destroy, and a new one can be made.
        destroy(golden.directory()).unwrap();
        destroy(golden.file("missing")).unwrap();
        let engine = Lsm::open(golden.directory(), Options::default()).unwrap();
        assert!(crate::golden::contents(&engine).is_empty());
    }
}

#[test]
fn what_is_open_or_of_another_engine_is_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Lsm::open(directory.path(), Options::default()).unwrap();
    engine.put(b"key", b"value").unwrap();
    assert!(matches!(destroy(directory.path()), Err(Error::Locked { .. })));
    assert_eq!(engine.get_vec(b"key").unwrap().as_deref(), Some(&b"value"[..]));
    drop(engine);
    fs::write(directory.path().join("OPTIONS-000007"), "").unwrap();
    let before = listing(directory.path());
    assert!(matches!(destroy(directory.path()), Err(Error::ForeignDirectory { .. })));
    assert_eq!(listing(directory.path()), before);

    let bitcask = crate::golden::Golden::copy("bitcask", "basic");
    let before = listing(bitcask.directory());
    assert!(matches!(destroy(bitcask.directory()), Err(Error::ForeignDirectory { .. })));
    assert_eq!(listing(bitcask.directory()), before);
}

#[test]
fn after_a_crash_there_is_all_of_it_or_no_database() {
    let disk = SimFs::new();
    let options = Options { memtable_bytes: 1 << 10, ..Options::default() };
    let open = |disk: &SimFs| {
        let options = Options { create: false, ..options.clone() };
        Lsm::open_in(Arc::new(disk.clone()), "/db", options)
    };
    let engine = Lsm::open_in(Arc::new(disk.clone()), "/db", options.clone()).unwrap();
    for at in 0..50u32 {
        engine.put(&at.to_be_bytes(), &[1; 100]).unwrap();
    }
    engine.sync().unwrap();
    Box::new(engine).close().unwrap();
    let before = disk.mark();
    destroy_in(Arc::new(disk.clone()), "/db").unwrap();
    assert!(disk.list(Path::new("/db")).unwrap().is_empty());
    let trace = disk.trace();
    for cut in before..=trace.len() {
        for seed in 0..8 {
            let image = trace.crash_at(cut, CrashModel::RandomSubset { seed });
            match open(&image) {
                Ok(engine) => assert_eq!(crate::golden::contents(&engine).len(), 50),
                Err(error) => assert!(matches!(error, Error::NotADatabase { .. }), "{error}"),
            }
        }
    }
}
