//! Crashes while records expire: at every mutating call of workloads that put, delete, let time
//! pass, set the clock back and merge.
//!
//! Each key is put and deleted at level `power`, so what was acknowledged at a cut is known. After
//! the crash the directory is opened *without* expiry, which shows all that is left: no key may be
//! as before its last acknowledged change, and only what had expired by then may be missing.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engines::bitcask::{Bitcask, Expiry, MergePolicy, Options};
use engines::fs::sim::{CrashModel, SimFs};
use engines::{Durability, Engine};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::beside::{Beside, Moment};
use super::{Report, guarded, kind_of, scaled, seeds};
use crate::clock::SetClock;

const AFTER: u64 = 100;
const GRACE: u64 = 10;
const KEYS: u8 = 12;

/// A change of one key.
struct Change {
    issued: usize,
    acked: usize,
    /// The value, and the second in which it was written.
    value: Option<(Vec<u8>, u64)>,
}

#[derive(Default)]
struct History {
    keys: BTreeMap<Vec<u8>, Vec<Change>>,
    /// From which call on it was how late.
    times: Vec<(usize, u64)>,
}

impl History {
    /// Whether `key` may be found so after a crash at `cut`.
    fn allows(&self, key: &[u8], found: Option<&Vec<u8>>, cut: usize) -> bool {
        let changes = self.keys.get(key).map_or(&[][..], Vec::as_slice);
        let last = changes.iter().rposition(|change| change.acked <= cut);
        let begun = changes.partition_point(|change| change.issued < cut);
        // A change that made no call was acknowledged where it was issued.
        let possible = last.unwrap_or(0)..begun.max(last.map_or(0, |last| last + 1));
        let mut allowed = changes[possible].iter().map(|change| change.value.as_ref());
        match found {
            None => {
                last.is_none() || allowed.any(|value| value.is_none_or(|v| self.is_over(v.1, cut)))
            }
            Some(found) => allowed.flatten().any(|(value, _)| value == found),
        }
    }

    /// Whether what was written at `time` may have been dropped before the crash.
    fn is_over(&self, time: u64, cut: usize) -> bool {
        let latest = self.times.iter().filter(|(mark, _)| *mark < cut).map(|(_, time)| *time).max();
        latest.is_some_and(|latest| time + AFTER + GRACE < latest)
    }
}

fn options(clock: &Arc<SetClock>, small: bool) -> Options {
    Options {
        durability: Durability::Power,
        max_file_bytes: if small { 300 } else { 1_000 },
        clock: clock.clone(),
        expiry: Some(Expiry {
            after: Duration::from_secs(AFTER),
            grace: Duration::from_secs(GRACE),
        }),
        merge: MergePolicy {
            trigger_dead_fraction: 0.5,
            threshold_dead_fraction: 0.3,
            trigger_small_files: 4,
            small_file_bytes: 100,
            ..MergePolicy::default()
        },
        ..Options::default()
    }
}

fn open(disk: &SimFs, options: &Options) -> engines::Result<Bitcask> {
    Bitcask::open_in(Arc::new(disk.clone()), Path::new("/db"), options.clone())
}

/// Runs a workload; returns what was done, and how many records expired in merges.
fn record(disk: &SimFs, seed: u64) -> (History, u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut now, clock) = (10_000, SetClock::at(10_000));
    let options = options(&clock, seed % 2 == 1);
    let mut history = History { times: vec![(0, now)], ..History::default() };
    let mut expired = 0;
    for _ in 0..3 {
        let store = open(disk, &options).unwrap();
        for serial in 0..scaled(160) {
            let key = vec![b'a' + random.random_range(0..KEYS)];
            let issued = disk.mark();
            match random.random_range(0..100) {
                0..55 => {
                    let mut value = format!("{seed} {issued} {serial} ").into_bytes();
                    value.resize(value.len() + random.random_range(0..60), b'v');
                    store.put(&key, &value).unwrap();
                    let value = Some((value, now));
                    let change = Change { issued, acked: disk.mark(), value };
                    history.keys.entry(key).or_default().push(change);
                }
                55..75 => {
                    store.delete(&key).unwrap();
                    let change = Change { issued, acked: disk.mark(), value: None };
                    history.keys.entry(key).or_default().push(change);
                }
                75..93 => {
                    let seconds = random.random_range(1..60);
                    clock.run(seconds);
                    now += seconds;
                    history.times.push((disk.mark(), now));
                }
                93..95 => {
                    // Set back: what is written next has earlier timestamps.
                    now -= random.random_range(0..150);
                    clock.set(now);
                }
                95..98 => store.compact().unwrap(),
                _ => store.quiesce().unwrap(),
            }
        }
        let details = store.stats().unwrap().details;
        let (_, count) = details.iter().find(|(name, _)| name == "expired_records").unwrap();
        expired += count.parse::<u64>().unwrap();
        Box::new(store).close().unwrap();
    }
    (history, expired)
}

