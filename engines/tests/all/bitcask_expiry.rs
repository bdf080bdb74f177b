//! Expiry, and merges that time makes due.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engines::bitcask::{
    Bitcask, Clock as _, Expiry, MergePolicy, MergeWindow, Options, ReadOnlyBitcask,
};
use engines::fs::FileSystem;
use engines::fs::sim::SimFs;
use engines::{Direction, Engine, KeyRange};

use crate::clock::SetClock;
use crate::golden::contents;

const AFTER: u64 = 1_000;
const GRACE: u64 = 100;

fn options(clock: &Arc<SetClock>) -> Options {
    let mut options = Options {
        clock: clock.clone(),
        expiry: Some(Expiry {
            after: Duration::from_secs(AFTER),
            grace: Duration::from_secs(GRACE),
        }),
        ..Options::default()
    };
    options.merge.enabled = false;
    options
}

fn open(disk: &SimFs, options: &Options) -> Bitcask {
    Bitcask::open_in(Arc::new(disk.clone()), Path::new("/data"), options.clone()).unwrap()
}

fn close(store: Bitcask) {
    Box::new(store).close().unwrap();
}

/// The keys that are there, found in every way there is.
fn keys(store: &impl Engine) -> Vec<String> {
    let mut found = Vec::new();
    for direction in [Direction::Forward, Direction::Backward] {
        let mut keys = Vec::new();
        let mut visit = |key: &[u8], _: &[u8]| {
            keys.push(String::from_utf8(key.to_vec()).unwrap());
            std::ops::ControlFlow::Continue(())
        };
        store.scan(KeyRange::all(), direction, &mut visit).unwrap();
        keys.sort();
        found.push(keys);
    }
    let [forward, backward] = <[_; 2]>::try_from(found).unwrap();
    assert_eq!(forward, backward);
    let folded: Vec<_> = contents(store).into_keys().collect();
    assert!(forward.iter().map(|key| key.as_bytes()).eq(folded.iter().map(Vec::as_slice)));
    for key in ["a", "b", "c"] {
        let there = forward.iter().any(|found| found == key);
        assert_eq!(store.get_vec(key.as_bytes()).unwrap().is_some(), there, "{key}");
    }
    forward
}

fn live_records(store: &Bitcask) -> u64 {
    store.stats().unwrap().live_records.unwrap()
}

fn detail(store: &Bitcask, name: &str) -> u64 {
    let details = store.stats().unwrap().details;
    details.iter().find(|(found, _)| found == name).unwrap().1.parse().unwrap()
}

#[test]
fn a_record_is_hidden_from_the_second_after_its_time_is_over() {
    let (disk, clock) = (SimFs::new(), SetClock::at(10_000));
    let store = open(&disk, &options(&clock));
    store.put(b"a", b"1").unwrap();
    clock.run(1);
    store.put(b"b", b"2").unwrap();
    clock.run(AFTER - 1);
    assert_eq!(keys(&store), ["a", "b"]);
    clock.run(1);
    assert_eq!(keys(&store), ["b"]);
    clock.run(1);
    assert_eq!(keys(&store), [""; 0]);
    // They are counted until a merge drops them, and can be overwritten as others can.
    assert_eq!(live_records(&store), 2);
    store.put(b"a", b"3").unwrap();
    assert_eq!(keys(&store), ["a"]);
    close(store);
    // Whoever opens the directory decides.
    let forever = Options { expiry: None, ..options(&clock) };
    assert_eq!(keys(&open(&disk, &forever)), ["a", "b"]);
}

#[test]
fn a_reader_beside_the_writer_hides_what_has_expired_if_it_is_told_to() {
    let (disk, clock) = (SimFs::new(), SetClock::at(10_000));
    let store = open(&disk, &options(&clock));
    store.put(b"a", b"1").unwrap();
    clock.run(1);
    store.put(b"b", b"2").unwrap();
    let read_only =
        || ReadOnlyBitcask::open_in(Arc::new(disk.clone()), Path::new("/data")).unwrap();
    let expiry = options(&clock).expiry.unwrap();
    let (hiding, showing) = (read_only().hide_expired(expiry, clock.clone()), read_only());
    for (seconds, there) in [(AFTER - 1, &["a", "b"][..]), (1, &["b"]), (1, &[])] {
        clock.run(seconds);
        assert_eq!(keys(&hiding), there);
        assert_eq!(keys(&store), there);
        assert_eq!(keys(&showing), ["a", "b"]);
    }
}

