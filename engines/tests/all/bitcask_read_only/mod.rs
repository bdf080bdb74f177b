//! A reader beside a writer: it sees what the writer wrote, and touches nothing.

mod live;
mod process;
mod quiet;

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use engines::bitcask::{Bitcask, Options, ReadOnlyBitcask};
use engines::{Batch, Direction, Engine, KeyRange};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};

use crate::records::Records as Model;

/// Options under which files are begun and merged all the time.
fn restless() -> Options {
    let mut options = Options { max_file_bytes: 3_000, ..Options::default() };
    options.merge.small_file_bytes = 1_000;
    options.merge.trigger_small_files = 4;
    options
}

/// Does one random thing to the writer and the same to the model.
fn random_step(store: &Bitcask, model: &mut Model, random: &mut ChaCha8Rng, number: u32) {
    let key = |random: &mut ChaCha8Rng| {
        let number = random.random_range(0..80u8);
        vec![number; usize::from(number) % 20]
    };
    let value = |random: &mut ChaCha8Rng| {
        let large = random.random_bool(0.02);
        let mut value = vec![7; random.random_range(0..if large { 70_000 } else { 200 })];
        value.extend(number.to_be_bytes());
        value
    };
    match random.random_range(0..100) {
        0..60 => {
            let (key, value) = (key(random), value(random));
            store.put(&key, &value).unwrap();
            model.insert(key, value);
        }
        60..80 => {
            let key = key(random);
            store.delete(&key).unwrap();
            model.remove(&key);
        }
        80..97 => {
            let mut batch = Batch::new();
            for _ in 0..random.random_range(0..10) {
                let (key, value) = (key(random), value(random));
                if random.random_bool(0.7) {
                    batch.put(&key, &value).unwrap();
                    model.insert(key, value);
                } else {
                    batch.delete(&key).unwrap();
                    model.remove(&key);
                }
            }
            store.write(&batch).unwrap();
        }
        97 => store.sync().unwrap(),
        98 => store.quiesce().unwrap(),
        _ => store.compact().unwrap(),
    }
}

/// Checks everything that a reader tells against the model.
fn check(reader: &ReadOnlyBitcask, model: &Model) {
    let mut found = Vec::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        found.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    };
    reader.scan(KeyRange::all(), Direction::Forward, &mut visit).unwrap();
    assert!(found.iter().map(|(key, value)| (key, value)).eq(model.iter()), "scan");
    assert!(reader.keys(KeyRange::all()).iter().eq(model.keys()), "keys");
    let mut folded = Model::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        assert!(folded.insert(key.to_vec(), value.to_vec()).is_none());
        ControlFlow::Continue(())
    };
    reader.fold(&mut visit).unwrap();
    assert!(folded == *model, "fold");
    for (key, value) in model {
        assert_eq!(reader.get_vec(key).unwrap().as_ref(), Some(value), "get");
    }
    assert_eq!(reader.get_vec(b"never written").unwrap(), None);
    assert_eq!(reader.damage(), []);
    let stats = reader.stats().unwrap();
    assert_eq!(stats.live_records, Some(model.len() as u64));
    let size = |(key, value): (&Vec<u8>, &Vec<u8>)| 14 + key.len() as u64 + value.len() as u64;
    let live_bytes: u64 = model.iter().map(size).sum();
    assert_eq!(stats.disk_bytes.unwrap() - stats.dead_bytes.unwrap(), live_bytes);
    for file in reader.files().unwrap() {
        let parts = file.live_bytes + file.dead_bytes + file.tombstone_bytes;
        assert_eq!((parts, file.damaged_bytes), (file.length_bytes, 0), "{file:?}");
    }
}

/// Everything that can be told of a directory from outside: content, time and mode of each file,
/// and of the directory itself.
fn fingerprint(directory: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime, u32)> {
    let mut paths = vec![directory.to_path_buf()];
    paths.extend(fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()));
    let look = |path: PathBuf| {
        let metadata = fs::metadata(&path).unwrap();
        let content = if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        let hash = Sha256::digest(&content).to_vec();
        (path, (hash, metadata.modified().unwrap(), metadata.permissions().mode()))
    };
    paths.into_iter().map(look).collect()
}