/// Opens a crashed disk without expiry and looks at every key.
fn check(disk: &SimFs, options: &Options, history: &History, cut: usize) -> Result<(), String> {
    guarded(|| {
        let store = open(disk, options).map_err(|error| format!("open: {error}"))?;
        for key in b'a'..b'a' + KEYS {
            let found = store.get_vec(&[key]).map_err(|error| format!("get: {error}"))?;
            if !history.allows(&[key], found.as_ref(), cut) {
                let found = found.map(|value| String::from_utf8_lossy(&value).into_owned());
                return Err(format!("key {} is {found:?}", char::from(key)));
            }
        }
        Box::new(store).close().map_err(|error| format!("close: {error}"))
    })
}

/// A merge has dropped a record, and its file is about to go. A deletion that is acknowledged now
/// must not depend on the file being gone after a crash.
#[test]
fn a_deletion_beside_a_merge_that_drops_the_record_survives_a_crash() {
    let (disk, clock) = (SimFs::new(), SetClock::at(10_000));
    let mut options = options(&clock, false);
    options.merge.enabled = false;
    let fs = Arc::new(Beside::new(&disk, Moment::DataRemoved));
    let store = Bitcask::open_in(fs.clone(), Path::new("/db"), options.clone()).unwrap();
    let store = Arc::new(store);
    store.put(b"a", b"value").unwrap();
    clock.run(AFTER + GRACE + 1);
    let (deleted_at, deleting) = (Arc::new(AtomicUsize::new(0)), store.clone());
    let (mark, disk_at) = (deleted_at.clone(), disk.clone());
    fs.then(move || {
        deleting.delete(b"a").unwrap();
        mark.store(disk_at.mark(), Ordering::SeqCst);
    });
    store.compact().unwrap();
    let deleted_at = deleted_at.load(Ordering::SeqCst);
    assert!(deleted_at > 0, "the file was removed");
    let forever = Options { expiry: None, ..options };
    for model in [CrashModel::KeepAll, CrashModel::DropUnsynced] {
        for cut in deleted_at..=disk.mark() {
            let left = open(&disk.trace().crash_at(cut, model), &forever).unwrap();
            assert_eq!(left.get_vec(b"a").unwrap(), None, "{model:?} cut {cut}");
        }
    }
}

#[test]
fn nothing_older_comes_back_and_nothing_is_lost_that_has_not_expired() {
    let (mut report, mut expired) = (Report::default(), 0);
    for seed in seeds(3) {
        let disk = SimFs::new();
        let (history, count) = record(&disk, seed);
        expired += count;
        let trace = disk.trace();
        report.calls.extend(trace.calls().iter().map(kind_of));
        let forever = Options { expiry: None, ..options(&SetClock::at(0), false) };
        for model in [
            CrashModel::KeepAll,
            CrashModel::DropUnsynced,
            CrashModel::TornWrite { seed },
            CrashModel::RandomSubset { seed },
        ] {
            for image in trace.images(model) {
                report.crashes += 1;
                if image.unchanged {
                    continue;
                }
                report.images += 1;
                if let Err(problem) = check(&image.disk, &forever, &history, image.cut) {
                    let call = image.cut.checked_sub(1).and_then(|at| trace.calls().get(at));
                    let place = format!("seed {seed} {model:?} cut {} ({call:?})", image.cut);
                    report.find(format!("{place}: {problem}"));
                }
            }
        }
    }
    // How many depends on when the background got to it.
    assert!(expired > 0);
    report.assert_reached(&["remove .bitcask.data", "rename .bitcask.data.tmp"]);
    report.assert_clean(&format!("bitcask, expiry, {expired} records expired in merges"));
}