#[test]
fn what_has_expired_can_be_deleted() {
    let (disk, clock) = (SimFs::new(), SetClock::at(10_000));
    let store = open(&disk, &options(&clock));
    store.put(b"a", b"1").unwrap();
    store.put(b"b", b"2").unwrap();
    clock.run(AFTER + 1);
    store.delete(b"a").unwrap();
    assert_eq!(live_records(&store), 1);
    close(store);
    let forever = Options { expiry: None, ..options(&clock) };
    assert_eq!(keys(&open(&disk, &forever)), ["b"]);
}

#[test]
fn a_merge_drops_what_has_expired_by_more_than_the_grace() {
    let (disk, clock) = (SimFs::new(), SetClock::at(10_000));
    let store = open(&disk, &options(&clock));
    store.put(b"a", b"1").unwrap();
    clock.run(1);
    store.put(b"b", b"2").unwrap();
    clock.run(AFTER + GRACE - 1);
    store.compact().unwrap();
    assert_eq!(live_records(&store), 2, "a second too early");
    clock.run(1);
    store.put(b"c", b"3").unwrap();
    store.compact().unwrap();
    assert_eq!((live_records(&store), detail(&store, "expired_records")), (2, 1));
    assert_eq!(store.stats().unwrap().dead_bytes, Some(0));
    assert_eq!(keys(&store), ["c"]);
    // A merge that finds nothing more to drop does nothing.
    let before = disk.mark();
    store.compact().unwrap();
    assert_eq!(disk.mark(), before);
    close(store);
    let forever = Options { expiry: None, ..options(&clock) };
    assert_eq!(keys(&open(&disk, &forever)), ["b", "c"]);
}

#[test]
fn everything_can_expire() {
    let (disk, clock) = (SimFs::new(), SetClock::at(10_000));
    let store = open(&disk, &options(&clock));
    for key in ["a", "b", "c"] {
        store.put(key.as_bytes(), &[7; 100]).unwrap();
    }
    clock.run(AFTER + GRACE + 1);
    store.compact().unwrap();
    let stats = store.stats().unwrap();
    assert_eq!(
        (stats.live_records, stats.disk_bytes, stats.file_count),
        (Some(0), Some(0), Some(0))
    );
    close(store);
    assert!(disk.list(Path::new("/data")).unwrap().is_empty());
}

#[test]
fn a_clock_that_jumps_forward_hides_and_drops_nothing() {
    let (disk, clock) = (SimFs::new(), SetClock::at(10_000));
    let store = open(&disk, &options(&clock));
    store.put(b"a", b"1").unwrap();
    store.put(b"b", b"2").unwrap();
    store.delete(b"b").unwrap();
    clock.set(10_000_000);
    assert_eq!(keys(&store), [""; 0]);
    store.compact().unwrap();
    assert_eq!((live_records(&store), store.stats().unwrap().dead_bytes), (1, Some(0)));
    clock.set(10_001);
    assert_eq!(keys(&store), ["a"]);
}

#[test]
fn a_clock_that_is_wrong_at_open_drops_nothing_before_somebody_has_written_by_it() {
    let (disk, clock) = (SimFs::new(), SetClock::at(10_000));
    let store = open(&disk, &options(&clock));
    store.put(b"a", b"1").unwrap();
    close(store);
    clock.set(10_000_000);
    let store = open(&disk, &options(&clock));
    assert_eq!(keys(&store), [""; 0]);
    store.compact().unwrap();
    assert_eq!(live_records(&store), 1);
    // It has run for long enough, whatever day it is.
    clock.run(AFTER + GRACE);
    store.compact().unwrap();
    assert_eq!(live_records(&store), 1);
    store.put(b"b", b"2").unwrap();
    clock.run(1);
    store.compact().unwrap();
    assert_eq!((live_records(&store), keys(&store)), (1, vec!["b".to_owned()]));
    close(store);

    // What was written by that clock bears it out at the next open.
    let (disk, clock) = (SimFs::new(), SetClock::at(10_000));
    let store = open(&disk, &options(&clock));
    store.put(b"a", b"1").unwrap();
    close(store);
    clock.set(10_000_000);
    let store = open(&disk, &options(&clock));
    store.put(b"b", b"2").unwrap();
    close(store);
    let store = open(&disk, &options(&clock));
    store.compact().unwrap();
    assert_eq!((live_records(&store), keys(&store)), (1, vec!["b".to_owned()]));
}

#[test]
fn a_clock_that_jumps_back_hides_nothing_and_drops_nothing() {
    let (disk, clock) = (SimFs::new(), SetClock::at(10_000_000));
    let store = open(&disk, &options(&clock));
    store.put(b"a", b"1").unwrap();
    store.put(b"b", b"2").unwrap();
    store.put(b"b", b"3").unwrap();
    clock.set(5);
    clock.run(AFTER + GRACE + 10);
    assert_eq!(keys(&store), ["a", "b"]);
    store.compact().unwrap();
    assert_eq!((live_records(&store), store.stats().unwrap().dead_bytes), (2, Some(0)));
    // What is written now has a time of its own.
    store.put(b"c", b"4").unwrap();
    clock.run(AFTER + 1);
    assert_eq!(keys(&store), ["a", "b"]);
}

