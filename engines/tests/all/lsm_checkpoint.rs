//! Checkpoints: a second database with what the first one held at one moment.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use engines::fs::sim::{CrashModel, FaultKind, FaultPoint, FaultScope, SimFs};
use engines::fs::{Access, Create, Entry, FileSystem, LockGuard, ReadFile, WriteFile};
use engines::lsm::{Lsm, Options};
use engines::{Durability, Engine, Error, Result};

use crate::records::{Records, folded};

fn tiny() -> Options {
    Options {
        memtable_bytes: 4 << 10,
        block_bytes: 512,
        table_bytes: 4 << 10,
        level0_tables: 3,
        level1_bytes: 16 << 10,
        level_ratio: 2,
        manifest_bytes: 1 << 10,
        ..Options::default()
    }
}

fn open(disk: &SimFs, directory: &str, options: Options) -> Result<Lsm> {
    Lsm::open_in(Arc::new(disk.clone()), directory, options)
}

/// Overwrites and deletions, from number `from` on.
fn write(engine: &Lsm, model: &mut Records, from: u32) {
    for number in from..from + 300 {
        let key = format!("{:02}", number * 37 % 80).into_bytes();
        if number % 7 == 0 {
            engine.delete(&key).unwrap();
            model.remove(&key);
        } else {
            let value = format!("{number}|{}", "x".repeat((number % 150) as usize)).into_bytes();
            engine.put(&key, &value).unwrap();
            model.insert(key, value);
        }
    }
}

#[test]
fn a_checkpoint_holds_the_moment_and_lives_on_its_own() {
    for durability in Durability::ALL {
        let disk = SimFs::new();
        let options = Options { durability, ..tiny() };
        let engine = open(&disk, "/db", options.clone()).unwrap();
        let mut model = Records::new();
        let mut moments = Vec::new();
        for round in 0..4 {
            engine.checkpoint(format!("/backups/{round}")).unwrap();
            moments.push(model.clone());
            write(&engine, &mut model, round * 300);
        }
        engine.compact().unwrap();
        Box::new(engine).close().unwrap();
        for (round, moment) in moments.into_iter().enumerate() {
            let copy = open(&disk, &format!("/backups/{round}"), options.clone()).unwrap();
            assert!(folded(&copy) == moment, "{durability}, round {round}");
            let mut moment = moment;
            write(&copy, &mut moment, 5000);
            copy.compact().unwrap();
            assert!(folded(&copy) == moment, "{durability}, round {round}, written");
        }
        assert!(folded(&open(&disk, "/db", options).unwrap()) == model);
    }
}

#[test]
fn a_checkpoint_is_of_one_moment_while_writes_run() {
    let disk = SimFs::new();
    let engine = open(&disk, "/db", tiny()).unwrap();
    let (started, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1u64.. {
                started.store(number, Ordering::SeqCst);
                let mut value = number.to_be_bytes().to_vec();
                value.resize(200, 9);
                engine.put(format!("{:02}", number % 50).as_bytes(), &value).unwrap();
                done.store(number, Ordering::SeqCst);
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
            }
        });
        for round in 0..25 {
            let before = done.load(Ordering::SeqCst);
            let target = format!("/checkpoint {round}");
            engine.checkpoint(&target).unwrap();
            let after = started.load(Ordering::SeqCst);
            let copy = open(&disk, &target, tiny()).unwrap();
            let found = folded(&copy);
            let mut numbers: Vec<_> = found
                .values()
                .map(|value| u64::from_be_bytes(value[..8].try_into().unwrap()))
                .collect();
            numbers.sort_unstable();
            let last = numbers.last().copied().unwrap_or(0);
            assert!((before..=after).contains(&last), "{before} <= {last} <= {after}");
            let first = last.saturating_sub(49).max(1);
            assert_eq!(numbers, (first..=last).collect::<Vec<_>>(), "round {round}");
        }
        is_over.store(true, Ordering::SeqCst);
    });
}

