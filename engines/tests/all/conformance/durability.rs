//! What outlives a close, a drop, a compaction, and the death of the process.

use std::fs;
use std::path::Path;
use std::process::{self, Command};

use engines::{Batch, Durability, Engine, registry};

use super::{Records, assert_holds, for_every_store, open_at};

/// Puts, overwrites, deletions and batches, the same in every process.
fn fill(store: &dyn Engine, records: u32) {
    for number in 0..records {
        let key = format!("key {:05}", number * 7 % records);
        store.put(key.as_bytes(), format!("first {number}").repeat(20).as_bytes()).unwrap();
    }
    for number in (0..records).step_by(3) {
        store.put(format!("key {number:05}").as_bytes(), b"second").unwrap();
    }
    for number in (0..records).step_by(5) {
        store.delete(format!("key {number:05}").as_bytes()).unwrap();
    }
    let mut batch = Batch::new();
    for number in (0..records).step_by(4) {
        batch.put(format!("batch {number:05}").as_bytes(), &number.to_be_bytes()).unwrap();
        batch.delete(format!("key {number:05}").as_bytes()).unwrap();
    }
    store.write(&batch).unwrap();
}

/// What [`fill`] leaves.
fn filled(records: u32) -> Records {
    let mut expected = Records::new();
    for number in 0..records {
        let key = format!("key {:05}", number * 7 % records).into_bytes();
        expected.insert(key, format!("first {number}").repeat(20).into_bytes());
    }
    for number in (0..records).step_by(3) {
        expected.insert(format!("key {number:05}").into_bytes(), b"second".to_vec());
    }
    for number in (0..records).step_by(5) {
        expected.remove(format!("key {number:05}").as_bytes());
    }
    for number in (0..records).step_by(4) {
        expected.remove(format!("key {number:05}").as_bytes());
        let key = format!("batch {number:05}").into_bytes();
        expected.insert(key, number.to_be_bytes().to_vec());
    }
    expected
}

#[test]
fn everything_is_there_after_sync_compact_close_and_reopen_at_every_level() {
    for_every_store(|engine| {
        for level in Durability::ALL {
            if (engine.durability)(level).is_none() {
                println!("{} has no level {level}", engine.name);
                continue;
            }
            let name = &format!("{} at {level}", engine.name);
            let records = if level == Durability::Power { 60 } else { 400 };
            let expected = filled(records);
            let directory = tempfile::tempdir().unwrap();
            let store = open_at(engine, directory.path(), level);
            fill(&*store, records);
            assert_holds(name, &*store, &expected);
            store.sync().unwrap();
            store.quiesce().unwrap();
            assert_holds(name, &*store, &expected);
            store.close().unwrap();

            let store = open_at(engine, directory.path(), level);
            assert_holds(name, &*store, &expected);
            store.compact().unwrap();
            assert_holds(name, &*store, &expected);
            store.put(b"after", b"compaction").unwrap();
            store.delete(b"after").unwrap();
            let stats = store.stats().unwrap();
            assert!(stats.live_records.is_none_or(|count| count == expected.len() as u64));
            // Dropping ends the engine in order, too.
            drop(store);

            let store = open_at(engine, directory.path(), level);
            assert_holds(name, &*store, &expected);
            store.close().unwrap();
        }
    });
}

#[test]
fn a_level_may_change_from_one_open_to_the_next() {
    for_every_store(|engine| {
        let directory = tempfile::tempdir().unwrap();
        let mut expected = Records::new();
        for (round, level) in Durability::ALL.iter().rev().cycle().take(6).enumerate() {
            if (engine.durability)(*level).is_none() {
                continue;
            }
            let store = open_at(engine, directory.path(), *level);
            let key = format!("round {round}").into_bytes();
            store.put(&key, b"here").unwrap();
            expected.insert(key, b"here".to_vec());
            store.close().unwrap();
        }
        let store = open_at(engine, directory.path(), Durability::Process);
        assert_holds(engine.name, &*store, &expected);
    });
}

const CHILD_ENGINE: &str = "ENGINELAB_CONFORMANCE_ENGINE";
const CHILD_LEVEL: &str = "ENGINELAB_CONFORMANCE_LEVEL";
const CHILD_DIRECTORY: &str = "ENGINELAB_CONFORMANCE_DIRECTORY";
const CHILD_RECORDS: u32 = 100;

/// The levels `process` and `power` promise that an acknowledged write survives the death of the
/// process. The child dies by `abort`: no destructor runs, no buffer is written.
#[test]
fn acknowledged_writes_survive_the_death_of_the_process() {
    for_every_store(|engine| {
        for level in [Durability::Process, Durability::Power] {
            if (engine.durability)(level).is_none() {
                continue;
            }
            let directory = tempfile::tempdir().unwrap();
            let child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "conformance::durability::the_child_that_dies", "--ignored"])
                .env(CHILD_ENGINE, engine.name)
                .env(CHILD_LEVEL, level.to_string())
                .env(CHILD_DIRECTORY, directory.path())
                .output()
                .unwrap();
            assert!(!child.status.success(), "the child was to die");
            let acknowledged = fs::read(directory.path().with_extension("acknowledged"));
            let said = String::from_utf8_lossy(&child.stdout);
            assert!(acknowledged.is_ok(), "{} at {level}: the child failed: {said}", engine.name);
            fs::remove_file(directory.path().with_extension("acknowledged")).unwrap();
            let store = open_at(engine, directory.path(), level);
            let name = &format!("{} at {level}, reopened", engine.name);
            assert_holds(name, &*store, &filled(CHILD_RECORDS));
        }
    });
}

#[test]
#[ignore = "started by acknowledged_writes_survive_the_death_of_the_process"]
fn the_child_that_dies() {
    let Ok(name) = std::env::var(CHILD_ENGINE) else { return };
    let level = std::env::var(CHILD_LEVEL).unwrap().parse().unwrap();
    let directory = std::env::var(CHILD_DIRECTORY).unwrap();
    let directory = Path::new(&directory);
    let store = open_at(registry::find(&name).unwrap(), directory, level);
    fill(&*store, CHILD_RECORDS);
    fs::write(directory.with_extension("acknowledged"), "").unwrap();
    process::abort();
}
