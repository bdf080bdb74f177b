//! Opening for reading only: nothing is written, whatever is there, and a writer may be at work.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

use engines::fs::sim::SimFs;
use engines::fs::{Access, Create, Entry, FileSystem, LockGuard, ReadFile, WriteFile};
use engines::lsm::{Lsm, Options};
use engines::{Batch, Direction, Engine, Error, KeyRange, Result};

type Listing = BTreeMap<String, (Vec<u8>, SystemTime)>;

fn listing(directory: &Path) -> Listing {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| {
            let changed = entry.metadata().unwrap().modified().unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, (fs::read(entry.path()).unwrap(), changed))
        })
        .collect()
}

#[test]
fn the_directories_of_leveldb_are_read_and_stay_as_they_are_to_the_byte() {
    for name in ["log-only", "compacted", "bloom", "multi-level", "reopened", "large-records"] {
        let golden = crate::golden::Golden::copy("leveldb", name);
        let before = listing(golden.directory());
        // A memtable that would be flushed many times over.
        let options = Options { memtable_bytes: 1 << 10, ..Options::default() };
        let reader = Lsm::open_read_only(golden.directory(), options.clone()).unwrap();
        assert!(crate::golden::contents(&reader) == golden.expected, "{name}");
        for (key, expected) in &golden.expected {
            let value = reader.get_vec(key).unwrap().unwrap();
            assert_eq!(&crate::golden::fingerprint(&value), expected);
        }
        let mut last = None;
        reader
            .scan(KeyRange::all(), Direction::Backward, &mut |key, _| {
                assert!(last.replace(key.to_vec()).is_none_or(|last| last.as_slice() > key));
                ControlFlow::Continue(())
            })
            .unwrap();
        // Two at once, and what they are asked to write.
        let other = Lsm::open_read_only(golden.directory(), options).unwrap();
        let mut batch = Batch::new();
        batch.put(b"key", b"value").unwrap();
        for refused in [
            reader.put(b"key", b"value"),
            reader.delete(b"key"),
            reader.write(&batch),
            reader.write(&Batch::new()),
            reader.flush(),
            reader.compact(),
            reader.compact_range(KeyRange::from(b"a")),
            reader.resume(),
            reader.sync(),
        ] {
            match refused {
                Err(Error::ReadOnly { directory, .. }) => assert_eq!(directory, golden.directory()),
                other => panic!("{other:?}"),
            }
        }
        reader.quiesce().unwrap();
        reader.stats().unwrap();
        Box::new(reader).close().unwrap();
        drop(other);
        assert!(listing(golden.directory()) == before, "{name}");
    }
}

#[test]
fn what_cannot_be_opened_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    for path in [directory.path(), &missing] {
        let error = Lsm::open_read_only(path, Options::default()).err().unwrap();
        assert!(matches!(error, Error::NotADatabase { .. }), "{error}");
    }
    assert!(!missing.exists() && listing(directory.path()).is_empty());
    for (name, damage) in [("compacted", "000005.ldb"), ("multi-level", "CURRENT")] {
        let golden = crate::golden::Golden::copy("leveldb", name);
        fs::write(golden.file(damage), b"damaged").unwrap();
        let before = listing(golden.directory());
        let error = Lsm::open_read_only(golden.directory(), Options::default()).err().unwrap();
        assert!(error.is_corruption() && error.to_string().contains("repair"), "{error}");
        assert!(listing(golden.directory()) == before);
    }
}

fn tiny() -> Options {
    Options {
        memtable_bytes: 4 << 10,
        table_bytes: 4 << 10,
        level0_tables: 2,
        level1_bytes: 8 << 10,
        level_ratio: 2,
        manifest_bytes: 512,
        ..Options::default()
    }
}

