//! The original LevelDB over directories that our engine wrote, and ours over what it made of them.
//! Needs the system's shared library; says so and ends if it is not there.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use engines::fs::FileSystem;
use engines::fs::sim::{CrashModel, SimFs};
use engines::lsm::{Lsm, Options, repair};
use engines::{Batch, Compression, Direction, Durability, Engine, KeyRange, OpenOptions, registry};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::golden::copied;
use crate::records::{self, Records, seeded};

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
    records::scanned(engine, KeyRange::all(), direction, usize::MAX)
}

/// Ranges between random keys, in both directions.
fn check_ranges(engine: &dyn Engine, model: &Records, random: &mut ChaCha8Rng, at: &str) {
    for _ in 0..12 {
        let mut key = || format!("{:04}", random.random_range(0..1500)).into_bytes();
        let (low, high) = (key(), key());
        let range = match random.random_range(0..3) {
            0 => KeyRange::between(&low, &high),
            1 => KeyRange::from(&low),
            _ => KeyRange { start: Bound::Excluded(&low), end: Bound::Included(&high) },
        };
        let inside = model.iter().filter(|(key, _)| range.contains(key));
        let mut expected: Vec<_> = inside.map(|(k, v)| (k.clone(), v.clone())).collect();
        for direction in [Direction::Forward, Direction::Backward] {
            let found = records::scanned(engine, range, direction, usize::MAX);
            assert!(found == expected, "{at}: {range:?} {direction:?}");
            expected.reverse();
        }
        let mut missing = low.clone();
        missing.push(b'?');
        assert_eq!(engine.get_vec(&missing).unwrap(), None, "{at}");
    }
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

/// Any settings that LevelDB can read.
fn random_options(random: &mut ChaCha8Rng) -> Options {
    let level0_tables = random.random_range(1..8);
    Options {
        compression: match random.random_range(0..2) {
            0 => Compression::None,
            _ => Compression::Snappy,
        },
        durability: [Durability::Buffered, Durability::Process][random.random_range(0..2)],
        memtable_bytes: random.random_range(4..128) << 10,
        memtable_count: random.random_range(2..5),
        block_bytes: 1 << random.random_range(6..15),
        restart_interval: random.random_range(1..40),
        filter_bits: [0, 1, 10, 40][random.random_range(0..4)],
        table_bytes: random.random_range(2..256) << 10,
        level0_tables,
        level0_slowdown_tables: level0_tables + 4,
        level0_stop_tables: level0_tables + 8,
        level1_bytes: random.random_range(8..512) << 10,
        level_ratio: random.random_range(2..11),
        background_threads: random.random_range(1..4),
        manifest_bytes: 1 << random.random_range(6..16),
        block_cache_bytes: 1 << random.random_range(10..20),
        ..Options::default()
    }
}

#[test]
fn leveldb_opens_what_we_wrote_and_we_what_it_made_of_it() {
    let Some(leveldb) = leveldb() else { return };
    let mut random = seeded();
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
            let running = copied(directory.path());
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

/// A database that goes from hand to hand.
struct Relay {
    leveldb: &'static registry::Registration,
    random: ChaCha8Rng,
    directory: tempfile::TempDir,
    model: Records,
    options: Options,
}

impl Relay {
    fn leveldb(&self, directory: &Path) -> Box<dyn Engine> {
        // Small write buffers, so that LevelDB flushes and compacts too.
        self.leveldb.open(directory, &OpenOptions::default().memory_bytes(256 << 10)).unwrap()
    }

    /// Writes with our engine, and has LevelDB read what is there at random moments.
    fn our_turn(&mut self, at: &str) {
        self.options = random_options(&mut self.random);
        let at = format!("{at}, {:?}", self.options);
        let engine = Lsm::open(self.directory.path(), self.options.clone()).unwrap();
        check(&engine, &self.model, &at);
        check_ranges(&engine, &self.model, &mut self.random, &at);
        for _ in 0..self.random.random_range(1..5) {
            let count = self.random.random_range(0..500);
            write(&engine, &mut self.model, &mut self.random, count);
            match self.random.random_range(0..7) {
                0 => engine.compact().unwrap(),
                1 | 2 => engine.compact_range(KeyRange::between(b"03", b"08")).unwrap(),
                3 => engine.flush().unwrap(),
                4 => engine.quiesce().unwrap(),
                _ => {}
            }
        }
        match self.random.random_range(0..4) {
            // The process dies: what is there is what it had handed to the system.
            0 => {
                engine.quiesce().unwrap();
                engine.sync().unwrap();
                let left = copied(self.directory.path());
                drop(engine);
                self.directory = left;
            }
            1 => {
                let target = tempfile::tempdir().unwrap();
                engine.checkpoint(target.path()).unwrap();
                check(&*self.leveldb(target.path()), &self.model, &format!("{at}, checkpoint"));
                Box::new(engine).close().unwrap();
            }
            2 => {
                Box::new(engine).close().unwrap();
                let copy = copied(self.directory.path());
                if self.random.random_bool(0.5) {
                    std::fs::remove_file(copy.path().join("CURRENT")).unwrap();
                }
                repair(copy.path()).unwrap();
                check(&*self.leveldb(copy.path()), &self.model, &format!("{at}, repaired"));
            }
            _ => Box::new(engine).close().unwrap(),
        }
    }

    fn their_turn(&mut self, at: &str) {
        let engine = self.leveldb(self.directory.path());
        check(&*engine, &self.model, at);
        let mut random = self.random.clone();
        check_ranges(&*engine, &self.model, &mut random, at);
        let count = random.random_range(0..1500);
        write(&*engine, &mut self.model, &mut random, count);
        if random.random_range(0..3) == 0 {
            engine.compact().unwrap();
            write(&*engine, &mut self.model, &mut random, count / 5);
        }
        check(&*engine, &self.model, &format!("{at}, written"));
        self.random = random;
        if self.random.random_bool(0.5) {
            // Beside a LevelDB that is at rest, but open.
            engine.quiesce().unwrap();
            let reader = Lsm::open_read_only(self.directory.path(), self.options.clone()).unwrap();
            check(&reader, &self.model, &format!("{at}, read only"));
        }
        engine.close().unwrap();
    }
}

#[test]
fn a_database_goes_from_hand_to_hand_with_any_settings() {
    let Some(leveldb) = leveldb() else { return };
    let mut random = seeded();
    let rounds = std::env::var("ENGINELAB_RELAYS").map_or(10, |count| count.parse().unwrap());
    for round in 0..rounds {
        let seed = random.next_u64();
        let mut relay = Relay {
            leveldb,
            random: ChaCha8Rng::seed_from_u64(seed),
            directory: tempfile::tempdir().unwrap(),
            model: Records::new(),
            options: Options::default(),
        };
        for turn in 0..4 {
            let at = format!("round {round}, turn {turn}");
            relay.our_turn(&at);
            relay.their_turn(&at);
        }
        let engine = Lsm::open(relay.directory.path(), relay.options.clone()).unwrap();
        check(&engine, &relay.model, &format!("round {round}, at the end"));
    }
}

#[test]
fn after_power_loss_leveldb_finds_what_our_recovery_finds() {
    let Some(leveldb) = leveldb() else { return };
    let mut random = seeded();
    for round in 0..4 {
        let options = Options {
            durability: [Durability::Process, Durability::Power][round % 2],
            memtable_bytes: 8 << 10,
            ..random_options(&mut random)
        };
        let disk = SimFs::new();
        let engine = Lsm::open_in(Arc::new(disk.clone()), "/db", options.clone()).unwrap();
        for number in 0..400u32 {
            let key = format!("{:03}", random.random_range(0..200));
            if random.random_range(0..5) == 0 {
                engine.delete(key.as_bytes()).unwrap();
            } else {
                let value = format!("{number}").repeat(random.random_range(1..60));
                engine.put(key.as_bytes(), value.as_bytes()).unwrap();
            }
        }
        let trace = disk.trace();
        drop(engine);
        for _ in 0..25 {
            let cut = random.random_range(0..=trace.len());
            let seed = random.next_u64();
            for model in
                [CrashModel::KeepAll, CrashModel::DropUnsynced, CrashModel::TornWrite { seed }]
            {
                let place = format!("{model:?}, cut {cut} of {}, {options:?}", trace.len());
                let image = trace.crash_at(cut, model);
                let directory = tempfile::tempdir().unwrap();
                if image.entry(Path::new("/db/CURRENT")).unwrap().is_none() {
                    continue;
                }
                for entry in image.list(Path::new("/db")).unwrap() {
                    let bytes = image.read(&entry.path).unwrap();
                    std::fs::write(directory.path().join(entry.name().unwrap()), bytes).unwrap();
                }
                let ours = Lsm::open_in(Arc::new(image), "/db", options.clone()).unwrap();
                let theirs = leveldb.open(directory.path(), &OpenOptions::default()).unwrap();
                for direction in [Direction::Forward, Direction::Backward] {
                    assert!(scanned(&ours, direction) == scanned(&*theirs, direction), "{place}");
                }
            }
        }
    }
}
