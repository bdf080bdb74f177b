//! Writers and readers at once.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use engines::{Batch, Direction, Durability, Engine, KeyRange};

use super::{Records, assert_holds, for_every_engine, open_at};
use crate::records::scanned;

const WRITERS: u32 = 4;
const READERS: u32 = 4;
const RECORDS: u32 = 150;

/// Each writer owns a part of the keys and writes ascending rounds. A reader may see any round that
/// was reached, but never an older one than was acknowledged before it looked, and never a value
/// that nobody wrote.
#[test]
fn four_writers_and_four_readers_see_only_what_was_written() {
    for_every_engine(|engine| {
        let directory = tempfile::tempdir().unwrap();
        let store = open_at(engine, directory.path(), Durability::Buffered);
        let store: &dyn Engine = &*store;
        let acknowledged: Vec<AtomicU32> = (0..WRITERS).map(|_| AtomicU32::new(0)).collect();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let acknowledged = &acknowledged[writer as usize];
                    scope.spawn(move || write_rounds(store, writer, acknowledged))
                })
                .collect();
            for reader in 0..READERS {
                let (acknowledged, done) = (&acknowledged, &done);
                scope.spawn(move || read_rounds(store, reader, acknowledged, done, engine.name));
            }
            for writer in writers {
                writer.join().unwrap();
            }
            done.store(true, Ordering::Release);
        });
        let mut expected = Records::new();
        for writer in 0..WRITERS {
            for number in 0..RECORDS {
                expected.insert(key(writer, number), value(writer, number, ROUNDS));
            }
        }
        assert_holds(engine.name, store, &expected);
    });
}

/// Others write behind the range, each time nearer to it: none of it belongs to what is scanned.
#[test]
fn a_range_in_which_nobody_writes_is_scanned_whole_beside_a_writer() {
    for_every_engine(|engine| {
        let directory = tempfile::tempdir().unwrap();
        let store = open_at(engine, directory.path(), Durability::Buffered);
        let store: &dyn Engine = &*store;
        if !store.capabilities().ordered_scan {
            return;
        }
        let records: Records =
            (0..100).map(|number| (key(0, number), value(0, number, 1))).collect();
        records.iter().for_each(|(key, value)| store.put(key, value).unwrap());
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    for number in (0..200u8).rev() {
                        store.put(&[b'x', number], b"").unwrap();
                    }
                }
            });
            let _done = Done(&done);
            let middle = key(0, 50);
            for _ in 0..100 {
                for range in [KeyRange::between(b"0", b"x"), KeyRange::between(b"0", &middle)] {
                    let within = |entry: &(&Vec<u8>, &Vec<u8>)| range.contains(entry.0);
                    let name = engine.name;
                    let found = scanned(store, range, Direction::Forward, usize::MAX);
                    let found = found.iter().map(|(key, value)| (key, value));
                    assert!(found.eq(records.iter().filter(within)), "{name}");
                    let found = scanned(store, range, Direction::Backward, usize::MAX);
                    let found = found.iter().map(|(key, value)| (key, value));
                    assert!(found.eq(records.iter().rev().filter(within)), "{name}, backwards");
                }
            }
        });
    });
}

/// Says so when it goes, after a failure too.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

const ROUNDS: u32 = 4;

fn key(writer: u32, number: u32) -> Vec<u8> {
    format!("{number:04} of {writer}").into_bytes()
}

fn value(writer: u32, number: u32, round: u32) -> Vec<u8> {
    let mut value = round.to_be_bytes().to_vec();
    value.extend(format!("round {round} of {writer}/{number}").repeat(10).into_bytes());
    value
}

/// The round is stored once all its records are acknowledged.
fn write_rounds(store: &dyn Engine, writer: u32, acknowledged: &AtomicU32) {
    for round in 1..=ROUNDS {
        for number in 0..RECORDS {
            if (number + round) % 7 == 0 {
                let mut batch = Batch::new();
                batch.put(&key(writer, number), &value(writer, number, round)).unwrap();
                store.write(&batch).unwrap();
            } else {
                store.put(&key(writer, number), &value(writer, number, round)).unwrap();
            }
        }
        acknowledged.store(round, Ordering::Release);
    }
}

fn read_rounds(
    store: &dyn Engine,
    reader: u32,
    acknowledged: &[AtomicU32],
    done: &AtomicBool,
    name: &str,
) {
    let check = |writer: u32, number: u32, oldest: u32, found: &[u8]| {
        let round = u32::from_be_bytes(found[..4].try_into().unwrap());
        assert!(found == value(writer, number, round), "{name}: a value that nobody wrote");
        assert!(round >= oldest, "{name}: round {round} after {oldest} was acknowledged");
    };
    let mut turn = reader;
    loop {
        let last = done.load(Ordering::Acquire);
        turn += 1;
        let writer = turn % WRITERS;
        let oldest = acknowledged[writer as usize].load(Ordering::Acquire);
        for number in (turn % 5..RECORDS).step_by(5) {
            match store.get_vec(&key(writer, number)).unwrap() {
                Some(found) => check(writer, number, oldest, &found),
                None => assert_eq!(oldest, 0, "{name}: an acknowledged record is missing"),
            }
        }
        if store.capabilities().ordered_scan && turn.is_multiple_of(4) {
            let oldest = acknowledged[0].load(Ordering::Acquire);
            let mut last_key = Vec::new();
            store
                .scan(KeyRange::all(), Direction::Forward, &mut |key, value| {
                    assert!(last_key.as_slice() < key, "{name}: a scan out of order");
                    last_key = key.to_vec();
                    if let Some(number) = key.strip_suffix(b" of 0") {
                        let number = std::str::from_utf8(number).unwrap().parse().unwrap();
                        check(0, number, oldest, value);
                    }
                    ControlFlow::Continue(())
                })
                .unwrap();
        }
        if last {
            return;
        }
    }
}

/// Two keys always change together; a scan of one moment sees them equal.
#[test]
fn a_batch_is_seen_whole_or_not_at_all_by_scans_of_one_moment() {
    for_every_engine(|engine| {
        let directory = tempfile::tempdir().unwrap();
        let store = open_at(engine, directory.path(), Durability::Buffered);
        let store: &dyn Engine = &*store;
        let capabilities = store.capabilities();
        if !(capabilities.atomic_batch && capabilities.snapshot_scan && capabilities.ordered_scan) {
            return;
        }
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let done = &done;
            scope.spawn(move || {
                for number in 0..300_u32 {
                    let mut batch = Batch::new();
                    batch.put(b"left", &number.to_be_bytes()).unwrap();
                    batch.put(format!("middle {number}").as_bytes(), b"").unwrap();
                    batch.put(b"right", &number.to_be_bytes()).unwrap();
                    store.write(&batch).unwrap();
                }
                done.store(true, Ordering::Release);
            });
            while !done.load(Ordering::Acquire) {
                let mut sides = Records::new();
                store
                    .scan(KeyRange::all(), Direction::Forward, &mut |key, value| {
                        sides.insert(key.to_vec(), value.to_vec());
                        ControlFlow::Continue(())
                    })
                    .unwrap();
                let (left, right) = (sides.get(b"left".as_slice()), sides.get(b"right".as_slice()));
                assert_eq!(left, right, "{}: half a batch", engine.name);
            }
        });
    });
}
