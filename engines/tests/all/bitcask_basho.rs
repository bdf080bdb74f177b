//! What Basho's Bitcask would make of our files: a model of how it loads and merges, written from
//! the behaviour of its release 2 (`merge_single_entry` in `bitcask.erl`).
//!
//! Our overwrites write no tombstone first, as Basho's do, so its merge may leave older copies of a
//! key behind. The tombstones that we write must outlive them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use engines::bitcask::{Bitcask, Options};
use engines::fs::FileSystem;
use engines::fs::sim::SimFs;
use engines::{Batch, Engine};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::records::{Records, folded};

const PREFIX: &[u8] = b"bitcask_tombstone";

#[derive(Debug, Clone, PartialEq, Eq)]
struct Record {
    timestamp: u32,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Record {
    fn is_tombstone(&self) -> bool {
        self.value.starts_with(PREFIX)
    }
}

/// What a tombstone says.
#[derive(Debug, PartialEq, Eq)]
enum Context {
    None,
    Nothing,
    Before(u32),
    At(u32),
}

fn context(value: &[u8]) -> Context {
    let Some(rest) = value.strip_prefix(PREFIX) else { return Context::None };
    match rest {
        [] => Context::Nothing,
        [b'1', id @ ..] => Context::Before(u32::from_be_bytes(id.try_into().unwrap())),
        [b'2', id @ ..] => Context::At(u32::from_be_bytes(id.try_into().unwrap())),
        _ => Context::None,
    }
}

fn tombstone(version: &str, id: u32) -> Vec<u8> {
    [PREFIX, version.as_bytes(), &id.to_be_bytes()].concat()
}

/// A directory: the records of each file. A record's place in its file stands for its offset.
#[derive(Debug, Clone, Default)]
struct Directory(BTreeMap<u32, Vec<Record>>);

/// Where a key lies: timestamp, file, offset.
type Entry = (u32, u32, usize);

impl Directory {
    fn read(disk: &SimFs) -> Self {
        let mut files = BTreeMap::new();
        for entry in disk.list(Path::new("/data")).unwrap() {
            let name = entry.name().unwrap();
            if let Some(id) = name.strip_suffix(".bitcask.data") {
                files.insert(id.parse().unwrap(), parse(&disk.read(&entry.path).unwrap()));
            }
        }
        Self(files)
    }

    /// Files ascending, the later record wins, a tombstone removes the key.
    fn load(&self) -> BTreeMap<Vec<u8>, Entry> {
        let mut keydir = BTreeMap::new();
        for (id, records) in &self.0 {
            for (at, record) in records.iter().enumerate() {
                if record.is_tombstone() {
                    keydir.remove(&record.key);
                } else {
                    keydir.insert(record.key.clone(), (record.timestamp, *id, at));
                }
            }
        }
        keydir
    }

    fn state(&self) -> Records {
        let value = |(_, file, at): Entry| self.0[&file][at].value.clone();
        self.load().into_iter().map(|(key, entry)| (key, value(entry))).collect()
    }

    fn merge(&mut self, inputs: &BTreeSet<u32>) {
        let output = self.0.keys().max().unwrap() + 1;
        let merge = Merge {
            inputs: inputs.clone(),
            smallest: *self.0.keys().min().unwrap(),
            drops_by_coverage: self.is_covered(inputs),
            live: self.load(),
            deleted: BTreeMap::new(),
            output,
        };
        merge.run(self);
        self.0.retain(|id, records| !inputs.contains(id) && !records.is_empty());
    }

