//! A merge that is installed section by section: cut short behind each of them, as a crash would.

use std::fs;
use std::path::{Path, PathBuf};

use engines::lsm::{Lsm, Options};
use engines::{Compression, Direction, Engine, KeyRange, OpenOptions, registry};

use crate::golden::copy_files;
use crate::records::{Records, scanned};

/// Nothing is merged before it is asked for.
fn options() -> Options {
    Options {
        compression: Compression::None,
        block_bytes: 512,
        table_bytes: 8 << 10,
        background_threads: 1,
        ..Options::default()
    }
}

fn key(at: u32) -> Vec<u8> {
    format!("key {at:05}").into_bytes()
}

/// 1,500 records in level 1; in level 0, of every seventh the deletion or another value, in two
/// tables that overlap; and what is to be found then.
fn fill(directory: &Path) -> (Lsm, Records) {
    let engine = Lsm::open(directory, options()).unwrap();
    let mut model = Records::new();
    let mut put = |engine: &Lsm, at: u32, value: &[u8]| {
        engine.put(&key(at), value).unwrap();
        model.insert(key(at), value.to_vec());
    };
    // Two tables that overlap: one alone would be moved as it is.
    for first in [0, 1] {
        (first..1500).step_by(2).for_each(|at| put(&engine, at, &[b'1'; 100]));
        engine.flush().unwrap();
    }
    engine.compact().unwrap();
    (0..1500).step_by(7).for_each(|at| put(&engine, at, &[b'2'; 50]));
    engine.flush().unwrap();
    (0..1500).step_by(21).for_each(|at| put(&engine, at, &[b'3'; 150]));
    for at in (14..1500).step_by(28) {
        engine.delete(&key(at)).unwrap();
        model.remove(&key(at));
    }
    engine.flush().unwrap();
    (engine, model)
}

fn table_bytes(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let tables = entries.filter(|entry| entry.path().extension().is_some_and(|e| e == "ldb"));
    tables.map(|entry| entry.metadata().unwrap().len()).sum()
}

/// The one file whose name begins so.
fn manifest(directory: &Path) -> PathBuf {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let is_one = |path: &PathBuf| path.to_string_lossy().contains("MANIFEST-");
    let found: Vec<_> = paths.filter(is_one).collect();
    assert_eq!(found.len(), 1);
    found[0].clone()
}

/// Where the records of a log end, each of which is whole in the first block: a checksum of 4
/// bytes, a length of 2, a type of 1, and the bytes.
fn record_ends(log: &[u8]) -> Vec<usize> {
    assert!(log.len() < 32 << 10);
    let mut ends = vec![0];
    while let Some([_, _, _, _, low, high, kind]) =
        log.get(*ends.last().unwrap()..).and_then(|rest| rest.first_chunk::<7>())
    {
        assert_eq!(*kind, 1);
        ends.push(ends.last().unwrap() + 7 + usize::from(u16::from_le_bytes([*low, *high])));
    }
    ends
}

fn check(engine: &dyn Engine, model: &Records, at: &str) {
    let mut expected: Vec<_> = model.clone().into_iter().collect();
    for direction in [Direction::Forward, Direction::Backward] {
        let found = scanned(engine, KeyRange::all(), direction, usize::MAX);
        assert!(found == expected, "{at}, {direction:?}");
        expected.reverse();
    }
    for number in 0..1500 {
        let key = key(number);
        assert_eq!(engine.get_vec(&key).unwrap().as_ref(), model.get(&key), "{at}");
    }
}

#[test]
fn a_merge_cut_short_behind_any_section_has_lost_nothing_and_can_be_repeated() {
    let root = tempfile::tempdir().unwrap();
    let [original, every, case] =
        ["original", "every file", "case"].map(|name| root.path().join(name));
    [&original, &every].into_iter().for_each(|path| fs::create_dir(path).unwrap());
    let (engine, model) = fill(&original);
    let path = manifest(&original);
    let inputs_bytes = table_bytes(&original);
    let merged_from = fs::read(&path).unwrap().len();
    copy_files(&original, &every);
    engine.compact().unwrap();
    copy_files(&original, &every);
    let log = fs::read(&path).unwrap();
    drop(engine);

    let ends = record_ends(&log);
    let sections: Vec<_> = ends.iter().filter(|end| **end >= merged_from).collect();
    assert!(sections.len() > 10, "{} sections", sections.len());
    let leveldb = registry::find("leveldb").ok().filter(|leveldb| (leveldb.available)().is_ok());
    for (done, end) in sections.into_iter().enumerate() {
        let make = || {
            let _ = fs::remove_dir_all(&case);
            fs::create_dir(&case).unwrap();
            copy_files(&every, &case);
            fs::write(manifest(&case), &log[..*end]).unwrap();
        };
        make();
        let engine = Lsm::open(&case, options()).unwrap();
        check(&engine, &model, &format!("{done} sections"));
        drop(engine);
        // Everything else is removed at open: so much is in use.
        let used = table_bytes(&case);
        assert!(used < inputs_bytes + inputs_bytes / 10, "{used} bytes for {inputs_bytes}");
        let engine = Lsm::open(&case, options()).unwrap();
        engine.compact().unwrap();
        check(&engine, &model, &format!("{done} sections, compacted"));
        drop(engine);
        if let Some(leveldb) = leveldb {
            make();
            let engine = (leveldb.open)(&case, &OpenOptions::default()).unwrap();
            check(&*engine, &model, &format!("LevelDB, {done} sections"));
            engine.compact().unwrap();
            check(&*engine, &model, &format!("LevelDB, {done} sections, compacted"));
        }
    }
}