/// A key whose older copy has the later timestamp, because the clock was set back in between, and
/// lies in a file that the merge does not take.
#[test]
fn nothing_older_comes_back_when_a_record_expires() {
    for delete_first in [false, true] {
        let (disk, clock) = (SimFs::new(), SetClock::at(5_000));
        let mut options = options(&clock);
        let store = open(&disk, &options);
        store.put(b"a", b"older").unwrap();
        store.put(b"stays", &[2; 900]).unwrap();
        close(store);
        clock.set(1_000);
        let store = open(&disk, &options);
        store.put(b"a", &[3; 500]).unwrap();
        store.put(b"b", &[4; 500]).unwrap();
        if delete_first {
            store.delete(b"b").unwrap();
        }
        close(store);

        clock.set(1_000 + AFTER + GRACE + 1);
        options.merge = MergePolicy {
            small_file_bytes: 0,
            trigger_dead_fraction: 0.5,
            threshold_dead_fraction: 0.5,
            ..MergePolicy::default()
        };
        let store = open(&disk, &options);
        store.quiesce().unwrap();
        assert_eq!(store.stats().unwrap().compaction_count, Some(1));
        assert!(disk.read(Path::new("/data/1.bitcask.data")).is_some(), "the first is not merged");
        assert!(disk.read(Path::new("/data/2.bitcask.data")).is_none(), "the second is");
        assert_eq!(live_records(&store), 1);
        store.delete(b"a").unwrap();
        close(store);
        options.merge.enabled = false;
        options.expiry = None;
        for _ in 0..2 {
            let store = open(&disk, &options);
            assert_eq!(keys(&store), ["stays"]);
            store.compact().unwrap();
            assert_eq!(store.stats().unwrap().dead_bytes, Some(0));
            close(store);
        }
    }
}

/// A tombstone that an older file needs stays, and is older than all that may be dropped.
#[test]
fn an_old_tombstone_is_no_reason_to_merge_again_and_again() {
    let (disk, clock) = (SimFs::new(), SetClock::at(5_000));
    let mut options = options(&clock);
    let store = open(&disk, &options);
    store.put(b"a", b"hidden by the tombstone").unwrap();
    store.put(b"b", &[2; 900]).unwrap();
    close(store);
    let store = open(&disk, &options);
    store.delete(b"a").unwrap();
    clock.run(10 * (AFTER + GRACE));
    store.put(b"c", &[3; 900]).unwrap();
    store.put(b"b", &[2; 10]).unwrap();
    close(store);
    // So that the first file, which has expired by now, is not merged.
    let first = disk.read(Path::new("/data/1.bitcask.data")).unwrap();
    let damaged = [&first[..first.len() - 1], &[1]].concat();
    let file = disk.create(Path::new("/data/1.bitcask.data"), engines::fs::Create::Replace);
    file.unwrap().write_at(0, &damaged).unwrap();
    disk.remove(Path::new("/data/1.bitcask.hint")).unwrap();

    options.merge = MergePolicy { small_file_bytes: 0, ..MergePolicy::default() };
    for without_hints in [false, true] {
        if without_hints {
            disk.remove(Path::new("/data/2.bitcask.hint")).unwrap();
        }
        let store = open(&disk, &options);
        assert_eq!(store.damage().len(), 1);
        store.quiesce().unwrap();
        assert_eq!(store.stats().unwrap().compaction_count, Some(0));
        assert!(disk.read(Path::new("/data/2.bitcask.data")).is_some());
        close(store);
    }
}

