//! Random operations on an LSM database whose parts are so small that everything happens: flushes,
//! compactions through several levels, moves, manifest roll-overs, and reopenings in between. The
//! oracle is a `BTreeMap`. The disk is simulated: syncs take no time there.

use std::ops::{Bound, ControlFlow};
use std::path::Path;
use std::sync::Arc;

use engines::fs::sim::SimFs;
use engines::lsm::{Lsm, Options, Snapshot};
use engines::{Batch, Compression, Direction, Durability, Engine, KeyRange};
use proptest::prelude::*;

use crate::records::{Records, scanned};

#[derive(Debug, Clone)]
enum Step {
    Put(u16, u8, u16),
    Delete(u16),
    Batch(Vec<(u16, Option<u16>)>),
    Scan(Bound<u16>, Bound<u16>, bool),
    Snapshot,
    CheckSnapshot,
    Sync,
    Flush,
    Quiesce,
    Compact,
    CompactRange(Bound<u16>, Bound<u16>),
    /// With compactions held back.
    Paused(Vec<Step>),
    Reopen(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        30 => simple_step(),
        1 => prop::collection::vec(simple_step(), 0..60).prop_map(Step::Paused),
    ]
}

fn simple_step() -> impl Strategy<Value = Step> {
    let key = 0u16..300;
    let bound = prop_oneof![
        key.clone().prop_map(Bound::Included),
        key.clone().prop_map(Bound::Excluded),
        Just(Bound::Unbounded)
    ];
    prop_oneof![
        400 => (key.clone(), any::<u8>(), 0u16..600).prop_map(|(k, v, l)| Step::Put(k, v, l)),
        150 => key.clone().prop_map(Step::Delete),
        60 => prop::collection::vec((key, prop::option::weighted(0.7, 0u16..300)), 0..20)
            .prop_map(Step::Batch),
        60 => (bound.clone(), bound.clone(), any::<bool>())
            .prop_map(|(s, e, d)| Step::Scan(s, e, d)),
        6 => (bound.clone(), bound).prop_map(|(s, e)| Step::CompactRange(s, e)),
        10 => Just(Step::Snapshot),
        10 => Just(Step::CheckSnapshot),
        5 => Just(Step::Sync),
        10 => Just(Step::Flush),
        4 => Just(Step::Quiesce),
        6 => Just(Step::Compact),
        10 => any::<bool>().prop_map(Step::Reopen),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    (
        (1usize..64, 2usize..5, 1u64..64, 1usize..4),
        (1usize..6, 4u64..200, 2u64..5, 1u64..4096),
        prop_oneof![
            Just(Compression::None),
            Just(Compression::Snappy),
            (1..4).prop_map(Compression::Zstd)
        ],
        prop_oneof![Just(Durability::Buffered), Just(Durability::Process)],
        (prop_oneof![Just(0usize), Just(10)], 64usize..4096, 1usize..20, 0usize..100_000),
    )
        .prop_map(|(sizes, levels, compression, durability, blocks)| Options {
            memtable_bytes: sizes.0 << 10,
            memtable_count: sizes.1,
            table_bytes: sizes.2 << 10,
            background_threads: sizes.3,
            level0_tables: levels.0,
            level0_slowdown_tables: levels.0 + 2,
            level0_stop_tables: levels.0 + 4,
            level1_bytes: levels.1 << 10,
            level_ratio: levels.2,
            manifest_bytes: levels.3,
            compression,
            durability,
            filter_bits: blocks.0,
            block_bytes: blocks.1,
            restart_interval: blocks.2,
            block_cache_bytes: blocks.3,
            open_tables: 8,
            ..Options::default()
        })
}

/// Keys of several lengths, the empty one among them, some with long shared prefixes.
fn key(number: u16) -> Vec<u8> {
    match number {
        0 => Vec::new(),
        n if n % 3 == 0 => n.to_be_bytes().to_vec(),
        n if n % 3 == 1 => format!("a long common prefix of many keys {n:05}").into_bytes(),
        n => format!("{n}").into_bytes(),
    }
}

fn value(seed: u8, length: u16) -> Vec<u8> {
    (0..length).map(|at| seed.wrapping_mul(31) ^ (at.to_le_bytes()[0] / 3)).collect()
}

fn open(disk: &SimFs, options: &Options) -> Lsm {
    Lsm::open_in(Arc::new(disk.clone()), Path::new("/database"), options.clone()).unwrap()
}

struct Run {
    disk: SimFs,
    options: Options,
    /// `None` only while it is opened again.
    engine: Option<Lsm>,
    model: Records,
    snapshot: Option<(Snapshot, Records)>,
}

impl Run {
    fn new(options: Options) -> Self {
        let disk = SimFs::new();
        let engine = Some(open(&disk, &options));
        Self { disk, options, engine, model: Records::new(), snapshot: None }
    }

    fn engine(&self) -> &Lsm {
        self.engine.as_ref().unwrap()
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Put(number, seed, length) => {
                let (key, value) = (key(number), value(seed, length));
                self.engine().put(&key, &value).unwrap();
                self.model.insert(key, value);
            }
            Step::Delete(number) => {
                self.engine().delete(&key(number)).unwrap();
                self.model.remove(&key(number));
            }
            Step::Batch(operations) => self.write(operations),
            Step::Scan(start, end, is_forward) => self.scan(start, end, is_forward),
            Step::Snapshot => self.snapshot = Some((self.engine().snapshot(), self.model.clone())),
            Step::CheckSnapshot => self.check_snapshot(),
            Step::Sync => self.engine().sync().unwrap(),
            Step::Flush => self.engine().flush().unwrap(),
            Step::Quiesce => self.engine().quiesce().unwrap(),
            Step::Compact => self.engine().compact().unwrap(),
            Step::CompactRange(start, end) => {
                let (low, high) = (start.map(key), end.map(key));
                let range = KeyRange {
                    start: low.as_ref().map(Vec::as_slice),
                    end: high.as_ref().map(Vec::as_slice),
                };
                self.engine().compact_range(range).unwrap();
            }
            Step::Paused(steps) => self.paused(steps),
            Step::Reopen(is_closed) => self.reopen(is_closed),
        }
    }

    fn paused(&mut self, steps: Vec<Step>) {
        let engine = self.engine.take().unwrap();
        let pause = engine.pause_compactions().unwrap();
        let compactions = engine.stats().unwrap().compaction_count;
        let mut by_hand = false;
        for step in steps {
            by_hand |= matches!(step, Step::Compact);
            if let Step::Put(number, seed, length) = step {
                let (key, value) = (key(number), value(seed, length));
                engine.put(&key, &value).unwrap();
                self.model.insert(key, value);
            } else if matches!(step, Step::Compact) {
                engine.compact().unwrap();
            } else {
                engine.flush().unwrap();
                engine.quiesce().unwrap();
            }
        }
        if !by_hand {
            assert_eq!(engine.stats().unwrap().compaction_count, compactions);
        }
        drop(pause);
        self.engine = Some(engine);
    }

    fn write(&mut self, operations: Vec<(u16, Option<u16>)>) {
        let mut batch = Batch::new();
        for (number, length) in operations {
            let key = key(number);
            match length {
                Some(length) => {
                    let value = value(7, length);
                    batch.put(&key, &value).unwrap();
                    self.model.insert(key, value);
                }
                None => {
                    batch.delete(&key).unwrap();
                    self.model.remove(&key);
                }
            }
        }
        self.engine().write(&batch).unwrap();
    }

    fn scan(&self, start: Bound<u16>, end: Bound<u16>, is_forward: bool) {
        let (start, end) = (start.map(key), end.map(key));
        let slice = |bound: &Bound<Vec<u8>>| bound.clone();
        let (low, high) = (slice(&start), slice(&end));
        let range = KeyRange {
            start: low.as_ref().map(Vec::as_slice),
            end: high.as_ref().map(Vec::as_slice),
        };
        let direction = if is_forward { Direction::Forward } else { Direction::Backward };
        let mut expected: Vec<_> = self
            .model
            .iter()
            .filter(|(key, _)| range.contains(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if !is_forward {
            expected.reverse();
        }
        let found = scanned(self.engine(), range, direction, usize::MAX);
        assert!(found == expected, "{range:?} {direction:?}");
    }

    fn check_snapshot(&self) {
        let Some((snapshot, model)) = &self.snapshot else { return };
        for direction in [Direction::Forward, Direction::Backward] {
            let mut found = Records::new();
            self.engine()
                .scan_at(snapshot, KeyRange::all(), direction, &mut |key, value| {
                    found.insert(key.to_vec(), value.to_vec());
                    ControlFlow::Continue(())
                })
                .unwrap();
            assert!(&found == model, "{direction:?}");
        }
        for number in (0..300).step_by(7) {
            let mut value = None;
            let key = key(number);
            let is_there = self
                .engine()
                .get_at(snapshot, &key, &mut |bytes| value = Some(bytes.to_vec()))
                .unwrap();
            assert_eq!(is_there, value.is_some());
            assert!(value.as_ref() == model.get(&key), "{key:?}");
        }
    }

    fn reopen(&mut self, is_closed: bool) {
        self.snapshot = None;
        let engine = self.engine.take().unwrap();
        if is_closed {
            Box::new(engine).close().unwrap();
        } else {
            drop(engine);
        }
        self.engine = Some(open(&self.disk, &self.options));
        self.check_all();
    }

    fn check_all(&self) {
        self.scan(Bound::Unbounded, Bound::Unbounded, true);
        self.scan(Bound::Unbounded, Bound::Unbounded, false);
        for number in 0..300 {
            let key = key(number);
            let found = self.engine().get_vec(&key).unwrap();
            assert!(found.as_ref() == self.model.get(&key), "{key:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn random_operations_leave_what_they_leave_in_a_map(
        options in options(),
        steps in prop::collection::vec(step(), 1..1200),
    ) {
        let mut run = Run::new(options);
        for step in steps {
            run.take(step);
        }
        run.check_all();
        run.reopen(true);
        run.engine().compact().unwrap();
        run.check_all();
        let stats = run.engine().stats().unwrap();
        let level0 = stats.details.iter().find(|(name, _)| name == "level0_tables");
        prop_assert_eq!(level0.map(|(_, value)| value.as_str()), Some("0"));
    }
}
