//! Directories that Basho's Bitcask wrote, as they are and damaged in every way that happens.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engines::Engine;
use engines::bitcask::{Bitcask, Options};
use engines::fs::sim::SimFs;
use engines::fs::{Create, FileSystem, RealFs};

use crate::golden::{Expected, Golden, contents, fingerprint};

const DIRECTORIES: [&str; 6] =
    ["basic", "rolled", "merged", "tombstone0", "edge-sizes", "reopened"];

/// Without background merges: the tests look at the files.
fn open_in(fs: Arc<dyn FileSystem>, directory: &Path) -> Bitcask {
    let mut options = Options::default();
    options.merge.enabled = false;
    Bitcask::open_in(fs, directory, options).unwrap()
}

fn open(directory: &Path) -> Bitcask {
    open_in(Arc::new(RealFs), directory)
}

/// Opens, reads everything in every way, and closes.
fn read_in(fs: Arc<dyn FileSystem>, directory: &Path) -> Expected {
    let store = open_in(fs, directory);
    let found = contents(&store);
    for (key, expected) in &found {
        assert_eq!(fingerprint(&store.get_vec(key).unwrap().unwrap()), *expected);
    }
    assert_eq!(store.stats().unwrap().live_records, Some(found.len() as u64));
    Box::new(store).close().unwrap();
    found
}

fn read(directory: &Path) -> Expected {
    read_in(Arc::new(RealFs), directory)
}

/// A golden directory in memory, to be opened thousands of times.
struct InMemory(SimFs);

impl InMemory {
    fn copy(golden: &Golden) -> Self {
        let memory = Self(SimFs::new());
        for path in files(golden.directory(), "") {
            memory.write(path.file_name().unwrap().to_str().unwrap(), &fs::read(&path).unwrap());
        }
        memory
    }

    fn write(&self, name: &str, content: &[u8]) {
        let file = self.0.create(&Path::new("/").join(name), Create::Replace).unwrap();
        file.write_at(0, content).unwrap();
    }

    fn open(&self) -> Bitcask {
        open_in(Arc::new(self.0.clone()), Path::new("/"))
    }

    fn read(&self) -> Expected {
        read_in(Arc::new(self.0.clone()), Path::new("/"))
    }
}

fn files(directory: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().ends_with(suffix))
        .collect();
    files.sort_by_key(|path| id(path));
    files
}

fn id(path: &Path) -> u32 {
    path.file_name().unwrap().to_str().unwrap().split('.').next().unwrap().parse().unwrap()
}

/// Cuts the last `bytes` off.
fn cut(path: &Path, bytes: u64) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_len(file.metadata().unwrap().len() - bytes).unwrap();
}

#[test]
fn every_directory_is_read_back() {
    for name in DIRECTORIES {
        let golden = Golden::copy("bitcask", name);
        assert!(engines::bitcask::recognizes(golden.directory()));
        assert!(read(golden.directory()) == golden.expected, "{name}");
        // And again, after our own close.
        assert!(read(golden.directory()) == golden.expected, "{name}");
    }
}

#[test]
fn without_hint_files_the_data_files_tell_everything_and_the_same_hints_are_written() {
    for name in DIRECTORIES {
        let golden = Golden::copy("bitcask", name);
        let hints: Vec<_> = files(golden.directory(), ".hint")
            .into_iter()
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect();
        for (path, _) in &hints {
            fs::remove_file(path).unwrap();
        }
        assert!(read(golden.directory()) == golden.expected, "{name}");
        for (path, content) in hints {
            assert_eq!(fs::read(&path).unwrap(), content, "{}", path.display());
        }
    }
}

#[test]
fn a_flipped_byte_anywhere_in_a_hint_file_changes_nothing() {
    let golden = Golden::copy("bitcask", "reopened");
    let memory = InMemory::copy(&golden);
    let good = fs::read(golden.file("5.bitcask.hint")).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        memory.write("5.bitcask.hint", &bad);
        assert!(memory.read() == golden.expected, "byte {at}");
    }
}

#[test]
fn a_hint_file_cut_anywhere_changes_nothing() {
    let golden = Golden::copy("bitcask", "reopened");
    let memory = InMemory::copy(&golden);
    let good = fs::read(golden.file("5.bitcask.hint")).unwrap();
    for length in 0..good.len() {
        memory.write("5.bitcask.hint", &good[..length]);
        assert!(memory.read() == golden.expected, "length {length}");
    }
}