    /// Whether the merge takes all files, or all up to some one, as Basho's Bitcask sees it: it
    /// compares the lists of names, and `10` comes before `9` there.
    fn is_covered(&self, inputs: &BTreeSet<u32>) -> bool {
        let names = |ids: &mut dyn Iterator<Item = &u32>| {
            let mut names: Vec<_> = ids.map(u32::to_string).collect();
            names.sort();
            names
        };
        names(&mut self.0.keys()).starts_with(&names(&mut inputs.iter()))
    }
}

struct Merge {
    inputs: BTreeSet<u32>,
    smallest: u32,
    drops_by_coverage: bool,
    live: BTreeMap<Vec<u8>, Entry>,
    deleted: BTreeMap<Vec<u8>, Entry>,
    output: u32,
}

enum Age {
    OutOfDate,
    Current,
    NotFound,
}

impl Merge {
    fn run(mut self, directory: &mut Directory) {
        for file in self.inputs.clone() {
            for (at, record) in directory.0[&file].clone().into_iter().enumerate() {
                self.one(directory, file, at, record);
            }
        }
    }

    fn one(&mut self, directory: &mut Directory, file: u32, at: usize, record: Record) {
        match self.age(&record, file, at) {
            Age::OutOfDate | Age::NotFound => self.one_tombstone(directory, file, at, record),
            Age::Current if record.is_tombstone() => {
                self.deleted.insert(record.key.clone(), (record.timestamp, file, at));
                if !self.drops_by_coverage {
                    self.write(directory, record);
                }
            }
            Age::Current => {
                self.deleted.remove(&record.key);
                self.write(directory, record);
            }
        }
    }

    fn age(&self, record: &Record, file: u32, at: usize) -> Age {
        let mut found = false;
        for keydir in [&self.live, &self.deleted] {
            if let Some(&entry) = keydir.get(&record.key) {
                if entry > (record.timestamp, file, at) {
                    return Age::OutOfDate;
                }
                found = true;
            }
        }
        if found { Age::Current } else { Age::NotFound }
    }

    fn one_tombstone(&mut self, directory: &mut Directory, file: u32, at: usize, record: Record) {
        match context(&record.value) {
            Context::None => {}
            Context::Nothing => {
                self.deleted.insert(record.key.clone(), (record.timestamp, file, at));
                if !self.drops_by_coverage {
                    self.write(directory, Record { value: tombstone("1", file), ..record });
                }
            }
            Context::Before(id) if self.smallest > id => {}
            Context::Before(_) => self.write(directory, record),
            Context::At(id) if self.inputs.contains(&id) => {}
            Context::At(id) => {
                if let Some(records) = directory.0.get_mut(&id) {
                    records.push(record);
                }
            }
        }
    }

