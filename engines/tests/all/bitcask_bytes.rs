//! The format to the byte. The checksums were computed with another implementation (zlib).

use std::path::Path;
use std::sync::Arc;

use engines::Engine;
use engines::bitcask::{Bitcask, Options};
use engines::fs::sim::{Call, SimFs};
use engines::fs::{Create, FileSystem};

use crate::clock::SetClock;
use crate::golden::contents;

/// "key" -> "value", at second 0x01020304.
const PUT: &[u8] = b"\xab\xeb\x3d\xf4\x01\x02\x03\x04\x00\x03\x00\x00\x00\x05keyvalue";
/// The deletion of "key" by each version of tombstones; 1 and 2 name file 1.
const V0: &[u8] = b"Q\xc3H\xb6\x01\x02\x03\x04\x00\x03\x00\x00\x00\x11keybitcask_tombstone";
const V1: &[u8] =
    b"\x04\xc9\xe4\xf1\x01\x02\x03\x04\x00\x03\x00\x00\x00\x16keybitcask_tombstone1\x00\x00\x00\x01";
const V2: &[u8] =
    b"Ci\x9e!\x01\x02\x03\x04\x00\x03\x00\x00\x00\x16keybitcask_tombstone2\x00\x00\x00\x01";
/// The hints of `PUT` and `V1`, and the trailer.
const HINT: &[u8] = b"\
    \x01\x02\x03\x04\x00\x03\x00\x00\x00\x16\x00\x00\x00\x00\x00\x00\x00\x00key\
    \x01\x02\x03\x04\x00\x03\x00\x00\x00\x27\x80\x00\x00\x00\x00\x00\x00\x16key\
    \x00\x00\x00\x00\x00\x00\xf4\xf9V\xef\x7f\xff\xff\xff\xff\xff\xff\xff";

fn open(disk: &SimFs) -> Bitcask {
    let mut options = Options { clock: SetClock::at(0x0102_0304), ..Options::default() };
    options.merge.enabled = false;
    Bitcask::open_in(Arc::new(disk.clone()), Path::new("/"), options).unwrap()
}

#[test]
fn a_put_a_deletion_and_their_hints() {
    let disk = SimFs::new();
    let store = open(&disk);
    store.put(b"key", b"value").unwrap();
    store.delete(b"key").unwrap();
    Box::new(store).close().unwrap();
    assert_eq!(disk.read(Path::new("/1.bitcask.data")).unwrap(), [PUT, V1].concat());
    assert_eq!(disk.read(Path::new("/1.bitcask.hint")).unwrap(), HINT);
}

#[test]
fn every_version_of_tombstones_is_read_from_data_and_from_hints() {
    for tombstone in [V0, V1, V2] {
        let disk = SimFs::new();
        let write = |name: &str, bytes: &[u8]| {
            disk.create(Path::new(name), Create::Replace).unwrap().write_at(0, bytes).unwrap();
        };
        write("/1.bitcask.data", PUT);
        write("/2.bitcask.data", tombstone);
        // The first opening reads the data, and writes the hints that the second reads.
        for _ in 0..2 {
            let store = open(&disk);
            assert!(contents(&store).is_empty());
            assert_eq!(store.damage(), []);
            Box::new(store).close().unwrap();
            assert!(disk.read(Path::new("/2.bitcask.hint")).is_some());
        }
    }
}

/// While a merge runs, Basho's Bitcask finds `bitcask.merge.lock` as its own merge would leave it
/// before it has an output; so it does not begin one. A lock that a dead process left is removed.
#[test]
fn the_lock_of_a_merge() {
    let disk = SimFs::new();
    let path = Path::new("/bitcask.merge.lock");
    disk.create(path, Create::New).unwrap().write_at(0, b"4294967295 /x\n").unwrap();
    let store = open(&disk);
    assert_eq!(disk.read(path), None);
    let lock = disk.lock(path).unwrap().unwrap();
    store.put(b"key", b"value").unwrap();
    store.put(b"key", b"other").unwrap();
    let error = store.compact().unwrap_err();
    assert!(matches!(error, engines::Error::Locked { .. }), "{error}");
    assert!(error.to_string().contains("bitcask.merge.lock"), "{error}");
    drop(lock);
    store.compact().unwrap();
    assert_eq!(disk.read(path), None);
    let expected = format!("{} \n", std::process::id());
    let trace = disk.trace();
    let mut written = trace.calls().iter().filter_map(|call| match call {
        Call::Write { path: file, bytes, .. } if **file == *path => Some(bytes.to_vec()),
        _ => None,
    });
    assert_eq!(written.next_back().unwrap(), expected.as_bytes());
}
