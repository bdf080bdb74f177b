//! Directories that nobody writes to: what is found, and that nothing is touched.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use engines::bitcask::{Bitcask, Options, ReadOnlyBitcask};
use engines::{Batch, Engine, Error};

use super::{Model, check, fingerprint as directory_fingerprint};
use crate::golden::{Golden, contents, fingerprint, remove_hints};

const DIRECTORIES: [&str; 6] =
    ["basic", "rolled", "merged", "tombstone0", "edge-sizes", "reopened"];

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_basho_wrote_is_read_without_touching_it() {
    for name in DIRECTORIES {
        for with_hints in [true, false] {
            let golden = Golden::copy("bitcask", name);
            if !with_hints {
                remove_hints(golden.directory());
            }
            // As while Basho's Bitcask has it open.
            fs::write(golden.file("bitcask.write.lock"), "1 /data/1.bitcask.data\n").unwrap();
            let before = directory_fingerprint(golden.directory());
            let reader = ReadOnlyBitcask::open(golden.directory()).unwrap();
            assert!(contents(&reader) == golden.expected, "{name}");
            for (key, expected) in &golden.expected {
                assert_eq!(fingerprint(&reader.get_vec(key).unwrap().unwrap()), *expected);
            }
            assert!(!reader.refresh().unwrap());
            assert_eq!(reader.stats().unwrap().live_records, Some(golden.expected.len() as u64));
            assert_eq!(reader.damage(), []);
            drop(reader);
            assert!(directory_fingerprint(golden.directory()) == before, "{name}");
        }
    }
}

#[test]
fn without_any_permission_to_write_everything_is_read() {
    let golden = Golden::copy("bitcask", "rolled");
    let file_modes = |mode| {
        for entry in fs::read_dir(golden.directory()).unwrap() {
            set_mode(&entry.unwrap().path(), mode);
        }
    };
    file_modes(0o444);
    set_mode(golden.directory(), 0o555);
    let before = directory_fingerprint(golden.directory());
    let found = ReadOnlyBitcask::open(golden.directory()).map(|reader| contents(&reader));
    let after = directory_fingerprint(golden.directory());
    set_mode(golden.directory(), 0o755);
    assert!(found.unwrap() == golden.expected);
    assert!(before == after);
}

#[test]
fn damage_and_torn_tails_are_found_as_the_writer_finds_them_and_left_as_they_are() {
    for (file, at, cut) in [("1.bitcask.data", 20, 0), ("12.bitcask.data", 20, 0), ("12", 0, 5)] {
        let golden = Golden::copy("bitcask", "rolled");
        remove_hints(golden.directory());
        let path = golden.file(&format!("{}.bitcask.data", file.split('.').next().unwrap()));
        let mut bytes = fs::read(&path).unwrap();
        bytes[at] ^= u8::from(cut == 0);
        bytes.truncate(bytes.len() - cut);
        fs::write(&path, &bytes).unwrap();
        let before = directory_fingerprint(golden.directory());
        let reader = ReadOnlyBitcask::open(golden.directory()).unwrap();
        let (found, damage) = (contents(&reader), reader.damage());
        let mut damaged_bytes: Vec<_> = reader.files().unwrap();
        damaged_bytes.retain(|file| file.damaged_bytes > 0);
        drop(reader);
        assert!(directory_fingerprint(golden.directory()) == before);
        let mut options = Options::default();
        options.merge.enabled = false;
        let store = Bitcask::open(golden.directory(), options).unwrap();
        assert!(contents(&store) == found);
        assert_eq!((store.damage(), damage.len()), (&damage[..], usize::from(cut == 0)));
        assert_eq!(damaged_bytes.len(), damage.len());
    }
}

