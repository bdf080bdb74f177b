//! The original LevelDB over directories that our engine wrote, and ours over what it made of them.
//! Needs the system's shared library; says so and ends if it is not there.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use engines::lsm::{Lsm, Options};
use engines::{Batch, Compression, Direction, Engine, KeyRange, OpenOptions, registry};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

fn leveldb() -> Option<&'static registry::Registration> {
    let leveldb = registry::find("leveldb").unwrap();
    match (leveldb.available)() {
        Ok(()) => Some(leveldb),
        Err(reason) => {
            println!("skipped: {reason}");
            None
        }
    }
}

fn scanned(engine: &dyn Engine, direction: Direction) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    engine
        .scan(KeyRange::all(), direction, &mut |key, value| {
            found.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        })
        .unwrap();
    found
}

fn check(engine: &dyn Engine, model: &Records, at: &str) {
    let mut expected: Vec<_> = model.clone().into_iter().collect();
    assert!(scanned(engine, Direction::Forward) == expected, "{at}: forward");
    expected.reverse();
    assert!(scanned(engine, Direction::Backward) == expected, "{at}: backward");
    for (key, value) in model {
        assert_eq!(engine.get_vec(key).unwrap().as_ref(), Some(value), "{at}");
    }
}

/// Some writes through the trait, the same to the model.
fn write(engine: &dyn Engine, model: &mut Records, random: &mut ChaCha8Rng, count: u32) {
    for _ in 0..count {
        let key = format!("{:04}", random.random_range(0..1500)).into_bytes();
        let length =
            if random.random_range(0..100) == 0 { 70_000 } else { random.random_range(0..400) };
        let mut value = vec![0; length];
        random.fill_bytes(&mut value[..length / 2]);
        match random.random_range(0..10) {
            0..2 => {
                engine.delete(&key).unwrap();
                model.remove(&key);
            }
            2 => {
                let mut batch = Batch::new();
                batch.delete(&key).unwrap();
                batch.put(&value[..length.min(30)], &value).unwrap();
                engine.write(&batch).unwrap();
                model.remove(&key);
                model.insert(value[..length.min(30)].to_vec(), value);
            }
            _ => {
                engine.put(&key, &value).unwrap();
                model.insert(key, value);
            }
        }
    }
}

fn option_sets() -> Vec<Options> {
    let tiny = Options {
        memtable_bytes: 32 << 10,
        memtable_count: 4,
        table_bytes: 32 << 10,
        level0_tables: 4,
        level0_slowdown_tables: 8,
        level0_stop_tables: 12,
        level1_bytes: 128 << 10,
        level_ratio: 4,
        manifest_bytes: 4 << 10,
        ..Options::default()
    };
    vec![
        Options::default(),
        tiny.clone(),
        Options { compression: Compression::None, filter_bits: 0, ..tiny.clone() },
        Options { block_bytes: 200, restart_interval: 3, level0_tables: 20, ..tiny },
    ]
}

/// A copy of the directory as it is at this moment, with the engine running.
fn copy(directory: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

#[test]
fn leveldb_opens_what_we_wrote_and_we_what_it_made_of_it() {
    let Some(leveldb) = leveldb() else { return };
    let seed = std::env::var("ENGINELAB_SEED")
        .map_or_else(|_| rand::rng().next_u64(), |seed| seed.parse().unwrap());
    println!("ENGINELAB_SEED={seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let open_leveldb = |directory: &Path| leveldb.open(directory, &OpenOptions::default()).unwrap();
    for (set, options) in option_sets().into_iter().enumerate() {
        let directory = tempfile::tempdir().unwrap();
        let mut model = Records::new();
        for session in 0..3 {
            let at = format!("options {set}, session {session}");
            let engine = Lsm::open(directory.path(), options.clone()).unwrap();
            check(&engine, &model, &at);
            write(&engine, &mut model, &mut random, 1500);
            // With live logs, and half-way through whatever goes on once that is still.
            engine.quiesce().unwrap();
            let running = copy(directory.path());
            check(&*open_leveldb(running.path()), &model, &format!("{at}, running"));
            if session == 1 {
                engine.compact().unwrap();
            }
            write(&engine, &mut model, &mut random, 200);
            Box::new(engine).close().unwrap();

            let original = open_leveldb(directory.path());
            check(&*original, &model, &format!("{at}, LevelDB"));
            write(&*original, &mut model, &mut random, 500);
            if session == 2 {
                original.compact().unwrap();
            }
            check(&*original, &model, &format!("{at}, LevelDB after writing"));
            original.close().unwrap();
        }
        let engine = Lsm::open(directory.path(), options).unwrap();
        check(&engine, &model, &format!("options {set}, at the end"));
    }
}