/// Old versions wrote no trailer, so nothing tells whether such a hint file is whole: the data file
/// is read, and a hint file with a trailer is written.
#[test]
fn hint_files_without_a_trailer_are_written_anew() {
    for name in DIRECTORIES {
        let golden = Golden::copy("bitcask", name);
        let contents = |golden: &Golden| -> Vec<_> {
            let hints = files(golden.directory(), ".hint");
            hints.iter().map(|path| fs::read(path).unwrap()).collect()
        };
        let whole = contents(&golden);
        for hint in files(golden.directory(), ".hint") {
            cut(&hint, 18);
            // A lie that a trailer would tell of: another first key.
            let mut content = fs::read(&hint).unwrap();
            content[18] ^= 1;
            fs::write(hint, content).unwrap();
        }
        assert!(read(golden.directory()) == golden.expected, "{name}");
        assert!(contents(&golden) == whole, "{name}");
    }
}

/// Old versions did not mark tombstones in hint files either.
#[test]
fn hint_files_of_old_versions_do_not_mark_tombstones() {
    let golden = Golden::copy("bitcask", "tombstone0");
    for hint in files(golden.directory(), ".hint") {
        let mut content = fs::read(&hint).unwrap();
        let end = content.len() - 18;
        let mut at = 0;
        while at < end {
            content[at + 10] &= 0x7f;
            at += 18 + usize::from(u16::from_be_bytes([content[at + 4], content[at + 5]]));
        }
        let crc = crc32fast::hash(&content[..end]);
        content[end + 6..end + 10].copy_from_slice(&crc.to_be_bytes());
        fs::write(hint, content).unwrap();
    }
    assert!(read(golden.directory()) == golden.expected);
}

/// A record of a data file: where it ends, its key, and its value unless that is a tombstone.
type Parsed = (usize, Vec<u8>, Option<(usize, [u8; 32])>);

fn records(data: &[u8]) -> Vec<Parsed> {
    let (mut at, mut records) = (0, Vec::new());
    while at < data.len() {
        let key_size = usize::from(u16::from_be_bytes([data[at + 8], data[at + 9]]));
        let value_size = u32::from_be_bytes(data[at + 10..at + 14].try_into().unwrap()) as usize;
        let key = data[at + 14..at + 14 + key_size].to_vec();
        at += 14 + key_size + value_size;
        let value = &data[at - value_size..at];
        let lives = !value.starts_with(b"bitcask_tombstone");
        records.push((at, key, lives.then(|| fingerprint(value))));
    }
    records
}

fn replay<'a>(state: &mut Expected, records: impl Iterator<Item = &'a Parsed>) {
    for (_, key, value) in records {
        match value {
            Some(value) => state.insert(key.clone(), *value),
            None => state.remove(key),
        };
    }
}

#[test]
fn the_last_data_file_cut_at_every_byte_keeps_every_whole_record() {
    let golden = Golden::copy("bitcask", "reopened");
    let mut before = Expected::new();
    for earlier in ["1.bitcask.data", "3.bitcask.data"] {
        replay(&mut before, records(&fs::read(golden.file(earlier)).unwrap()).iter());
    }
    let good = fs::read(golden.file("5.bitcask.data")).unwrap();
    let hint = fs::read(golden.file("5.bitcask.hint")).unwrap();
    let records = records(&good);
    let memory = InMemory::copy(&golden);
    for length in 0..=good.len() {
        memory.write("5.bitcask.data", &good[..length]);
        // The hint file tells of records that are gone.
        memory.write("5.bitcask.hint", &hint);
        let mut expected = before.clone();
        let whole = records.iter().filter(|(end, ..)| *end <= length);
        let whole_end = whole.clone().map(|(end, ..)| *end).max().unwrap_or(0);
        replay(&mut expected, whole);

        let store = memory.open();
        assert_eq!(store.damage(), [], "length {length}");
        assert!(contents(&store) == expected, "length {length}");
        // The next record goes to a file of its own, behind this one.
        store.put(b"after the crash", b"found").unwrap();
        Box::new(store).close().unwrap();
        let left = memory.0.read(Path::new("/5.bitcask.data")).map_or(0, |data| data.len());
        assert_eq!(left, whole_end);
        // What was cut off is kept, if it may be anything.
        let aside = format!("/5.bitcask.data.{whole_end}.cut");
        let cut = &good[whole_end..length];
        let is_nothing = cut.iter().all(|byte| *byte == 0 || *byte == 0xff);
        assert_eq!(memory.0.read(Path::new(&aside)), (!is_nothing).then(|| cut.to_vec()));
        expected.insert(b"after the crash".to_vec(), fingerprint(b"found"));
        assert!(memory.read() == expected, "length {length}");
        for entry in memory.0.list(Path::new("/")).unwrap() {
            let name = entry.name().unwrap_or_default();
            if name.starts_with("6.") || name.ends_with(".cut") {
                memory.0.remove(&entry.path).unwrap();
            }
        }
    }
}