#[test]
fn a_crash_anywhere_leaves_the_database_whole_and_the_target_whole_or_no_database() {
    let disk = SimFs::new();
    let options = Options { durability: Durability::Power, ..tiny() };
    let engine = open(&disk, "/db", options.clone()).unwrap();
    let mut model = Records::new();
    write(&engine, &mut model, 0);
    engine.quiesce().unwrap();
    let before = disk.mark();
    engine.checkpoint("/backups/of today").unwrap();
    let after = disk.mark();
    drop(engine);
    let trace = disk.trace();
    assert!(after - before > 10);
    let options = Options { create: false, ..options };
    for cut in before..=after {
        for model_of_crash in [
            CrashModel::KeepAll,
            CrashModel::DropUnsynced,
            CrashModel::TornWrite { seed: 3 },
            CrashModel::RandomSubset { seed: 4 },
            CrashModel::RandomSubset { seed: 5 },
        ] {
            let image = trace.crash_at(cut, model_of_crash);
            let place = format!("{model_of_crash:?}, cut {cut} of {before}..{after}");
            let engine = open(&image, "/db", options.clone()).unwrap();
            assert!(folded(&engine) == model, "{place}");
            match open(&image, "/backups/of today", options.clone()) {
                Ok(copy) => assert!(folded(&copy) == model, "{place}"),
                Err(error) => {
                    assert!(matches!(error, Error::NotADatabase { .. }), "{place}: {error}");
                    assert!(cut < after, "{place}: {error}");
                }
            }
        }
    }
}

#[test]
fn what_is_there_already_is_refused_and_a_failure_leaves_nothing_behind() {
    let disk = SimFs::new();
    let engine = open(&disk, "/db", tiny()).unwrap();
    let mut model = Records::new();
    write(&engine, &mut model, 0);
    engine.quiesce().unwrap();
    disk.create_directory(Path::new("/taken")).unwrap();
    disk.create(Path::new("/taken/file"), Create::New).unwrap().write_at(0, b"mine").unwrap();
    for target in ["/taken", "/taken/file", "/db"] {
        let error = engine.checkpoint(target).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
    }
    assert_eq!(disk.read(Path::new("/taken/file")).as_deref(), Some(&b"mine"[..]));
    let mut after = 0;
    loop {
        disk.fail_at(FaultPoint {
            after,
            scope: FaultScope::TakesSpace,
            kind: FaultKind::NoSpace,
            sticky: true,
            short_write: true,
        });
        let outcome = engine.checkpoint("/target");
        disk.clear_faults();
        if outcome.is_ok() {
            break;
        }
        let is_there = disk.entry(Path::new("/target")).unwrap().is_some();
        assert!(!is_there || disk.list(Path::new("/target")).unwrap().is_empty());
        after += 1;
    }
    assert!(after > 5, "{after}");
    assert!(folded(&open(&disk, "/target", tiny()).unwrap()) == model);
    assert!(folded(&engine) == model);
}

/// As on a file system that has no links.
#[derive(Debug)]
struct NoLinks(SimFs);

impl FileSystem for NoLinks {
    fn create_directory(&self, directory: &Path) -> Result<()> {
        self.0.create_directory(directory)
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
    fn create(&self, path: &Path, create: Create) -> Result<Arc<dyn WriteFile>> {
        self.0.create(path, create)
    }
    fn open_for_write(&self, path: &Path) -> Result<Arc<dyn WriteFile>> {
        self.0.open_for_write(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.0.rename(from, to)
    }
    fn hard_link(&self, _from: &Path, to: &Path) -> Result<()> {
        Err(Error::io("link", to)(std::io::ErrorKind::CrossesDevices.into()))
    }
    fn remove(&self, path: &Path) -> Result<()> {
        self.0.remove(path)
    }
    fn set_mode(&self, path: &Path, mode: u32) -> Result<()> {
        self.0.set_mode(path, mode)
    }
    fn sync_directory(&self, directory: &Path) -> Result<()> {
        self.0.sync_directory(directory)
    }
    fn lock(&self, path: &Path) -> Result<Option<Box<dyn LockGuard>>> {
        self.0.lock(path)
    }
}

#[test]
fn where_there_are_no_links_tables_are_copied() {
    let disk = SimFs::new();
    let fs: Arc<dyn FileSystem> = Arc::new(NoLinks(disk.clone()));
    let engine = Lsm::open_in(Arc::clone(&fs), "/db", tiny()).unwrap();
    let mut model = Records::new();
    write(&engine, &mut model, 0);
    engine.checkpoint("/copy").unwrap();
    let trace = disk.trace();
    let image = trace.crash_at(trace.len(), CrashModel::DropUnsynced);
    assert!(folded(&open(&image, "/copy", tiny()).unwrap()) == model);
}
