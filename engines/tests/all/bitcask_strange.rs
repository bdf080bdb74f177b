//! Directories in which things lie that no Bitcask puts there, or permissions that nobody meant.

use std::fs;
use std::path::Path;

use engines::bitcask::{Bitcask, Options};
use engines::{Engine, Error};

fn options() -> Options {
    let mut options = Options { max_file_bytes: 1, ..Options::default() };
    options.merge.enabled = false;
    options
}

fn open(directory: &Path) -> Bitcask {
    Bitcask::open(directory, options()).unwrap()
}

/// A database of so many files, with one record each.
fn write_files(directory: &Path, count: u32) {
    let store = open(directory);
    for number in 1..=count {
        store.put(&number.to_be_bytes(), b"value").unwrap();
    }
    Box::new(store).close().unwrap();
}

fn check_files(store: &Bitcask, count: u32) {
    for number in 1..=count {
        assert_eq!(store.get_vec(&number.to_be_bytes()).unwrap().as_deref(), Some(&b"value"[..]));
    }
}

/// Each file is sealed by the next put, and the background syncs one at a time.
#[cfg(target_os = "linux")]
#[test]
fn a_writer_that_is_ahead_of_the_background_holds_few_descriptors() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let mut most = 0;
    for number in 1..=2_000u32 {
        store.put(&number.to_be_bytes(), b"value").unwrap();
        if number % 20 == 0 {
            most = most.max(descriptors_below(directory.path()));
        }
    }
    assert!(most < 100, "{most} descriptors");
    check_files(&store, 2_000);
}

#[cfg(target_os = "linux")]
fn descriptors_below(directory: &Path) -> usize {
    let directory = directory.canonicalize().unwrap();
    let descriptors = fs::read_dir("/proc/self/fd").unwrap();
    let targets = descriptors.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    targets.filter(|target| target.starts_with(&directory)).count()
}

#[test]
fn a_directory_with_the_name_of_the_next_file_stops_no_put() {
    for name in ["3.bitcask.data", "3.bitcask.hint", "3.bitcask.data.tmp"] {
        let directory = tempfile::tempdir().unwrap();
        write_files(directory.path(), 2);
        fs::create_dir(directory.path().join(name)).unwrap();
        let store = open(directory.path());
        store.put(&3u32.to_be_bytes(), b"value").unwrap();
        Box::new(store).close().unwrap();
        check_files(&open(directory.path()), 3);
        assert!(directory.path().join("4.bitcask.hint").exists());
        assert!(directory.path().join(name).is_dir());
    }
}

#[test]
fn a_directory_in_place_of_a_hint_file_stops_no_merge() {
    let directory = tempfile::tempdir().unwrap();
    write_files(directory.path(), 2);
    let hint = directory.path().join("1.bitcask.hint");
    fs::remove_file(&hint).unwrap();
    fs::create_dir(&hint).unwrap();
    let store = open(directory.path());
    for number in 1..=2u32 {
        store.delete(&number.to_be_bytes()).unwrap();
    }
    store.compact().unwrap();
    assert_eq!(store.stats().unwrap().file_count, Some(0));
    assert!(hint.is_dir());
    Box::new(store).close().unwrap();
    let store = open(directory.path());
    assert_eq!(store.stats().unwrap().live_records, Some(0));
}

/// `chmod -R 755` while the directory is written to: the files that are created later do not have
/// the bits, so not every file looks as if it were to be deleted.
#[cfg(unix)]
#[test]
fn a_file_that_its_owner_may_execute_is_not_marked_for_deletion() {
    use std::os::unix::fs::PermissionsExt;
    for mode in [0o755, 0o777, 0o711] {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        store.put(&1u32.to_be_bytes(), b"value").unwrap();
        store.put(&2u32.to_be_bytes(), b"value").unwrap();
        for entry in fs::read_dir(directory.path()).unwrap() {
            let permissions = fs::Permissions::from_mode(mode);
            fs::set_permissions(entry.unwrap().path(), permissions).unwrap();
        }
        store.put(&3u32.to_be_bytes(), b"value").unwrap();
        Box::new(store).close().unwrap();
        check_files(&open(directory.path()), 3);
    }
}

#[cfg(unix)]
#[test]
fn a_lock_file_that_is_a_link_is_refused_and_what_it_leads_to_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    fs::write(elsewhere.path(), "precious").unwrap();
    let lock = directory.path().join("bitcask.write.lock");
    std::os::unix::fs::symlink(elsewhere.path(), &lock).unwrap();
    assert!(matches!(Bitcask::open(directory.path(), options()), Err(Error::Io { .. })));
    assert_eq!(fs::read(elsewhere.path()).unwrap(), b"precious");
}

#[cfg(target_os = "linux")]
#[test]
fn files_without_hint_files_take_few_descriptors() {
    const COUNT: u32 = 400;
    let directory = tempfile::tempdir().unwrap();
    write_files(directory.path(), COUNT);
    for number in 1..=COUNT {
        fs::remove_file(directory.path().join(format!("{number}.bitcask.hint"))).unwrap();
    }
    let store = open(directory.path());
    let descriptors = fs::read_dir("/proc/self/fd").unwrap();
    let ours = descriptors
        .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
        .filter(|target| target.starts_with(directory.path()));
    let count = ours.count();
    assert!(count < 200, "{count}");
    check_files(&store, COUNT);
}

/// What is full by a small limit is not small, though it is below the usual bound of small files.
#[test]
fn full_files_are_not_merged_for_being_small() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { max_file_bytes: 10_000, ..Options::default() };
    let store = Bitcask::open(directory.path(), options).unwrap();
    for number in 0..400u32 {
        store.put(&number.to_be_bytes(), &[b'v'; 982]).unwrap();
        if number % 20 == 0 {
            store.quiesce().unwrap();
        }
    }
    store.quiesce().unwrap();
    let stats = store.stats().unwrap();
    assert_eq!((stats.file_count, stats.compaction_count), (Some(40), Some(0)));
}
