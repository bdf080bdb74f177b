//! Repair: directories damaged in many ways, on a simulated disk. The oracle is a map of what was
//! written; what was not damaged must be there as it was.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engines::fs::sim::{CrashModel, SimFs};
use engines::fs::{Create, FileSystem};
use engines::lsm::{Lsm, Options, RepairReport, repair_in};
use engines::{Compression, Engine, Error};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::records::{Records, folded, seeded};

/// Names and contents of the files of a directory.
type Files = BTreeMap<String, Vec<u8>>;

const HOME: &str = "/db";
/// What a log is made of.
const LOG_BLOCK_BYTES: usize = 32 << 10;

fn options() -> Options {
    Options {
        compression: Compression::None,
        memtable_bytes: 8 << 10,
        memtable_count: 3,
        block_bytes: 512,
        table_bytes: 4 << 10,
        level0_tables: 4,
        level0_slowdown_tables: 8,
        level0_stop_tables: 10,
        level1_bytes: 12 << 10,
        level_ratio: 2,
        background_threads: 2,
        manifest_bytes: 64 << 10,
        ..Options::default()
    }
}

fn path(name: &str) -> PathBuf {
    Path::new(HOME).join(name)
}

fn files_in(disk: &SimFs, directory: &Path) -> Files {
    if disk.entry(directory).unwrap().is_none() {
        return Files::new();
    }
    let entries = disk.list(directory).unwrap().into_iter().filter(|entry| !entry.is_directory);
    entries
        .map(|entry| (entry.name().unwrap().to_owned(), disk.read(&entry.path).unwrap()))
        .collect()
}

/// A disk with these files, all of them durable.
fn disk_of(files: &Files) -> SimFs {
    let disk = SimFs::new();
    disk.create_directory(Path::new(HOME)).unwrap();
    for (name, bytes) in files {
        disk.create(&path(name), Create::New).unwrap().write_at(0, bytes).unwrap();
    }
    let trace = disk.trace();
    trace.crash_at(trace.len(), CrashModel::KeepAll)
}

fn repair(disk: &SimFs) -> RepairReport {
    repair_in(Arc::new(disk.clone()), HOME, &options()).unwrap()
}

fn contents(disk: &SimFs) -> Records {
    let options = Options { create: false, ..options() };
    let engine = Lsm::open_in(Arc::new(disk.clone()), HOME, options).unwrap();
    let found = folded(&engine);
    for (key, value) in &found {
        assert!(engine.get_vec(key).unwrap().as_ref() == Some(value));
    }
    found
}

/// A database of random writes, deletions and overwrites on several levels, with live logs, closed.
fn database(random: &mut ChaCha8Rng) -> (Files, Records) {
    let disk = SimFs::new();
    let mut model = Records::new();
    for _ in 0..2 {
        let engine = Lsm::open_in(Arc::new(disk.clone()), HOME, options()).unwrap();
        for step in 0..900u32 {
            let key = format!("{:03}", random.random_range(0..400)).into_bytes();
            if random.random_range(0..4) == 0 {
                engine.delete(&key).unwrap();
                model.remove(&key);
            } else {
                let value = format!("{step}|{}", "v".repeat(random.random_range(0..120)));
                engine.put(&key, value.as_bytes()).unwrap();
                model.insert(key, value.into_bytes());
            }
            if step % 300 == 100 {
                engine.quiesce().unwrap();
            }
        }
        Box::new(engine).close().unwrap();
    }
    (files_in(&disk, Path::new(HOME)), model)
}

/// A database in which every key was written once, so that it lies in one place only.
fn database_of_single_writes() -> (Files, Records) {
    let disk = SimFs::new();
    let mut model = Records::new();
    let engine = Lsm::open_in(Arc::new(disk.clone()), HOME, options()).unwrap();
    for step in 0..700u32 {
        let key = format!("{:04}", step * 463 % 1009).into_bytes();
        let value = format!("{step}|{}", "w".repeat((step % 90) as usize)).into_bytes();
        engine.put(&key, &value).unwrap();
        model.insert(key, value);
    }
    Box::new(engine).close().unwrap();
    (files_in(&disk, Path::new(HOME)), model)
}

fn names(files: &Files, has: impl Fn(&str) -> bool) -> Vec<String> {
    files.keys().filter(|name| has(name)).cloned().collect()
}

fn is_table(name: &str) -> bool {
    name.ends_with(".ldb")
}

fn is_manifest(name: &str) -> bool {
    name.starts_with("MANIFEST-")
}