/// The bytes that a writer leaves for a moment while it appends a record: nothing of them is
/// believed or called damage, and the record is found once it is whole.
#[test]
fn a_record_of_which_only_a_part_is_written_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let store = Bitcask::open(directory.path(), Options::default()).unwrap();
    store.put(b"first", b"1").unwrap();
    store.put(b"second", &[b'2'; 300]).unwrap();
    store.put(b"third", b"3").unwrap();
    let path = directory.path().join("1.bitcask.data");
    let (first, second) = (14 + 5 + 1, 14 + 6 + 300);
    let whole = fs::read(&path).unwrap();
    drop(store);
    remove_hints(directory.path());
    let reader_at = |content: &[u8]| {
        fs::write(&path, content).unwrap();
        ReadOnlyBitcask::open(directory.path()).unwrap()
    };
    let mut model = Model::from([(b"first".to_vec(), b"1".to_vec())]);
    for written in 0..second {
        // Filler behind what is written, as the writer leaves it, and nothing at all.
        for filler in [vec![0xff; whole.len() - first - written], Vec::new()] {
            let reader = reader_at(&[&whole[..first + written], &filler[..]].concat());
            check(&reader, &model);
            fs::write(&path, &whole[..first + second]).unwrap();
            assert!(reader.refresh().unwrap());
            let mut after = model.clone();
            after.insert(b"second".to_vec(), vec![b'2'; 300]);
            check(&reader, &after);
        }
    }
    // An append that failed behind its first record, was taken back, and something else written.
    let reader = reader_at(&whole[..first + second]);
    fs::write(&path, &whole[..first]).unwrap();
    assert!(reader.refresh().unwrap());
    check(&reader, &model);
    let reader = reader_at(&whole);
    let third = &whole[first + second..];
    fs::write(&path, [&whole[..first], third, &[0xff; 1_000]].concat()).unwrap();
    assert!(reader.refresh().unwrap());
    model.insert(b"third".to_vec(), b"3".to_vec());
    check(&reader, &model);
}

/// A merge output that appears late, with an id below the file of the tombstone, brings no deleted
/// key back; and tombstones that went away with what they hid leave nothing.
#[test]
fn a_late_merge_output_brings_no_deleted_key_back() {
    for opened_before_the_deletion in [false, true] {
        late_merge_output(opened_before_the_deletion);
    }
}

fn late_merge_output(opened_before_the_deletion: bool) {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut options = Options { max_file_bytes: 1, ..Options::default() };
    options.merge.enabled = false;
    let store = Bitcask::open(from.path(), options).unwrap();
    store.put(b"deleted", b"1").unwrap();
    store.put(b"overwritten", b"1").unwrap();
    store.put(b"merged away", b"1").unwrap();
    store.put(b"overwritten", b"2").unwrap();
    store.delete(b"deleted").unwrap();
    drop(store);
    let copy = |id: u32, to_id: u32| {
        let name = |id: u32| format!("{id}.bitcask.data");
        fs::copy(from.path().join(name(id)), to.path().join(name(to_id))).unwrap();
    };
    (1..=3).for_each(|id| copy(id, id));
    let early = opened_before_the_deletion.then(|| ReadOnlyBitcask::open(to.path()).unwrap());
    copy(4, 20);
    copy(5, 21);
    let reader = early.unwrap_or_else(|| ReadOnlyBitcask::open(to.path()).unwrap());
    assert_eq!(reader.refresh().unwrap(), opened_before_the_deletion);
    let overwritten = (b"overwritten".to_vec(), b"2".to_vec());
    let merged_away = (b"merged away".to_vec(), b"1".to_vec());
    check(&reader, &Model::from([overwritten.clone(), merged_away]));
    // The output of a merge of 1 to 3, begun before what is in 20 and 21.
    copy(1, 10);
    copy(2, 11);
    for id in 1..=3 {
        fs::remove_file(to.path().join(format!("{id}.bitcask.data"))).unwrap();
    }
    assert!(reader.refresh().unwrap());
    check(&reader, &Model::from([overwritten.clone()]));
    for id in [10, 11, 21] {
        fs::remove_file(to.path().join(format!("{id}.bitcask.data"))).unwrap();
    }
    assert!(reader.refresh().unwrap());
    check(&reader, &Model::from([overwritten]));
    let stats = reader.stats().unwrap();
    assert_eq!((stats.file_count, stats.dead_bytes), (Some(1), Some(0)));
}

/// A file of the same name and the same length, with a record as long, in place of a known one.
#[test]
fn a_database_that_was_emptied_and_begun_anew_is_read_anew() {
    for sealed in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let open = || Bitcask::open(directory.path(), Options::default()).unwrap();
        let model = |value: &[u8]| Model::from([(b"key".to_vec(), value.to_vec())]);
        let store = open();
        store.put(b"key", b"old").unwrap();
        let reader = ReadOnlyBitcask::open(directory.path()).unwrap();
        drop(store);
        if sealed {
            assert!(reader.refresh().unwrap(), "the hint file vouches for the data file");
        }
        check(&reader, &model(b"old"));
        let store = open();
        store.delete(b"key").unwrap();
        store.compact().unwrap();
        drop(store);
        let store = open();
        store.put(b"key", b"new").unwrap();
        drop(store);
        let files = reader.files().unwrap();
        assert_eq!((files.len(), files[0].id), (1, 1));
        check(&reader, &model(b"old"));
        assert!(reader.refresh().unwrap());
        check(&reader, &model(b"new"));
        let files = reader.files().unwrap();
        assert_eq!((files.len(), files[0].id), (1, 1), "the same name again");
    }
}

