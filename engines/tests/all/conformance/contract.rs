//! Single calls: put, get, delete, batches, scans, folds, and what is refused.

use std::ops::{Bound, ControlFlow};
use std::sync::mpsc;
use std::time::Duration;

use engines::{Batch, Direction, Engine, Error, KeyRange, Prefix};

use super::{Records, assert_holds, folded, for_every_engine, is_refusal, open, scanned};

#[test]
fn a_value_is_read_back_until_it_is_overwritten_or_deleted() {
    for_every_engine(|engine| {
        let directory = tempfile::tempdir().unwrap();
        let store = open(engine, directory.path());
        let mut expected = Records::new();
        let megabyte: Vec<u8> =
            (0..1_000_003_u32).map(|at| at.to_le_bytes()[at as usize % 3]).collect();
        let all_bytes: Vec<u8> = (0..=255).collect();
        for (key, value) in [
            (b"key".as_slice(), b"value".as_slice()),
            (b"k", b""),
            (b"\0", b"\0\xff"),
            (b"\0\0", b"two zeros"),
            (b"\xff\xff\xff", b"the end"),
            (all_bytes.as_slice(), all_bytes.as_slice()),
            (b"large", megabyte.as_slice()),
            (b"key", b"another value, longer than the first"),
            (b"large", b"small now"),
            (b"k", megabyte.as_slice()),
        ] {
            store.put(key, value).unwrap();
            expected.insert(key.to_vec(), value.to_vec());
            assert!(store.get_vec(key).unwrap().as_deref() == Some(value), "{}", engine.name);
        }
        assert_holds(engine.name, &*store, &expected);

        for absent in [b"ke".as_slice(), b"keys", b"\0\0\0", b"\x80"] {
            let mut calls = 0;
            assert!(!store.get(absent, &mut |_| calls += 1).unwrap(), "{}", engine.name);
            assert_eq!(calls, 0);
            store.delete(absent).unwrap();
        }
        for key in [b"key".as_slice(), b"\0", b"k"] {
            store.delete(key).unwrap();
            expected.remove(key);
            assert_eq!(store.get_vec(key).unwrap(), None, "{}", engine.name);
        }
        assert_holds(engine.name, &*store, &expected);
        store.put(b"key", b"back again").unwrap();
        expected.insert(b"key".to_vec(), b"back again".to_vec());
        assert_holds(engine.name, &*store, &expected);
        store.close().unwrap();
    });
}

#[test]
fn an_empty_or_huge_key_is_held_or_refused_and_nothing_in_between() {
    for_every_engine(|engine| {
        let directory = tempfile::tempdir().unwrap();
        let store = open(engine, directory.path());
        for length in [0, 255, 512, 4_000, 65_536, 200_000] {
            let key = vec![b'k'; length];
            match store.put(&key, b"value") {
                Ok(()) => {
                    assert_eq!(store.get_vec(&key).unwrap().unwrap(), b"value", "{}", engine.name);
                    assert_eq!(folded(&*store).len(), 1, "{}", engine.name);
                    store.delete(&key).unwrap();
                }
                Err(error) => {
                    assert!(is_refusal(&error), "{}: {length} bytes: {error}", engine.name);
                    assert_ne!(length, 255, "{}: {error}", engine.name);
                    let absent = store.get_vec(&key);
                    assert!(matches!(absent, Ok(None)), "{}: {absent:?}", engine.name);
                    store.delete(&key).unwrap();
                }
            }
            assert!(folded(&*store).is_empty(), "{}", engine.name);
        }
    });
}

#[test]
fn a_batch_applies_in_order_and_a_refused_one_not_at_all() {
    for_every_engine(|engine| {
        let directory = tempfile::tempdir().unwrap();
        let store = open(engine, directory.path());
        store.write(&Batch::new()).unwrap();
        store.put(b"old", b"1").unwrap();

        let mut batch = Batch::new();
        batch.put(b"twice", b"first").unwrap();
        batch.delete(b"old").unwrap();
        batch.put(b"gone", b"x").unwrap();
        batch.put(b"twice", b"second").unwrap();
        batch.delete(b"gone").unwrap();
        batch.delete(b"back").unwrap();
        batch.put(b"back", b"").unwrap();
        batch.put(b"other", &vec![7; 100_000]).unwrap();
        store.write(&batch).unwrap();
        let expected = Records::from([
            (b"twice".to_vec(), b"second".to_vec()),
            (b"back".to_vec(), Vec::new()),
            (b"other".to_vec(), vec![7; 100_000]),
        ]);
        assert_holds(engine.name, &*store, &expected);

        let mut refused = Batch::new();
        refused.put(b"before", b"x").unwrap();
        refused.delete(b"twice").unwrap();
        refused.put(&vec![b'k'; 200_000], b"x").unwrap();
        match store.write(&refused) {
            Ok(()) => assert_eq!(store.get_vec(b"before").unwrap().unwrap(), b"x"),
            Err(error) => {
                assert!(is_refusal(&error), "{}: {error}", engine.name);
                assert_holds(engine.name, &*store, &expected);
            }
        }
    });
}

