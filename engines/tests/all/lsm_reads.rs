//! Cursors and lookups of many keys against a `BTreeMap`, at moments in the middle of writes,
//! flushes and compactions; and against what the original LevelDB reads in the same directory.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use engines::fs::sim::SimFs;
use engines::lsm::{Cursor, CursorOptions, Lsm, Options, Reader};
use engines::{Compression, Engine, Error, KeyRange};
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;

use crate::records::{Records, seeded};

/// Parts so small that a few writes fill several levels.
fn tiny() -> Options {
    Options {
        memtable_bytes: 6 << 10,
        memtable_count: 3,
        table_bytes: 8 << 10,
        level0_tables: 3,
        level0_slowdown_tables: 6,
        level0_stop_tables: 9,
        level1_bytes: 24 << 10,
        level_ratio: 3,
        block_bytes: 300,
        restart_interval: 3,
        block_cache_bytes: 20 << 10,
        open_tables: 8,
        ..Options::default()
    }
}

fn random_key(random: &mut ChaCha8Rng) -> Vec<u8> {
    let number = random.random_range(0..700u32);
    match number % 4 {
        0 if number == 0 => Vec::new(),
        0 => format!("key/{number:04}").into_bytes(),
        1 => format!("key/of/a/longer/sort/{number:04}").into_bytes(),
        2 => vec![0xff; number as usize % 7],
        _ => number.to_be_bytes()[2..].to_vec(),
    }
}

fn write(engine: &Lsm, model: &mut Records, random: &mut ChaCha8Rng, count: u32) {
    for _ in 0..count {
        let key = random_key(random);
        if random.random_range(0..10) < 3 {
            engine.delete(&key).unwrap();
            model.remove(&key);
        } else {
            let mut value = vec![b'v'; random.random_range(0..200)];
            let varied = value.len().min(4);
            random.fill_bytes(&mut value[..varied]);
            engine.put(&key, &value).unwrap();
            model.insert(key, value);
        }
    }
}

fn random_options(random: &mut ChaCha8Rng) -> CursorOptions {
    let mut bound = || match random.random_range(0..4) {
        0 => Bound::Included(random_key(random)),
        1 => Bound::Excluded(random_key(random)),
        _ => Bound::Unbounded,
    };
    let (lower, upper) = (bound(), bound());
    let options = match random.random_range(0..4) {
        0 => CursorOptions::prefix(b"key/"),
        1 => CursorOptions::prefix(b"\xff\xff"),
        _ => CursorOptions { lower, upper, ..CursorOptions::default() },
    };
    let readahead_bytes = if random.random() { 0 } else { 1000 };
    CursorOptions { fill_cache: random.random(), readahead_bytes, ..options }
}

fn inside<'a>(model: &'a Records, options: &CursorOptions) -> Vec<(&'a [u8], &'a [u8])> {
    let range = KeyRange {
        start: options.lower.as_ref().map(Vec::as_slice),
        end: options.upper.as_ref().map(Vec::as_slice),
    };
    let records = model.iter().map(|(key, value)| (&key[..], &value[..]));
    records.filter(|(key, _)| range.contains(key)).collect()
}

