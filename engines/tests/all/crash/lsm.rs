//! The LSM engine.

use std::path::Path;
use std::sync::Arc;

use engines::fs::FileSystem;
use engines::fs::sim::SimFs;
use engines::lsm::{Lsm, Options};
use engines::{Durability, Engine, Error, Result};

use super::faults::fail_everywhere;
use super::workload::{Shape, Subject};
use super::{Report, crash_everywhere, scaled, seeds};

fn with_lsm<T>(durability: Durability, test: impl FnOnce(Subject<'_>) -> T) -> T {
    let options = Options {
        durability,
        memtable_bytes: 4 << 10,
        memtable_count: 3,
        block_cache_bytes: 64 << 10,
        block_bytes: 512,
        table_bytes: 4 << 10,
        level0_tables: 2,
        level0_slowdown_tables: 20,
        level0_stop_tables: 24,
        level1_bytes: 16 << 10,
        level_ratio: 2,
        background_threads: 2,
        manifest_bytes: 1 << 10,
        ..Options::default()
    };
    let open = |disk: &SimFs| -> Result<Box<dyn Engine>> {
        let fs = Arc::new(disk.clone());
        Ok(Box::new(Lsm::open_in(fs, Path::new("/db"), options.clone())?))
    };
    test(Subject { name: "lsm", durability, log_suffix: Some(".log"), open: &open })
}

fn crashes(durability: Durability, threads: usize, seed_count: u64) {
    let mut report = Report::default();
    for seed in seeds(seed_count) {
        let steps = scaled(150 / threads);
        let shape = Shape { seed, phases: 3, threads, steps, keys: 40, value_bytes: 300 };
        report.add(with_lsm(durability, |subject| crash_everywhere(subject, shape)));
    }
    report.assert_reached(&[
        "create .log",
        "remove .log",
        "create .ldb",
        "remove .ldb",
        "create MANIFEST-",
        "remove MANIFEST-",
        "rename .dbtmp",
    ]);
    report.assert_clean(&format!("lsm, crashes, {durability}, {threads} threads"));
}

#[test]
fn crashes_at_level_buffered() {
    crashes(Durability::Buffered, 1, 1);
}

#[test]
fn crashes_at_level_process() {
    crashes(Durability::Process, 1, 3);
}

#[test]
fn crashes_at_level_power() {
    crashes(Durability::Power, 1, 1);
}

#[test]
fn crashes_with_several_writers() {
    for durability in Durability::ALL {
        crashes(durability, 4, 1);
    }
}

#[test]
fn failing_calls() {
    let mut report = Report::default();
    for durability in Durability::ALL {
        for seed in seeds(1) {
            let steps = scaled(60);
            let shape = Shape { seed, phases: 2, threads: 1, steps, keys: 20, value_bytes: 300 };
            report.add(with_lsm(durability, |subject| fail_everywhere(subject, shape)));
        }
    }
    report.assert_clean("lsm, failing calls");
}

#[test]
fn a_database_without_current_is_refused_and_left_as_it_is_once_it_may_hold_something() {
    with_lsm(Durability::Process, |subject| {
        for changes in [0, 1, 1000] {
            let disk = SimFs::new();
            let engine = (subject.open)(&disk).unwrap();
            for change in 0..changes {
                engine.put(format!("{change}").as_bytes(), b"value").unwrap();
            }
            engine.close().unwrap();
            disk.remove(Path::new("/db/CURRENT")).unwrap();
            let before = disk.mark();
            match (subject.open)(&disk) {
                Ok(engine) => {
                    assert_eq!(changes, 0, "the data of {changes} changes is passed over");
                    engine.close().unwrap();
                }
                Err(error) => {
                    assert!(matches!(error, Error::NotADatabase { .. }), "{error}");
                    assert_ne!(changes, 0, "nothing was in it: {error}");
                    assert_eq!(disk.mark(), before, "nothing was touched");
                }
            }
        }
    });
}
