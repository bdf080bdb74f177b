//! Writes beside a merge of the Bitcask engine, and crashes after.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use engines::bitcask::{Bitcask, MergePolicy, Options};
use engines::fs::sim::{CrashModel, SimFs};
use engines::{Durability, Engine};

use super::beside::{Beside, Moment};

/// A tombstone is copied because its key is not there; but what deleted the key is a later one that
/// was not synced, and in between the key was there, synced. After a power failure the copy, which
/// lies behind that record, must not do what the lost deletion did: nothing is found of a write
/// without those before it.
#[test]
fn an_old_tombstone_stands_for_no_deletion_that_power_loss_took() {
    let options = Options {
        durability: Durability::Process,
        max_file_bytes: 1_000,
        merge: MergePolicy {
            trigger_dead_fraction: 0.5,
            threshold_dead_fraction: 0.5,
            trigger_dead_bytes: u64::MAX,
            threshold_dead_bytes: u64::MAX,
            small_file_bytes: 0,
            ..MergePolicy::default()
        },
        ..Options::default()
    };
    let disk = SimFs::new();
    let fs = Arc::new(Beside::new(&disk, Moment::OutputCreated));
    let store = Bitcask::open_in(fs.clone(), Path::new("/db"), options.clone()).unwrap();
    let store = Arc::new(store);
    // The first file stays, and hides a record of the key: the tombstone is needed.
    store.put(b"key", b"first").unwrap();
    store.put(b"filler", &[b'f'; 800]).unwrap();
    // The second one: something to copy, the tombstone, the key again, much that will be dead.
    store.put(b"live", &[b'l'; 150]).unwrap();
    store.delete(b"key").unwrap();
    store.put(b"key", b"second").unwrap();
    store.put(b"dead", &[b'd'; 650]).unwrap();

    let deleted_at = Arc::new(AtomicUsize::new(0));
    let (writing, mark, disk_at) = (store.clone(), deleted_at.clone(), disk.clone());
    let (synced, wait_for_sync) = channel();
    fs.then(move || {
        // The merge may begin as soon as the file is sealed.
        wait_for_sync.recv().unwrap();
        writing.put(b"before", b"the deletion").unwrap();
        writing.delete(b"key").unwrap();
        mark.store(disk_at.mark(), Ordering::SeqCst);
    });
    store.put(b"dead", &[b'3'; 800]).unwrap();
    store.sync().unwrap();
    synced.send(()).unwrap();
    // Another file is sealed: now at the latest.
    store.put(b"another", &[b'a'; 800]).unwrap();
    store.quiesce().unwrap();
    let deleted_at = deleted_at.load(Ordering::SeqCst);
    assert!(deleted_at > 0, "nothing was merged");
    for model in [CrashModel::KeepAll, CrashModel::DropUnsynced] {
        for cut in deleted_at..=disk.mark() {
            let fs = Arc::new(disk.trace().crash_at(cut, model));
            let left = Bitcask::open_in(fs, Path::new("/db"), options.clone()).unwrap();
            let (before, key) = (left.get_vec(b"before").unwrap(), left.get_vec(b"key").unwrap());
            let expected = if before.is_some() { None } else { Some(b"second".to_vec()) };
            assert_eq!(key, expected, "{model:?} cut {cut}, {before:?}");
        }
    }
}