/// Waits until the background thread has done something, with no hint that it should.
fn wait_for_merges(store: &Bitcask, count: u64) {
    let patience = std::time::Instant::now() + Duration::from_secs(120);
    while store.stats().unwrap().compaction_count.unwrap() < count {
        assert!(std::time::Instant::now() < patience, "no merge came: {:?}", store.stats());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// So that the thread looks at the clock every second: a part of 64 of it.
const MINUTE: Duration = Duration::from_secs(64);

#[test]
fn time_alone_makes_a_merge_of_what_has_expired() {
    let (disk, clock) = (SimFs::new(), SetClock::at(10_000));
    let mut options = options(&clock);
    options.expiry = Some(Expiry { after: MINUTE, grace: Duration::ZERO });
    options.merge.enabled = true;
    let store = open(&disk, &options);
    store.put(b"a", &[1; 100]).unwrap();
    store.quiesce().unwrap();
    assert_eq!(store.stats().unwrap().compaction_count, Some(0));
    // The file has been written to since long before, as far as anybody knows without reading it.
    clock.run(200);
    wait_for_merges(&store, 1);
    assert_eq!((live_records(&store), store.stats().unwrap().disk_bytes), (0, Some(0)));
}

#[test]
fn what_has_been_dead_for_too_long_leaves_the_disk_though_nothing_is_written() {
    let (disk, clock) = (SimFs::new(), SetClock::at(10_000));
    let mut options = Options { expiry: None, ..options(&clock) };
    options.merge.enabled = true;
    options.merge.small_file_bytes = 0;
    options.merge.max_dead_age = Some(MINUTE);
    let store = open(&disk, &options);
    store.put(b"stays", &[1; 10_000]).unwrap();
    store.put(b"secret", b"the bytes that must go").unwrap();
    store.delete(b"secret").unwrap();
    clock.run(63);
    store.quiesce().unwrap();
    let on_disk = || {
        disk.list(Path::new("/data")).unwrap().iter().any(|entry| {
            let content = disk.read(&entry.path).unwrap_or_default();
            content.windows(6).any(|bytes| bytes == b"secret")
        })
    };
    assert!(on_disk());
    clock.run(1);
    wait_for_merges(&store, 1);
    assert!(!on_disk());
    assert_eq!(store.stats().unwrap().dead_bytes, Some(0));
    // What lives in a file of some age is not copied again and again.
    clock.run(100_000);
    store.put(b"b", b"2").unwrap();
    store.quiesce().unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(store.stats().unwrap().compaction_count, Some(1));
}

#[test]
fn merges_wait_for_their_window() {
    // 3:00:00 on some day, in UTC.
    let (disk, clock) = (SimFs::new(), SetClock::at(86_400 * 20_000 + 3 * 3_600));
    let mut options = Options { expiry: None, ..options(&clock) };
    options.merge = MergePolicy {
        max_dead_age: Some(MINUTE),
        window: MergeWindow::Daily { first_hour: 4, last_hour: 4, utc_offset_minutes: 0 },
        ..MergePolicy::default()
    };
    let store = open(&disk, &options);
    store.put(b"a", b"1").unwrap();
    store.put(b"a", b"2").unwrap();
    clock.run(3_599);
    store.quiesce().unwrap();
    close(store);
    let store = open(&disk, &options);
    store.quiesce().unwrap();
    assert_eq!(store.stats().unwrap().compaction_count, Some(0));
    clock.run(10);
    wait_for_merges(&store, 1);
    assert_eq!(store.stats().unwrap().dead_bytes, Some(0));
}

/// At a byte a second the merge would take a month: whoever closes or compacts does not wait.
#[test]
fn a_merge_that_is_held_back_holds_back_neither_close_nor_compact() {
    for compact in [false, true] {
        let disk = SimFs::new();
        let mut options = Options { max_file_bytes: 3 << 20, ..Options::default() };
        options.merge.enabled = false;
        let store = open(&disk, &options);
        for round in 0..2 {
            for key in 0..5u8 {
                store.put(&[key], &vec![round; 500 << 10]).unwrap();
            }
        }
        close(store);
        options.merge.enabled = true;
        options.merge.bytes_per_second = Some(1);
        let store = open(&disk, &options);
        // The merge has begun when it has its lock.
        while disk.read(Path::new("/data/bitcask.merge.lock")).is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if compact {
            store.compact().unwrap();
            assert_eq!(store.stats().unwrap().dead_bytes, Some(0));
        }
        close(store);
        let store = open(&disk, &Options::default());
        for key in 0..5u8 {
            assert_eq!(store.get_vec(&[key]).unwrap().unwrap(), vec![1; 500 << 10]);
        }
    }
}

#[test]
fn options_that_cannot_be_meant_are_refused_before_anything_is_touched() {
    let disk = SimFs::new();
    let mut options = Options::default();
    options.merge.trigger_dead_fraction = 2.0;
    let error = Bitcask::open_in(Arc::new(disk.clone()), Path::new("/data"), options).unwrap_err();
    assert!(matches!(error, engines::Error::InvalidArgument(_)));
    assert!(error.to_string().contains("merge.trigger_dead_fraction"), "{error}");
    assert_eq!(disk.mark(), 0);
}

#[test]
fn the_clock_of_the_system_runs() {
    let clock = engines::bitcask::SystemClock::default();
    assert!(clock.unix_seconds() > 1_700_000_000);
    assert!(clock.running() <= clock.running());
}