/// Moves at random; `records` is what the cursor must show, in order.
fn walk(cursor: &mut Cursor<'_>, records: &[(&[u8], &[u8])], random: &mut ChaCha8Rng) {
    assert!(!cursor.valid() && !cursor.next().unwrap() && !cursor.prev().unwrap());
    let mut at: Option<usize> = None;
    for _ in 0..150 {
        let target = random_key(random);
        let (action, told) = match random.random_range(0..12) {
            0 => {
                at = (!records.is_empty()).then_some(0);
                ("first", cursor.seek_to_first())
            }
            1 => {
                at = records.len().checked_sub(1);
                ("last", cursor.seek_to_last())
            }
            2 => {
                at = records.iter().position(|(key, _)| *key >= &target[..]);
                ("seek", cursor.seek(&target))
            }
            3 => {
                at = records.iter().rposition(|(key, _)| *key <= &target[..]);
                ("seek for prev", cursor.seek_for_prev(&target))
            }
            4..=7 => {
                at = at.map(|at| at + 1).filter(|at| *at < records.len());
                ("next", cursor.next())
            }
            _ => {
                at = at.and_then(|at| at.checked_sub(1));
                ("prev", cursor.prev())
            }
        };
        assert_eq!(told.unwrap(), at.is_some(), "{action} {target:?}");
        assert_eq!(cursor.record(), at.map(|at| records[at]), "{action} {target:?}");
        assert_eq!(cursor.key(), at.map(|at| records[at].0));
        assert_eq!(cursor.value(), at.map(|at| records[at].1));
    }
}

fn check(reader: &Reader<'_>, model: &Records, random: &mut ChaCha8Rng) {
    let options = random_options(random);
    let mut cursor = reader.cursor(options.clone()).unwrap();
    walk(&mut cursor, &inside(model, &options), random);
    // Few keys, many, some twice; with luck whole blocks and single keys of them.
    let keys: Vec<_> = (0..random.random_range(0..300)).map(|_| random_key(random)).collect();
    let expected: Vec<_> = keys.iter().map(|key| model.get(key).cloned()).collect();
    assert_eq!(reader.multi_get_vec(&keys).unwrap(), expected);
    let there = expected.iter().flatten().count();
    assert_eq!(reader.multi_get(&keys, |_, _| {}).unwrap(), there);
    for (key, expected) in keys.iter().zip(&expected) {
        let mut found = None;
        let told = reader.get(key, &mut |value| found = Some(value.to_vec())).unwrap();
        assert_eq!((told, &found), (expected.is_some(), expected));
    }
}

#[test]
fn cursors_and_lookups_show_their_moment_while_everything_moves() {
    let mut random = seeded();
    for options in [
        tiny(),
        Options { filter_bits: 0, compression: Compression::None, ..tiny() },
        Options { compression: Compression::Zstd(3), block_cache_bytes: 0, ..tiny() },
        Options { memtable_bytes: 64 << 10, block_bytes: 4 << 10, ..tiny() },
    ] {
        let disk: Arc<SimFs> = Arc::new(SimFs::new());
        let engine = Lsm::open_in(disk, Path::new("/database"), options).unwrap();
        let mut model = Records::new();
        let mut held = None;
        for round in 0..40 {
            write(&engine, &mut model, &mut random, 150);
            match random.random_range(0..8) {
                0 => engine.flush().unwrap(),
                1 => engine.compact().unwrap(),
                2 => engine.quiesce().unwrap(),
                _ => {}
            }
            let (reader, then) = (engine.reader(), model.clone());
            if round % 5 == 0 {
                held = Some((engine.snapshot(), model.clone()));
            }
            // More than fits the memtables: what the reader sees is flushed and merged meanwhile.
            write(&engine, &mut model, &mut random, 300);
            check(&reader, &then, &mut random);
            check(&engine.reader(), &model, &mut random);
            if let Some((snapshot, then)) = &held {
                check(&engine.reader_at(snapshot), then, &mut random);
            }
        }
    }
}

#[test]
fn a_damaged_block_is_an_error_of_the_move_that_reads_it() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Lsm::open(directory.path(), Options::default()).unwrap();
    for number in 0..2000 {
        engine.put(format!("{number:05}").as_bytes(), &[b'v'; 100]).unwrap();
    }
    engine.compact().unwrap();
    Box::new(engine).close().unwrap();
    let table = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|extension| extension == "ldb"))
        .unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    // Early in the data: the index, at the end, is as it was.
    bytes[1000] ^= 0xff;
    std::fs::write(&table, bytes).unwrap();

    let engine = Lsm::open(directory.path(), Options::default()).unwrap();
    let reader = engine.reader();
    let mut cursor = reader.cursor(CursorOptions::default()).unwrap();
    assert!(cursor.seek_to_last().unwrap());
    let error = loop {
        match cursor.prev() {
            Ok(true) => {}
            Ok(false) => panic!("the damage was not seen"),
            Err(error) => break error,
        }
    };
    assert!(error.is_corruption(), "{error}");
    assert!(!cursor.valid() && cursor.record().is_none());
    assert!(cursor.seek(b"01999").unwrap(), "it can be placed again");
    let keys: Vec<_> = (0..2000).map(|number| format!("{number:05}")).collect();
    assert!(reader.multi_get(&keys, |_, _| {}).unwrap_err().is_corruption());
}