/// Repairs, and sees that repairing again changes nothing and finds nothing wrong.
fn repaired(files: &Files) -> (Records, RepairReport, Files) {
    let disk = disk_of(files);
    let report = repair(&disk);
    for name in &report.set_aside {
        assert!(name.starts_with(path("lost")), "{}", name.display());
        assert!(disk.read(name).is_some(), "{}", name.display());
    }
    let once = disk_of(&files_in(&disk, Path::new(HOME)));
    let found = contents(&once);
    let again = repair(&disk);
    assert_eq!((&again.problems, &again.set_aside), (&Vec::new(), &Vec::new()));
    assert!(again.manifest_was_whole);
    assert!(contents(&disk) == found, "repaired twice");
    (found, report, files_in(&disk, &path("lost")))
}

#[test]
fn whatever_happened_to_current_and_the_manifests_all_data_is_there() {
    let mut random = seeded();
    let (files, model) = database(&mut random);
    let manifests = names(&files, is_manifest);
    assert_eq!(manifests.len(), 1);
    assert!(names(&files, is_table).len() > 8 && files.keys().any(|name| name.ends_with(".log")));

    let (found, report, lost) = repaired(&files);
    assert!(found == model, "a database that is whole");
    assert!(report.manifest_was_whole && report.problems.is_empty(), "{report:?}");
    assert!(lost.is_empty());
    assert!(report.log_record_count > 0);

    for content in ["", "MANIFEST-", "MANIFEST-000001", "MANIFEST-999999\n", "\0\0\0\0\0\0\0\0"] {
        let mut damaged = files.clone();
        damaged.insert("CURRENT".to_owned(), content.as_bytes().to_vec());
        let (found, report, _) = repaired(&damaged);
        assert!(found == model, "CURRENT is {content:?}");
        assert!(report.manifest_was_whole && report.problems.len() == 1, "{report:?}");
    }
    let mut damaged = files.clone();
    let current = damaged.remove("CURRENT").unwrap();
    assert!(repaired(&damaged).0 == model, "CURRENT is missing");
    damaged.insert("CURRENT".to_owned(), current.repeat(2));
    let (found, report, lost) = repaired(&damaged);
    assert!(found == model && report.set_aside.len() == 1, "CURRENT is there twice");
    assert_eq!(lost["CURRENT"], current.repeat(2));

    damaged.remove(&manifests[0]);
    let (found, report, _) = repaired(&damaged);
    assert!(found == model, "the manifest is missing: {report:?}");
    assert!(!report.manifest_was_whole);
    damaged.remove("CURRENT");
    assert!(repaired(&damaged).0 == model, "nothing but tables and logs");
}

#[test]
fn a_manifest_that_is_cut_or_flipped_anywhere_costs_no_data() {
    let mut random = seeded();
    let (files, model) = database(&mut random);
    let manifest = names(&files, is_manifest).remove(0);
    let whole = &files[&manifest];
    let mut ends = record_ends(whole);
    assert!(ends.len() > 20, "{} records", ends.len());
    ends.extend((0..25).map(|_| random.random_range(0..whole.len())));
    for end in ends {
        let mut damaged = files.clone();
        damaged.insert(manifest.clone(), whole[..end].to_vec());
        assert!(repaired(&damaged).0 == model, "cut at {end} of {}", whole.len());
    }
    for _ in 0..25 {
        let mut damaged = files.clone();
        let at = random.random_range(0..whole.len());
        damaged.get_mut(&manifest).unwrap()[at] ^= 1 << random.random_range(0..8);
        assert!(repaired(&damaged).0 == model, "flipped at {at} of {}", whole.len());
    }
}

#[test]
fn a_manifest_that_lacks_a_flush_is_not_believed_even_if_it_tells_of_later_sequences() {
    let disk = SimFs::new();
    // A flush takes so long that the next memtable is full before it is installed.
    let options = Options { background_bytes_per_second: 40 << 10, ..options() };
    let engine = Lsm::open_in(Arc::new(disk.clone()), HOME, options).unwrap();
    let _pause = engine.pause_compactions().unwrap();
    let mut model = Records::new();
    for at in 0..90u32 {
        let (key, value) = (format!("{at}").into_bytes(), vec![b'v'; 100]);
        engine.put(&key, &value).unwrap();
        model.insert(key, value);
    }
    engine.flush().unwrap();
    engine.quiesce().unwrap();
    let mut files = files_in(&disk, Path::new(HOME));
    let manifest = names(&files, is_manifest).remove(0);
    let ends = record_ends(&files[&manifest]);
    files.get_mut(&manifest).unwrap().truncate(ends[ends.len() - 2]);
    assert!(repaired(&files).0 == model);
}

