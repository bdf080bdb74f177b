//! What the format cannot hold is refused with a typed error before anything is written, alone and
//! in every position of a batch, and the engine goes on.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engines::bitcask::{Bitcask, Options};
use engines::fs::sim::SimFs;
use engines::{Batch, Durability, Engine, Error};

const LONGEST_KEY: usize = 65_535;

/// One operation that is refused.
enum Bad {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
}

impl Bad {
    fn all() -> Vec<Self> {
        let mut all = vec![
            Self::Put(vec![b'k'; LONGEST_KEY + 1], b"value".to_vec()),
            Self::Put(vec![0; 1 << 20], Vec::new()),
            Self::Delete(vec![b'k'; LONGEST_KEY + 1]),
        ];
        for value in [
            &b"bitcask_tombstone"[..],
            b"bitcask_tombstone1\0\0\0\x01",
            b"bitcask_tombstone2\0\0\0\x01",
            b"bitcask_tombstone, or so it seems",
        ] {
            all.push(Self::Put(b"good key".to_vec(), value.to_vec()));
        }
        all
    }

    fn add_to(&self, batch: &mut Batch) {
        match self {
            Self::Put(key, value) => batch.put(key, value).unwrap(),
            Self::Delete(key) => batch.delete(key).unwrap(),
        }
    }

    fn is_answer(&self, result: &engines::Result<()>) -> bool {
        let (Self::Put(key, _) | Self::Delete(key)) = self;
        match result {
            Err(Error::TooLarge { what: "key", size, limit: 65_535 }) => *size == key.len() as u64,
            Err(Error::InvalidArgument(problem)) => {
                key == b"good key" && problem.contains("bitcask_tombstone")
            }
            _ => false,
        }
    }
}

fn directory_bytes(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn nothing_of_a_refused_put_or_batch_is_written_and_later_writes_work() {
    for durability in Durability::ALL {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { durability, ..Options::default() };
        let store = Bitcask::open(directory.path(), options.clone()).unwrap();
        store.put(b"good key", b"before").unwrap();
        store.sync().unwrap();
        let before = directory_bytes(directory.path());
        let figures = store.stats().unwrap();
        for bad in Bad::all() {
            if let Bad::Put(key, value) = &bad {
                let answer = store.put(key, value);
                assert!(bad.is_answer(&answer), "{answer:?}");
            }
            for position in 0..4 {
                let mut batch = Batch::new();
                for at in 0..4u8 {
                    match at {
                        _ if at == position => bad.add_to(&mut batch),
                        2 => batch.delete(b"good key").unwrap(),
                        _ => batch.put(&[at], b"another").unwrap(),
                    }
                }
                let answer = store.write(&batch);
                assert!(bad.is_answer(&answer), "position {position}: {answer:?}");
            }
            assert!(directory_bytes(directory.path()) == before, "{durability}");
            assert_eq!(store.stats().unwrap(), figures);
        }
        // No key that long can be there.
        store.delete(&vec![0; LONGEST_KEY + 1]).unwrap();
        assert!(directory_bytes(directory.path()) == before);

        store.put(&vec![b'k'; LONGEST_KEY], b"the longest").unwrap();
        store.put(b"good key", b"bitcask_tombston").unwrap();
        Box::new(store).close().unwrap();
        let store = Bitcask::open(directory.path(), options).unwrap();
        assert_eq!(store.get_vec(&vec![b'k'; LONGEST_KEY]).unwrap().unwrap(), b"the longest");
        assert_eq!(store.get_vec(b"good key").unwrap().unwrap(), b"bitcask_tombston");
        assert_eq!(store.stats().unwrap().live_records, Some(2));
    }
}

/// The size is looked at before the value: the pages of these four gigabytes are never touched, so
/// the system never provides them.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn a_record_of_4_gib_is_refused_before_a_byte_of_the_value_is_copied() {
    let disk = SimFs::new();
    let open = || {
        let disk = Arc::new(disk.clone());
        Bitcask::open_in(disk, Path::new("/data"), Options::default()).unwrap()
    };
    let store = open();
    let before = disk.mark();
    let huge = vec![0; 1 << 32];
    let resident_kib = || {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let resident_before = resident_kib();
    for key_length in [0, 1, LONGEST_KEY] {
        let key = vec![b'k'; key_length];
        // Key, value and the 14 bytes before them must stay below 2^32.
        let limit = u64::from(u32::MAX) - 14 - key_length as u64;
        for size in [limit + 1, limit + 2, 1 << 32] {
            let value = &huge[..usize::try_from(size).unwrap()];
            let answer = store.put(&key, value);
            match answer {
                Err(Error::TooLarge { what: "value", size: told, limit: told_limit }) => {
                    assert_eq!((told, told_limit), (size, limit));
                }
                other => panic!("{other:?}"),
            }
        }
    }
    let mut batch = Batch::new();
    batch.put(b"key", b"value").unwrap();
    assert!(matches!(batch.put(b"key", &huge), Err(Error::TooLarge { what: "value", .. })));
    assert_eq!(batch.count(), 1);
    assert_eq!(disk.mark(), before);
    assert!(resident_kib() - resident_before < 1 << 20, "a gigabyte of it was touched");
    store.write(&batch).unwrap();
    drop(store);
    assert_eq!(open().get_vec(b"key").unwrap().unwrap(), b"value");
}
