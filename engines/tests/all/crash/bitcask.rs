//! The Bitcask engine.

use std::path::Path;
use std::sync::Arc;

use engines::bitcask::{Bitcask, MergePolicy, Options};
use engines::fs::sim::{CrashModel, FaultKind, FaultPoint, FaultScope, SimFs};
use engines::{Durability, Engine, Result};

use super::faults::fail_everywhere;
use super::workload::{Shape, Subject};
use super::{Report, crash_everywhere, scaled, seeds};

/// Small files, so that each workload rotates and merges many times; smaller ones at odd seeds.
fn with_bitcask<T>(durability: Durability, seed: u64, test: impl FnOnce(Subject<'_>) -> T) -> T {
    let options = Options {
        durability,
        max_file_bytes: if seed.is_multiple_of(2) { 6 << 10 } else { 2 << 10 },
        buffer_bytes: 500,
        merge: MergePolicy {
            trigger_dead_fraction: 0.5,
            trigger_dead_bytes: 3 << 10,
            trigger_small_files: 3,
            threshold_dead_fraction: 0.2,
            threshold_dead_bytes: 1 << 10,
            small_file_bytes: 1 << 10,
            ..MergePolicy::default()
        },
        ..Options::default()
    };
    let open = |disk: &SimFs| -> Result<Box<dyn Engine>> {
        let fs = Arc::new(disk.clone());
        Ok(Box::new(Bitcask::open_in(fs, Path::new("/db"), options.clone())?))
    };
    let log_suffix = Some(".bitcask.data");
    test(Subject { name: "bitcask", durability, log_suffix, open: &open })
}

fn crashes(durability: Durability, threads: usize, seed_count: u64) {
    let mut report = Report::default();
    for seed in seeds(seed_count) {
        let steps = scaled(150 / threads);
        let shape = Shape { seed, phases: 3, threads, steps, keys: 40, value_bytes: 300 };
        report.add(with_bitcask(durability, seed, |subject| crash_everywhere(subject, shape)));
    }
    report.assert_reached(&[
        "create .bitcask.data",
        "remove .bitcask.data",
        "rename .bitcask.data.tmp",
        "rename .bitcask.hint.tmp",
        "remove .bitcask.hint",
    ]);
    report.assert_clean(&format!("bitcask, crashes, {durability}, {threads} threads"));
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
            report.add(with_bitcask(durability, seed, |subject| fail_everywhere(subject, shape)));
        }
    }
    report.assert_clean("bitcask, failing calls");
}

#[test]
fn a_sync_saves_what_an_earlier_one_that_failed_should_have_saved() {
    with_bitcask(Durability::Buffered, 1, |subject| {
        let disk = SimFs::new();
        let engine = (subject.open)(&disk).unwrap();
        // A full file, and the start of another in the buffer.
        (0..20).for_each(|key| engine.put(&[key], &[key; 100]).unwrap());
        disk.fail_at(FaultPoint {
            after: 0,
            scope: FaultScope::TakesSpace,
            kind: FaultKind::NoSpace,
            sticky: true,
            short_write: false,
        });
        engine.sync().unwrap_err();
        disk.clear_faults();
        engine.sync().unwrap();
        let crashed = disk.trace().crash_at(usize::MAX, CrashModel::DropUnsynced);
        let engine = (subject.open)(&crashed).unwrap();
        for key in 0..20 {
            assert_eq!(engine.get_vec(&[key]).unwrap(), Some(vec![key; 100]));
        }
    });
}