/// Where the records of a log end that are shorter than a block: by their headers.
fn record_ends(log: &[u8]) -> Vec<usize> {
    let (mut at, mut ends) = (0, vec![0]);
    while at + 7 <= log.len() && LOG_BLOCK_BYTES - at % LOG_BLOCK_BYTES >= 7 {
        at += 7 + usize::from(u16::from_le_bytes([log[at + 4], log[at + 5]]));
        ends.push(at);
    }
    ends
}

/// What is missing, and that nothing else is there.
fn lost_records(found: &Records, model: &Records, place: &str) -> Records {
    for (key, value) in found {
        assert!(model.get(key) == Some(value), "{place}: {}", key.escape_ascii());
    }
    let lost = model.iter().filter(|(key, _)| !found.contains_key(*key));
    lost.map(|(key, value)| (key.clone(), value.clone())).collect()
}

#[test]
fn of_a_damaged_table_or_log_only_what_was_damaged_is_lost_and_the_file_is_kept() {
    let mut random = seeded();
    let (files, model) = database_of_single_writes();
    let victims = names(&files, |name| is_table(name) || name.ends_with(".log"));
    let logs = victims.iter().filter(|name| !is_table(name) && !files[*name].is_empty());
    assert!(logs.count() > 0);
    for has_current in [true, false] {
        for name in &victims {
            let whole = &files[name];
            for round in 0..6 {
                if whole.is_empty() {
                    continue;
                }
                let at = random.random_range(0..whole.len());
                let mut bytes = whole.clone();
                let is_cut = round % 2 == 0;
                if is_cut {
                    bytes.truncate(at);
                } else {
                    bytes[at] ^= 1 << random.random_range(0..8);
                }
                let mut damaged = files.clone();
                damaged.insert(name.clone(), bytes.clone());
                if !has_current {
                    damaged.remove("CURRENT");
                }
                let place = format!(
                    "{name} {} at {at} of {}",
                    if is_cut { "cut" } else { "flipped" },
                    whole.len()
                );
                let (found, report, kept) = repaired(&damaged);
                let lost = lost_records(&found, &model, &place);
                let lost_bytes: usize = lost.iter().map(|(k, v)| k.len() + v.len()).sum();
                let block = if is_table(name) { 1024 } else { LOG_BLOCK_BYTES };
                let allowed = block + if is_cut { whole.len() - at } else { 0 };
                assert!(lost_bytes <= allowed, "{place}: {lost_bytes} bytes are lost");
                // A log that is cut looks like one that was never written further.
                if !lost.is_empty() && (is_table(name) || !is_cut) {
                    assert_eq!(kept.get(name), Some(&bytes), "{place}: {report:?}");
                    assert!(
                        report.problems.iter().any(|problem| problem.contains(name)),
                        "{place}"
                    );
                }
            }
            let mut damaged = files.clone();
            damaged.remove(name);
            let (found, _, _) = repaired(&damaged);
            let lost = lost_records(&found, &model, name);
            let lost_bytes: usize = lost.iter().map(|(k, v)| k.len() + v.len()).sum();
            assert!(lost_bytes <= whole.len(), "{name} removed: {lost_bytes}");
        }
    }
}

#[test]
fn a_crash_anywhere_in_a_repair_leaves_it_to_be_done_again() {
    let mut random = seeded();
    let (files, model) = database(&mut random);
    let manifest = names(&files, is_manifest).remove(0);
    let tables = names(&files, is_table);
    let mut cases = vec![files.clone()];
    let mut damaged = files.clone();
    damaged.remove("CURRENT");
    cases.push(damaged.clone());
    damaged.remove(&manifest);
    cases.push(damaged.clone());
    // With a damaged table: what is there after an undisturbed repair is the measure.
    damaged = files.clone();
    // Not any table: one that ends early may have hardly an entry.
    let table = tables.iter().max_by_key(|table| files[*table].len()).unwrap();
    let middle = files[table].len() / 2;
    damaged.get_mut(table).unwrap()[middle] ^= 4;
    cases.push(damaged);
    for (number, files) in cases.into_iter().enumerate() {
        let expected = repaired(&files).0;
        assert!(number == 3 || expected == model);
        let disk = disk_of(&files);
        let before = files_in(&disk, Path::new(HOME));
        repair(&disk);
        let trace = disk.trace();
        assert!(trace.len() > 10);
        for cut in 0..=trace.len() {
            for model in [
                CrashModel::KeepAll,
                CrashModel::DropUnsynced,
                CrashModel::TornWrite { seed: 5 },
                CrashModel::RandomSubset { seed: 11 },
            ] {
                let image = trace.crash_at(cut, model);
                let place = format!("case {number}, {model:?}, cut {cut} of {}", trace.len());
                if number == 3 {
                    let here = image.read(&path(table));
                    let aside = image.read(&path("lost").join(table));
                    assert!(here.or(aside).as_ref() == before.get(table), "{place}");
                }
                repair(&image);
                assert!(contents(&image) == expected, "{place}");
            }
        }
    }
}