#[test]
fn scans_keep_to_every_kind_of_bound_both_ways() {
    for_every_engine(|engine| {
        let directory = tempfile::tempdir().unwrap();
        let store = open(engine, directory.path());
        if !store.capabilities().ordered_scan {
            let scan = store.scan(KeyRange::all(), Direction::Forward, &mut |_, _| unreachable!());
            assert!(matches!(scan, Err(Error::Unsupported { .. })), "{}", engine.name);
            return;
        }
        let keys: [&[u8]; 6] = [b"\0", b"a", b"a\0", b"ab", b"b", b"\xff\xff"];
        let mut expected = Records::new();
        for key in keys {
            store.put(key, key).unwrap();
            expected.insert(key.to_vec(), key.to_vec());
        }
        store.put(b"aa", b"deleted").unwrap();
        store.delete(b"aa").unwrap();

        // Bounds need not be keys that the engine could hold.
        let long = b"a".repeat(70_000);
        let points: [&[u8]; 10] =
            [b"", b"\0", b"a", b"a\0", b"aa", &long, b"ab", b"b", b"z", b"\xff\xff\xff"];
        let mut bounds = vec![Bound::Unbounded];
        bounds.extend(points.iter().flat_map(|at| [Bound::Included(*at), Bound::Excluded(*at)]));
        for &start in &bounds {
            for &end in &bounds {
                let range = KeyRange { start, end };
                let inside: Vec<&Vec<u8>> =
                    expected.keys().filter(|key| range.contains(key)).collect();
                for limit in [1, 2, usize::MAX] {
                    let forward = scanned(&*store, range, Direction::Forward, limit);
                    let backward = scanned(&*store, range, Direction::Backward, limit);
                    let wanted = inside.len().min(limit);
                    assert!(
                        forward.iter().map(|(key, _)| key).eq(inside[..wanted].iter().copied()),
                        "{} forward, limit {limit}: {forward:?}",
                        engine.name
                    );
                    assert!(
                        backward.iter().map(|(key, _)| key).eq(inside
                            .iter()
                            .rev()
                            .take(wanted)
                            .copied()),
                        "{} backward, limit {limit}: {backward:?}",
                        engine.name
                    );
                    assert!(forward.iter().chain(&backward).all(|(key, value)| key == value));
                }
            }
        }
    });
}

#[test]
fn a_prefix_is_scanned_both_ways() {
    for_every_engine(|engine| {
        let directory = tempfile::tempdir().unwrap();
        let store = open(engine, directory.path());
        if !store.capabilities().ordered_scan {
            return;
        }
        let keys: [&[u8]; 8] =
            [b"\x01", b"a", b"a\xff", b"a\xff\xff", b"a\xff\xff\x01", b"b", b"\xff", b"\xff\xff"];
        for key in keys {
            store.put(key, key).unwrap();
        }
        for prefix in [&b""[..], b"a", b"a\xff", b"a\xff\xff", b"b", b"c", b"\xff", b"\xff\xff\xff"]
        {
            let owner = Prefix::new(prefix);
            let mut expected: Vec<_> = keys.into_iter().filter(|k| k.starts_with(prefix)).collect();
            for direction in [Direction::Forward, Direction::Backward] {
                let found = scanned(&*store, owner.range(), direction, usize::MAX);
                let found = found.iter().map(|(key, _)| key);
                assert!(found.eq(&expected), "{} {direction:?} {prefix:?}", engine.name);
                expected.reverse();
            }
        }
    });
}