#[test]
fn beside_a_writer_every_open_sees_one_moment_between_its_start_and_its_end() {
    let disk = SimFs::new();
    let writer = Lsm::open_in(Arc::new(disk.clone()), "/db", tiny()).unwrap();
    writer.put(b"a", &0u64.to_be_bytes()).unwrap();
    let (started, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Keys and values follow from the number: 60 keys in turn.
            for number in 1u64.. {
                started.store(number, Ordering::SeqCst);
                let key = format!("key {:02}", number % 60);
                let mut value = number.to_be_bytes().to_vec();
                value.resize(200, 7);
                writer.put(key.as_bytes(), &value).unwrap();
                done.store(number, Ordering::SeqCst);
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
            }
        });
        let mut rounds = 0;
        while rounds < 40 || done.load(Ordering::SeqCst) < 4000 {
            let before = done.load(Ordering::SeqCst);
            let reader = Lsm::open_read_only_in(Arc::new(disk.clone()), "/db", tiny()).unwrap();
            let after = started.load(Ordering::SeqCst);
            let mut numbers = Vec::new();
            reader
                .scan(KeyRange::from(b"key"), Direction::Forward, &mut |key, value| {
                    let number = u64::from_be_bytes(value[..8].try_into().unwrap());
                    assert_eq!(key, format!("key {:02}", number % 60).as_bytes());
                    numbers.push(number);
                    ControlFlow::Continue(())
                })
                .unwrap();
            numbers.sort_unstable();
            let Some(last) = numbers.last().copied() else { continue };
            assert!((before..=after).contains(&last), "{before} <= {last} <= {after}");
            let expected: Vec<_> = (last.saturating_sub(59).max(1)..=last).collect();
            assert_eq!(numbers, expected);
            rounds += 1;
            // What the writer removes meanwhile stays readable.
            let again = reader.get_vec(format!("key {:02}", last % 60).as_bytes()).unwrap();
            assert_eq!(again.unwrap()[..8], last.to_be_bytes());
        }
        is_over.store(true, Ordering::SeqCst);
    });
}

/// A disk on which every call that changes something is an error of the test.
#[derive(Debug)]
struct Untouchable(SimFs);

impl FileSystem for Untouchable {
    fn create_directory(&self, directory: &Path) -> Result<()> {
        panic!("create_directory {}", directory.display())
    }
    fn list(&self, directory: &Path) -> Result<Vec<Entry>> {
        self.0.list(directory)
    }
    fn entry(&self, path: &Path) -> Result<Option<Entry>> {
        self.0.entry(path)
    }
    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn ReadFile>> {
        self.0.open(path, access)
    }
    fn create(&self, path: &Path, _create: Create) -> Result<Arc<dyn WriteFile>> {
        panic!("create {}", path.display())
    }
    fn open_for_write(&self, path: &Path) -> Result<Arc<dyn WriteFile>> {
        panic!("open_for_write {}", path.display())
    }
    fn rename(&self, from: &Path, _to: &Path) -> Result<()> {
        panic!("rename {}", from.display())
    }
    fn hard_link(&self, from: &Path, _to: &Path) -> Result<()> {
        panic!("hard_link {}", from.display())
    }
    fn remove(&self, path: &Path) -> Result<()> {
        panic!("remove {}", path.display())
    }
    fn set_mode(&self, path: &Path, _mode: u32) -> Result<()> {
        panic!("set_mode {}", path.display())
    }
    fn sync_directory(&self, directory: &Path) -> Result<()> {
        panic!("sync_directory {}", directory.display())
    }
    fn lock(&self, path: &Path) -> Result<Option<Box<dyn LockGuard>>> {
        panic!("lock {}", path.display())
    }
}

#[test]
fn no_call_is_made_that_changes_anything_while_the_directory_changes() {
    let disk = SimFs::new();
    let writer = Lsm::open_in(Arc::new(disk.clone()), "/db", tiny()).unwrap();
    for number in 0..300u32 {
        writer.put(&number.to_be_bytes(), &[3; 100]).unwrap();
    }
    let fs = Arc::new(Untouchable(disk.clone()));
    let reader = Lsm::open_read_only_in(fs, "/db", tiny()).unwrap();
    // The writer replaces every table, and removes the old ones.
    for number in 0..300u32 {
        writer.delete(&number.to_be_bytes()).unwrap();
    }
    writer.compact().unwrap();
    assert_eq!(crate::golden::contents(&reader).len(), 300);
    for number in 0..300u32 {
        assert_eq!(reader.get_vec(&number.to_be_bytes()).unwrap().unwrap(), [3; 100]);
    }
    drop(writer);
    Box::new(reader).close().unwrap();
}