#[test]
fn opening_tells_of_repair_and_repair_refuses_what_it_must_not_touch() {
    let mut random = seeded();
    let (mut files, model) = database(&mut random);
    files.insert("notes.txt".to_owned(), b"mine".to_vec());
    let table = names(&files, is_table).remove(0);
    let manifest = names(&files, is_manifest).remove(0);
    for name in ["CURRENT", &table, &manifest] {
        let mut damaged = files.clone();
        damaged.remove(name);
        let disk = disk_of(&damaged);
        let error = Lsm::open_in(Arc::new(disk), HOME, options()).err().unwrap().to_string();
        assert!(error.contains("repair"), "{error}");
    }
    // While it is open nobody repairs it.
    let disk = disk_of(&files);
    let fs: Arc<dyn FileSystem> = Arc::new(disk.clone());
    let engine = Lsm::open_in(Arc::clone(&fs), HOME, options()).unwrap();
    assert!(matches!(repair_in(Arc::clone(&fs), HOME, &options()), Err(Error::Locked { .. })));
    drop(engine);
    repair(&disk);
    assert_eq!(disk.read(&path("notes.txt")).as_deref(), Some(&b"mine"[..]));
    assert!(contents(&disk) == model);
    // Nothing of a database, or of another one.
    for name in ["notes.txt", "IDENTITY"] {
        let disk = disk_of(&Files::from([(name.to_owned(), Vec::new())]));
        let mark = disk.mark();
        let error = repair_in(Arc::new(disk.clone()), HOME, &options()).unwrap_err();
        assert!(matches!(error, Error::NotADatabase { .. } | Error::ForeignDirectory { .. }));
        assert_eq!(disk.mark(), mark);
    }
    let golden = crate::golden::Golden::copy("leveldb", "foreign-comparator");
    let error = engines::lsm::repair(golden.directory()).unwrap_err();
    assert!(matches!(error, Error::ComparatorMismatch { .. }), "{error}");
}

#[test]
fn a_log_that_is_missing_is_noticed_where_the_manifest_names_it() {
    let mut random = seeded();
    let (files, model) = database(&mut random);
    let mut damaged = files.clone();
    let logs = names(&files, |name| name.ends_with(".log"));
    assert!(!logs.is_empty());
    damaged.remove(&logs[0]);
    let error = Lsm::open_in(Arc::new(disk_of(&damaged)), HOME, options()).err().unwrap();
    assert!(error.is_corruption() && error.to_string().contains(&logs[0]), "{error}");
    let (found, _, _) = repaired(&damaged);
    assert!(!found.is_empty() && found != model);
}

#[test]
fn directories_of_leveldb_are_repaired_without_current_and_manifest() {
    for name in ["log-only", "compacted", "multi-level", "large-records", "batches", "reopened"] {
        for (has_current, has_manifest) in [(false, true), (true, false), (false, false)] {
            let golden = crate::golden::Golden::copy("leveldb", name);
            for entry in std::fs::read_dir(golden.directory()).unwrap() {
                let file = entry.unwrap().file_name().into_string().unwrap();
                if (file == "CURRENT" && !has_current) || (is_manifest(&file) && !has_manifest) {
                    std::fs::remove_file(golden.file(&file)).unwrap();
                }
            }
            let error = Lsm::open(golden.directory(), Options::default()).err().unwrap();
            assert!(error.to_string().contains("repair"), "{error}");
            engines::lsm::repair(golden.directory()).unwrap();
            let engine = Lsm::open(golden.directory(), Options::default()).unwrap();
            let place = format!("{name}, CURRENT {has_current}, manifest {has_manifest}");
            assert!(crate::golden::contents(&engine) == golden.expected, "{place}");
        }
    }
}
