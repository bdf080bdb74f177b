//! Many threads on one LSM database: writers, readers, scans, flushes and compactions at once.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use engines::lsm::{Lsm, Options};
use engines::{Batch, Direction, Durability, Engine, KeyRange};

fn tiny(durability: Durability) -> Options {
    Options {
        durability,
        memtable_bytes: 16 << 10,
        memtable_count: 3,
        table_bytes: 8 << 10,
        level0_tables: 3,
        level0_slowdown_tables: 5,
        level0_stop_tables: 8,
        level1_bytes: 32 << 10,
        level_ratio: 3,
        block_bytes: 512,
        block_cache_bytes: 64 << 10,
        background_threads: 2,
        open_tables: 8,
        manifest_bytes: 2 << 10,
        ..Options::default()
    }
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes[..8].try_into().unwrap())
}

/// Each batch gives all keys the same number: whoever reads them at one moment finds them equal.
#[test]
fn a_scan_sees_whole_batches_of_one_moment_only() {
    const KEYS: u8 = 40;
    let directory = tempfile::tempdir().unwrap();
    let engine = Lsm::open(directory.path(), tiny(Durability::Process)).unwrap();
    let next = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    let write = || {
        for _ in 0..300 {
            let mut value = next.fetch_add(1, Ordering::Relaxed).to_be_bytes().to_vec();
            value.resize(100, 1);
            let mut batch = Batch::new();
            for key in 0..KEYS {
                batch.put(&[key], &value).unwrap();
            }
            engine.write(&batch).unwrap();
        }
    };
    let scan = |direction: Direction| {
        let mut scan_count = 0;
        while !done.load(Ordering::Acquire) || scan_count < 10 {
            let mut seen = Vec::new();
            engine
                .scan(KeyRange::all(), direction, &mut |_, value| {
                    seen.push(number(value));
                    std::thread::yield_now();
                    ControlFlow::Continue(())
                })
                .unwrap();
            assert!(seen.is_empty() || seen.len() == usize::from(KEYS), "{seen:?}");
            assert!(seen.iter().all(|number| *number == seen[0]), "{direction:?} {seen:?}");
            scan_count += 1;
        }
    };
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3).map(|_| scope.spawn(write)).collect();
        scope.spawn(|| scan(Direction::Forward));
        scope.spawn(|| scan(Direction::Backward));
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                engine.compact().unwrap();
            }
        });
        let outcomes: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Release);
        for outcome in outcomes {
            outcome.unwrap();
        }
    });
    assert!(engine.stats().unwrap().compaction_count.unwrap() > 0);
}

/// Each thread owns some keys and must always find what it wrote last, also after reopening.
#[test]
fn every_writer_finds_its_own_last_write() {
    for durability in Durability::ALL {
        let rounds = if durability == Durability::Power { 60 } else { 600 };
        let directory = tempfile::tempdir().unwrap();
        let engine = Lsm::open(directory.path(), tiny(durability)).unwrap();
        let work = |thread: u8| {
            for round in 0..rounds {
                let key = [thread, u8::try_from(round % 50).unwrap()];
                let mut value = u64::to_be_bytes(round).to_vec();
                value.resize(64 + usize::from(thread) * 20, thread);
                if round % 7 == 3 {
                    engine.delete(&key).unwrap();
                    assert_eq!(engine.get_vec(&key).unwrap(), None);
                } else {
                    engine.put(&key, &value).unwrap();
                    assert_eq!(engine.get_vec(&key).unwrap(), Some(value));
                }
                if round % 200 == 100 {
                    engine.sync().unwrap();
                }
            }
        };
        std::thread::scope(|scope| {
            for thread in 0..8 {
                scope.spawn(move || work(thread));
            }
        });
        Box::new(engine).close().unwrap();
        let engine = Lsm::open(directory.path(), tiny(durability)).unwrap();
        for thread in 0..8 {
            for slot in 0..50u8 {
                let last = (0..rounds).rev().find(|round| round % 50 == u64::from(slot)).unwrap();
                let found = engine.get_vec(&[thread, slot]).unwrap();
                let expected = (last % 7 != 3).then_some(last);
                assert_eq!(found.as_deref().map(number), expected, "{durability} {thread} {slot}");
            }
        }
    }
}