#[test]
fn options_of_the_format_that_cannot_be_are_refused_before_anything_is_made() {
    for wrong in [
        Options { block_bytes: 63, ..Options::default() },
        Options { block_bytes: (64 << 20) + 1, ..Options::default() },
        Options { restart_interval: 0, ..Options::default() },
        Options { filter_bits: 65, ..Options::default() },
        Options { table_bytes: 0, ..Options::default() },
        Options { compression: Compression::Zstd(0), ..Options::default() },
        Options { compression: Compression::Zstd(23), ..Options::default() },
    ] {
        let directory = tempfile::tempdir().unwrap();
        let error = Lsm::open(directory.path().join("new"), wrong).err().unwrap();
        assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
        assert!(!directory.path().join("new").exists());
    }
}

#[cfg(feature = "system")]
#[test]
fn cursors_show_what_leveldb_scans_in_the_same_directory() {
    use engines::{Direction, OpenOptions, registry};
    use std::ops::ControlFlow;

    let leveldb = registry::find("leveldb").unwrap();
    if let Err(reason) = (leveldb.available)() {
        println!("skipped: {reason}");
        return;
    }
    let mut random = seeded();
    for options in [
        tiny(),
        Options { compression: Compression::None, restart_interval: 1, ..tiny() },
        Options { block_bytes: 6000, filter_bits: 20, table_bytes: 100 << 10, ..tiny() },
    ] {
        let directory = tempfile::tempdir().unwrap();
        let engine = Lsm::open(directory.path(), options.clone()).unwrap();
        write(&engine, &mut Records::new(), &mut random, 3000);
        Box::new(engine).close().unwrap();
        let ranges: Vec<_> = (0..40).map(|_| random_options(&mut random)).collect();
        let original = leveldb.open(directory.path(), &OpenOptions::default()).unwrap();
        let mut scanned = Vec::new();
        for range in &ranges {
            let range = KeyRange {
                start: range.lower.as_ref().map(Vec::as_slice),
                end: range.upper.as_ref().map(Vec::as_slice),
            };
            for direction in [Direction::Forward, Direction::Backward] {
                let mut records = Vec::new();
                let mut visit = |key: &[u8], value: &[u8]| {
                    records.push((key.to_vec(), value.to_vec()));
                    ControlFlow::Continue(())
                };
                original.scan(range, direction, &mut visit).unwrap();
                scanned.push(records);
            }
        }
        original.close().unwrap();

        let engine = Lsm::open(directory.path(), options).unwrap();
        let reader = engine.reader();
        for (range, scanned) in ranges.into_iter().zip(scanned.chunks(2)) {
            let mut cursor = reader.cursor(range).unwrap();
            let (mut forward, mut backward) = (Vec::new(), Vec::new());
            cursor.seek_to_first().unwrap();
            while let Some((key, value)) = cursor.record() {
                forward.push((key.to_vec(), value.to_vec()));
                cursor.next().unwrap();
            }
            cursor.seek_to_last().unwrap();
            while let Some((key, value)) = cursor.record() {
                backward.push((key.to_vec(), value.to_vec()));
                cursor.prev().unwrap();
            }
            assert!(forward == scanned[0] && backward == scanned[1]);
        }
    }
}