#[test]
fn files_pending_deletion_are_passed_over_unless_every_file_looks_so() {
    for mark in [0o645, 0o4644] {
        let golden = Golden::copy("bitcask", "reopened");
        let all = ReadOnlyBitcask::open(golden.directory()).unwrap();
        set_mode(&golden.file("1.bitcask.data"), mark);
        let before = directory_fingerprint(golden.directory());
        let rest = ReadOnlyBitcask::open(golden.directory()).unwrap();
        assert!(contents(&rest).len() < golden.expected.len());
        assert!(all.refresh().unwrap());
        assert!(contents(&all) == contents(&rest));
        assert!(directory_fingerprint(golden.directory()) == before);
    }
    let golden = Golden::copy("bitcask", "reopened");
    for entry in fs::read_dir(golden.directory()).unwrap() {
        set_mode(&entry.unwrap().path(), 0o777);
    }
    let before = directory_fingerprint(golden.directory());
    assert!(contents(&ReadOnlyBitcask::open(golden.directory()).unwrap()) == golden.expected);
    assert!(directory_fingerprint(golden.directory()) == before);
}

/// As user nobody, if the tests run as root, whom no permission stops.
#[test]
fn a_user_who_may_only_read_reads_everything() {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::CommandExt;
    const DIRECTORY: &str = "ENGINES_TEST_READ_ONLY_DIRECTORY";
    if let Ok(directory) = std::env::var(DIRECTORY) {
        let directory = Path::new(&directory);
        fs::write(directory.join("new"), "").unwrap_err();
        let reader = ReadOnlyBitcask::open(directory).unwrap();
        assert_eq!(reader.stats().unwrap().live_records, Some(contents(&reader).len() as u64));
        assert!(!reader.refresh().unwrap());
        println!("{} records", contents(&reader).len());
        return;
    }
    let golden = Golden::copy("bitcask", "rolled");
    if fs::metadata(golden.directory()).unwrap().uid() != 0 {
        return;
    }
    set_mode(golden.directory(), 0o755);
    let elsewhere = tempfile::tempdir().unwrap();
    set_mode(elsewhere.path(), 0o755);
    let program = elsewhere.path().join("test-program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    set_mode(&program, 0o755);
    let name = "bitcask_read_only::quiet::a_user_who_may_only_read_reads_everything";
    let before = directory_fingerprint(golden.directory());
    let output = std::process::Command::new(&program)
        .args(["--exact", name, "--nocapture"])
        .current_dir("/")
        .env(DIRECTORY, golden.directory())
        .uid(65_534)
        .gid(65_534)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told} {}", String::from_utf8_lossy(&output.stderr));
    assert!(told.contains(&format!("{} records", golden.expected.len())), "{told}");
    assert!(directory_fingerprint(golden.directory()) == before);
}

#[test]
fn every_write_is_refused() {
    let golden = Golden::copy("bitcask", "basic");
    let before = directory_fingerprint(golden.directory());
    let reader = ReadOnlyBitcask::open(golden.directory()).unwrap();
    let mut batch = Batch::new();
    batch.put(b"key", b"value").unwrap();
    for result in [
        reader.put(b"key", b"value"),
        reader.delete(b"key"),
        reader.write(&batch),
        reader.write(&Batch::new()),
        reader.compact(),
    ] {
        assert!(matches!(result, Err(Error::ReadOnly { .. })), "{result:?}");
    }
    reader.sync().unwrap();
    reader.quiesce().unwrap();
    Box::new(reader).close().unwrap();
    assert!(directory_fingerprint(golden.directory()) == before);
}

#[test]
fn where_no_database_is_there_is_none_to_read() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    for path in [missing.as_path(), directory.path()] {
        let error = ReadOnlyBitcask::open(path).unwrap_err();
        assert!(matches!(error, Error::NotADatabase { .. }), "{error}");
    }
    assert!(!missing.exists());
    let other = tempfile::tempdir().unwrap();
    drop(engines::lsm::Lsm::open(other.path(), engines::lsm::Options::default()).unwrap());
    let before = directory_fingerprint(other.path());
    let error = ReadOnlyBitcask::open(other.path()).unwrap_err();
    assert!(matches!(error, Error::ForeignDirectory { .. }), "{error}");
    assert!(directory_fingerprint(other.path()) == before);
    // A writer that wrote nothing yet.
    let store = Bitcask::open(directory.path(), Options::default()).unwrap();
    let reader = ReadOnlyBitcask::open(directory.path()).unwrap();
    check(&reader, &Model::new());
    store.put(b"key", b"value").unwrap();
    assert!(reader.refresh().unwrap());
    check(&reader, &Model::from([(b"key".to_vec(), b"value".to_vec())]));
}