#[test]
fn a_fold_visits_each_live_record_once_and_stops_when_told() {
    for_every_engine(|engine| {
        let directory = tempfile::tempdir().unwrap();
        let store = open(engine, directory.path());
        let mut expected = Records::new();
        for round in 0..3_u32 {
            for number in 0..100_u32 {
                let (key, value) = (number.to_be_bytes(), (number * round).to_be_bytes());
                store.put(&key, &value).unwrap();
                expected.insert(key.to_vec(), value.to_vec());
            }
        }
        for number in (0..100_u32).step_by(3) {
            store.delete(&number.to_be_bytes()).unwrap();
            expected.remove(number.to_be_bytes().as_slice());
        }
        assert_holds(engine.name, &*store, &expected);
        let mut visits = 0;
        store
            .fold(&mut |_, _| {
                visits += 1;
                if visits < 5 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
            .unwrap();
        assert_eq!(visits, 5, "{}", engine.name);
    });
}

/// The writer may be held up until the scan is over (`memory` does that): the scan gives it a
/// while, and must see the old values either way.
#[test]
fn a_scan_sees_one_moment_where_that_is_claimed() {
    for_every_engine(|engine| {
        let directory = tempfile::tempdir().unwrap();
        let store = open(engine, directory.path());
        if !store.capabilities().snapshot_scan {
            return;
        }
        let mut old = Records::new();
        for number in 0..200_u32 {
            store.put(&number.to_be_bytes(), b"old").unwrap();
            old.insert(number.to_be_bytes().to_vec(), b"old".to_vec());
        }
        let (start, started) = mpsc::channel::<()>();
        let (finish, finished) = mpsc::channel::<()>();
        let mut seen = Records::new();
        std::thread::scope(|scope| {
            let writer: &dyn Engine = &*store;
            scope.spawn(move || {
                started.recv().unwrap();
                for number in (0..400_u32).step_by(2) {
                    writer.put(&number.to_be_bytes(), b"new").unwrap();
                }
                for number in (1..200_u32).step_by(2) {
                    writer.delete(&number.to_be_bytes()).unwrap();
                }
                // The scan may have given up waiting.
                let _ = finish.send(());
            });
            store
                .scan(KeyRange::all(), Direction::Forward, &mut |key, value| {
                    if seen.is_empty() {
                        start.send(()).unwrap();
                        let _ = finished.recv_timeout(Duration::from_secs(1));
                    }
                    seen.insert(key.to_vec(), value.to_vec());
                    ControlFlow::Continue(())
                })
                .unwrap();
        });
        assert!(seen == old, "{}: the scan saw later writes", engine.name);
        assert_eq!(folded(&*store).len(), 200, "{}", engine.name);
    });
}

#[test]
fn the_null_engine_takes_everything_and_holds_nothing() {
    let engine = engines::registry::find("null").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let store = open(engine, directory.path());
    store.put(b"key", b"value").unwrap();
    assert_eq!(store.get_vec(b"key").unwrap(), None);
    assert!(folded(&*store).is_empty() && !store.capabilities().persistent);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// The longest key that the registry tells is held, and one byte more is refused.
#[test]
fn keys_are_as_long_as_the_registry_tells() {
    for_every_engine(|engine| {
        let directory = tempfile::tempdir().unwrap();
        let store = open(engine, directory.path());
        let mut key = vec![b'k'; engine.most_key_bytes.unwrap_or(70_000)];
        store.put(&key, b"value").unwrap();
        let held = store.get_vec(&key).unwrap();
        assert_eq!(held.as_deref(), Some(b"value".as_slice()), "{}", engine.name);
        key.push(b'k');
        let refusal = store.put(&key, b"value").err();
        let told = refusal.map(|error| match error {
            Error::TooLarge { what: "key", size, limit } => (size, limit),
            other => panic!("{}: {other}", engine.name),
        });
        let expected = engine.most_key_bytes.map(|limit| (limit as u64 + 1, limit as u64));
        assert_eq!(told, expected, "{}", engine.name);
        store.close().unwrap();
    });
}

#[test]
fn whether_an_engine_keeps_anything_is_known_before_it_is_opened() {
    for_every_engine(|engine| {
        let directory = tempfile::tempdir().unwrap();
        let store = open(engine, directory.path());
        assert_eq!(engine.persistent, store.capabilities().persistent, "{}", engine.name);
        store.close().unwrap();
    });
}