#[test]
fn a_damaged_record_in_the_middle_is_passed_over_and_reported() {
    let golden = Golden::copy("bitcask", "basic");
    fs::remove_file(golden.file("1.bitcask.hint")).unwrap();
    let path = golden.file("1.bitcask.data");
    let mut data = fs::read(&path).unwrap();
    let records = records(&data);
    let (start, (_, key, _)) = (records[499].0, records[500].clone());
    data[start + 14 + key.len()] ^= 1;
    fs::write(&path, &data).unwrap();

    let mut expected = Expected::new();
    replay(&mut expected, records.iter().enumerate().filter(|(at, _)| *at != 500).map(|(_, r)| r));
    let store = open(golden.directory());
    assert!(contents(&store) == expected);
    let damage = store.damage();
    assert_eq!(damage.len(), 1);
    assert_eq!((damage[0].file.as_path(), damage[0].offset), (path.as_path(), start as u64));
    // Neither closing nor compacting touches what a person may want to look at.
    // They say that it is there: the only dead bytes that compacting leaves.
    store.put(b"once", b"1").unwrap();
    store.put(b"once", b"2").unwrap();
    store.compact().unwrap();
    let stats = store.stats().unwrap();
    assert!(stats.details.contains(&("damaged_files".to_owned(), "1".to_owned())));
    let live: u64 = records
        .iter()
        .enumerate()
        .filter(|(at, record)| {
            *at != 500
                && record.2.is_some()
                && expected.get(&record.1) == record.2.as_ref()
                && records[at + 1..].iter().all(|later| later.1 != record.1)
        })
        .map(|(at, record)| (record.0 - at.checked_sub(1).map_or(0, |at| records[at].0)) as u64)
        .sum();
    assert_eq!(stats.dead_bytes, Some(data.len() as u64 - live));
    Box::new(store).close().unwrap();
    assert_eq!(fs::read(&path).unwrap(), data);
    assert!(!golden.file("1.bitcask.hint").exists());
}

/// A page of zeros within a value of the newest file, which has no hint file: power loss leaves
/// such pages, and behind them nothing that was synced. It may also be a disk that decays.
#[test]
fn what_looks_like_power_loss_is_cut_off_and_kept_aside() {
    let memory = InMemory(SimFs::new());
    let store = memory.open();
    store.put(b"before", b"stays").unwrap();
    store.put(b"large", &[7; 20_000]).unwrap();
    store.put(b"behind", b"a whole record").unwrap();
    Box::new(store).close().unwrap();
    memory.0.remove(Path::new("/1.bitcask.hint")).unwrap();
    let mut data = memory.0.read(Path::new("/1.bitcask.data")).unwrap();
    data[8_192..12_288].fill(0);
    memory.write("1.bitcask.data", &data);

    let cut_at = 14 + 6 + 5;
    let aside = Path::new("/1.bitcask.data.25.cut");
    for _ in 0..2 {
        let store = memory.open();
        assert_eq!(contents(&store).into_keys().collect::<Vec<_>>(), [b"before"]);
        assert_eq!(store.damage(), []);
        assert_eq!(store.set_aside(), [aside]);
        Box::new(store).close().unwrap();
        assert_eq!(memory.0.read(aside).unwrap(), data[cut_at..]);
    }
    assert_eq!(memory.0.read(Path::new("/1.bitcask.data")).unwrap(), data[..cut_at]);
}

/// `chmod -R +x`, say: the files hold everything there is.
#[test]
fn marks_on_all_data_files_do_not_delete_everything() {
    for mode in [0o645, 0o4644] {
        let golden = Golden::copy("bitcask", "rolled");
        let set_mode = |mode| {
            for path in files(golden.directory(), ".data") {
                fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            }
        };
        set_mode(mode);
        let listed = || {
            let mut names: Vec<_> = fs::read_dir(golden.directory())
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect();
            names.sort();
            names
        };
        let before = listed();
        let error = Bitcask::open(golden.directory(), Options::default()).unwrap_err();
        assert!(error.is_corruption(), "{error}");
        assert!(error.to_string().contains("900 live records"), "{error}");
        assert_eq!(listed(), before);
        set_mode(0o644);
        assert!(read(golden.directory()) == golden.expected);
    }
}