    /// A tombstone is taken back if the key lives.
    fn write(&mut self, directory: &mut Directory, record: Record) {
        if record.is_tombstone() && self.live.contains_key(&record.key) {
            return;
        }
        let records = directory.0.entry(self.output).or_default();
        if !record.is_tombstone() {
            let entry = (record.timestamp, self.output, records.len());
            self.live.insert(record.key.clone(), entry);
        }
        records.push(record);
    }
}

fn parse(mut data: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    while !data.is_empty() {
        let timestamp = u32::from_be_bytes(data[4..8].try_into().unwrap());
        let key_end = 14 + usize::from(u16::from_be_bytes([data[8], data[9]]));
        let value_size = u32::from_be_bytes(data[10..14].try_into().unwrap());
        let end = key_end + usize::try_from(value_size).unwrap();
        let (key, value) = (data[14..key_end].to_vec(), data[key_end..end].to_vec());
        records.push(Record { timestamp, key, value });
        data = &data[end..];
    }
    records
}

/// Writes at random into small files; merges of our own in between, if so.
fn write(seed: u64, merges: bool) -> SimFs {
    let disk = SimFs::new();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut options = Options { max_file_bytes: 700, ..Options::default() };
    options.merge.enabled = merges;
    options.merge.small_file_bytes = 200;
    options.merge.trigger_small_files = 2;
    for _ in 0..random.random_range(1..4) {
        let store = Bitcask::open_in(Arc::new(disk.clone()), Path::new("/data"), options.clone());
        let store = store.unwrap();
        for step in 0..random.random_range(10..60u32) {
            let key = [random.random_range(b'a'..=b'h')];
            let value =
                [&step.to_be_bytes()[..], &[b'v'; 60][..random.random_range(0..60)]].concat();
            match random.random_range(0..10) {
                0..5 => store.put(&key, &value).unwrap(),
                5..8 => store.delete(&key).unwrap(),
                8 if merges => store.quiesce().unwrap(),
                _ => store.write(&batch(&mut random, &value)).unwrap(),
            }
        }
        Box::new(store).close().unwrap();
    }
    disk
}

fn batch(random: &mut ChaCha8Rng, value: &[u8]) -> Batch {
    let mut batch = Batch::new();
    for _ in 0..random.random_range(1..12) {
        let key = [random.random_range(b'a'..=b'p')];
        if random.random_bool(0.3) {
            batch.put(&key, value).unwrap();
        } else {
            batch.delete(&key).unwrap();
        }
    }
    batch
}

fn contents(disk: &SimFs) -> Records {
    let options = Options { create: false, ..Options::default() };
    let store = Bitcask::open_in(Arc::new(disk.clone()), Path::new("/data"), options).unwrap();
    folded(&store)
}

#[test]
fn no_merge_of_bashos_brings_back_what_we_deleted() {
    let mut merges = 0;
    for seed in 0..150 {
        let disk = write(seed, seed % 2 == 1);
        let mut directory = Directory::read(&disk);
        if directory.0.is_empty() {
            continue;
        }
        let expected = directory.state();
        assert_eq!(contents(&disk), expected, "seed {seed}");
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        for round in 0..12 {
            let ids = directory.0.keys().copied();
            let inputs: BTreeSet<_> = ids.filter(|_| random.random_bool(0.4)).collect();
            if inputs.is_empty() {
                continue;
            }
            directory.merge(&inputs);
            merges += 1;
            assert_eq!(directory.state(), expected, "seed {seed}, merge {round} of {inputs:?}");
            if directory.0.is_empty() {
                break;
            }
        }
    }
    assert!(merges > 500, "{merges}");
}

/// What the test above would not show if the model dropped no tombstone: one that names the file
/// of the newest copy is dropped with that copy, and the oldest comes back.
#[test]
fn the_model_drops_tombstones_as_bashos_merge_does() {
    let record =
        |value: &[u8]| vec![Record { timestamp: 7, key: b"k".into(), value: value.into() }];
    for (value, comes_back) in [
        (tombstone("2", 2), true),
        (tombstone("1", 3), false),
        (tombstone("1", 0), true),
        (PREFIX.to_vec(), false),
    ] {
        let files = [(1, record(b"old")), (2, record(b"new")), (3, record(&value))];
        let mut directory = Directory(BTreeMap::from(files));
        assert!(directory.state().is_empty());
        directory.merge(&BTreeSet::from([2, 3]));
        assert_eq!(!directory.state().is_empty(), comes_back, "{value:?}");
    }
    // Once the oldest copy is gone, the tombstone goes too.
    let files = [(1, record(b"old")), (2, record(b"new")), (3, record(&tombstone("1", 3)))];
    let mut directory = Directory(BTreeMap::from(files));
    for inputs in [&[2, 3][..], &[1, 4], &[5]] {
        directory.merge(&inputs.iter().copied().collect());
    }
    assert!(directory.0.is_empty());
}

/// Near a rotation too, and in batches that delete what is not there.
#[test]
fn a_tombstone_names_the_file_that_it_lies_in() {
    let mut tombstones = 0;
    for seed in 0..60 {
        for (id, records) in Directory::read(&write(seed, false)).0 {
            for record in records.iter().filter(|record| record.is_tombstone()) {
                assert_eq!(context(&record.value), Context::Before(id), "seed {seed}");
                tombstones += 1;
            }
        }
    }
    assert!(tombstones > 500, "{tombstones}");
}