/// So a merge of Basho's leaves a directory in which everything was deleted.
#[test]
fn marks_on_all_data_files_are_believed_if_nothing_lives_in_them() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    store.put(b"key", b"value").unwrap();
    store.delete(b"key").unwrap();
    Box::new(store).close().unwrap();
    let path = directory.path().join("1.bitcask.data");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o645)).unwrap();
    assert!(read(directory.path()).is_empty());
    assert!(!path.exists());
}

#[test]
fn a_record_that_rotted_behind_its_hint_file_is_an_error_and_never_a_wrong_value() {
    let golden = Golden::copy("bitcask", "basic");
    let path = golden.file("1.bitcask.data");
    let mut data = fs::read(&path).unwrap();
    let records = records(&data);
    let (start, (end, key, _)) = (records[999].0, records[1000].clone());
    assert_eq!(records.iter().rposition(|record| record.1 == key), Some(1000));
    data[end - 1] ^= 1;
    fs::write(&path, &data).unwrap();
    let store = open(golden.directory());
    let error = store.get_vec(&key).unwrap_err();
    assert!(error.is_corruption(), "{error}");
    assert!(error.to_string().contains(&format!("1.bitcask.data is corrupt at byte {start}")));
    // A merge does not lose it silently: the file stays, and the error says why.
    assert!(store.compact().unwrap_err().is_corruption());
    assert_eq!(fs::read(&path).unwrap(), data);
    let other = golden.expected.keys().find(|other| **other != key).unwrap();
    assert_eq!(fingerprint(&store.get_vec(other).unwrap().unwrap()), golden.expected[other]);
}

#[test]
fn files_pending_deletion_are_not_loaded_and_go_at_the_next_open() {
    for mode in [0o645, 0o4644] {
        let golden = Golden::copy("bitcask", "merged");
        // The oldest version of each key lies in a file that a merge replaced.
        let stale = golden.file("3.bitcask.data");
        let rolled = Golden::copy("bitcask", "rolled");
        fs::copy(rolled.file("3.bitcask.data"), &stale).unwrap();
        fs::set_permissions(&stale, fs::Permissions::from_mode(mode)).unwrap();
        // The same with the highest id: it would win over everything.
        let newest = golden.file("99.bitcask.data");
        fs::copy(rolled.file("3.bitcask.data"), &newest).unwrap();
        fs::set_permissions(&newest, fs::Permissions::from_mode(mode)).unwrap();

        let store = open(golden.directory());
        assert!(contents(&store) == golden.expected);
        assert!(!stale.exists() && !newest.exists());
        store.put(b"new", b"value").unwrap();
        Box::new(store).close().unwrap();
        assert!(golden.file("100.bitcask.data").exists());
    }
}

#[test]
fn a_new_file_has_a_larger_id_than_everything_seen() {
    let golden = Golden::copy("bitcask", "basic");
    fs::write(golden.file("40.bitcask.data"), b"").unwrap();
    fs::write(golden.file("50.bitcask.hint"), b"").unwrap();
    fs::write(golden.file("60.bitcask.data.tmp"), b"half a merge").unwrap();
    fs::write(golden.file("notes.txt"), b"not ours").unwrap();
    let store = open(golden.directory());
    assert!(contents(&store) == golden.expected);
    store.put(b"new", b"value").unwrap();
    Box::new(store).close().unwrap();
    let names: Vec<_> = files(golden.directory(), ".data").iter().map(|path| id(path)).collect();
    assert_eq!(names, [1, 61]);
    assert!(!golden.file("60.bitcask.data.tmp").exists());
    assert_eq!(fs::read(golden.file("notes.txt")).unwrap(), b"not ours");
}

#[test]
fn compacting_keeps_exactly_what_lives() {
    for name in DIRECTORIES {
        let golden = Golden::copy("bitcask", name);
        let store = open(golden.directory());
        store.compact().unwrap();
        assert_eq!(store.stats().unwrap().dead_bytes, Some(0), "{name}");
        assert!(contents(&store) == golden.expected, "{name}");
        Box::new(store).close().unwrap();
        assert!(read(golden.directory()) == golden.expected, "{name}");
        for hint in files(golden.directory(), ".hint") {
            fs::remove_file(hint).unwrap();
        }
        assert!(read(golden.directory()) == golden.expected, "{name}");
    }
}
