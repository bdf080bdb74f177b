//! Compactions that users ask for or hold back, and going on after a full disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use engines::fs::FileSystem;
use engines::fs::sim::{CrashModel, FaultKind, FaultPoint, FaultScope, SimFs};
use engines::lsm::{Lsm, Options};
use engines::{Durability, Engine, Error, KeyRange};

use crate::records::{Records, folded};

fn tiny() -> Options {
    Options {
        memtable_bytes: 4 << 10,
        memtable_count: 3,
        block_bytes: 512,
        table_bytes: 4 << 10,
        level0_tables: 3,
        level0_slowdown_tables: 6,
        level0_stop_tables: 8,
        level1_bytes: 16 << 10,
        level_ratio: 2,
        background_threads: 2,
        manifest_bytes: 1 << 10,
        ..Options::default()
    }
}

fn open(disk: &SimFs, options: &Options) -> Lsm {
    Lsm::open_in(Arc::new(disk.clone()), Path::new("/db"), options.clone()).unwrap()
}

fn tables(disk: &SimFs) -> BTreeSet<String> {
    let names = disk.list(Path::new("/db")).unwrap().into_iter();
    let names = names.filter_map(|entry| Some(entry.name()?.to_owned()));
    names.filter(|name| name.ends_with(".ldb")).collect()
}

fn detail(engine: &Lsm, name: &str) -> u64 {
    let details = engine.stats().unwrap().details;
    let found = details.into_iter().find(|(known, _)| known == name);
    found.unwrap().1.parse().unwrap()
}

#[test]
fn compacting_a_range_reclaims_what_it_held_and_leaves_the_tables_of_other_keys() {
    let disk = SimFs::new();
    let engine = open(&disk, &tiny());
    let pause = engine.pause_compactions().unwrap();
    let value =
        |at: u32| -> Vec<u8> { (0..200u32).map(|i| (i * at + i).to_le_bytes()[1]).collect() };
    for at in 0..400 {
        engine.put(format!("key {at:04}").as_bytes(), &value(at)).unwrap();
    }
    engine.compact().unwrap();
    let before = tables(&disk);
    let bytes_before: u64 =
        (0..7).map(|level| detail(&engine, &format!("level{level}_bytes"))).sum();
    for at in 100..200 {
        engine.delete(format!("key {at:04}").as_bytes()).unwrap();
    }
    engine.compact_range(KeyRange::between(b"key 0100", b"key 0200")).unwrap();
    engine.quiesce().unwrap();
    let kept = before.intersection(&tables(&disk)).count();
    // A quarter of the keys: the tables of the rest stay, but for the two at the borders.
    assert!(kept * 4 >= before.len() * 3 - 8, "{kept} of {} tables are kept", before.len());
    let bytes: u64 = (0..7).map(|level| detail(&engine, &format!("level{level}_bytes"))).sum();
    assert!(bytes * 10 < bytes_before * 8, "{bytes} of {bytes_before}");
    let found = folded(&engine);
    assert_eq!(found.len(), 300);
    assert!(found.keys().all(|key| !KeyRange::between(b"key 0100", b"key 0200").contains(key)));
    // Again, with nothing to reclaim: nothing is rewritten.
    let before = tables(&disk);
    engine.compact_range(KeyRange::from(b"key 0300")).unwrap();
    engine.compact_range(KeyRange::between(b"x", b"y")).unwrap();
    engine.compact_range(KeyRange::between(b"y", b"x")).unwrap();
    assert_eq!(tables(&disk), before);
    drop(pause);
}

#[test]
fn while_compactions_are_held_back_writes_go_on_past_the_bounds_of_level_zero() {
    let disk = SimFs::new();
    let engine = open(&disk, &tiny());
    let pause = engine.pause_compactions().unwrap();
    let mut model = Records::new();
    for at in 0..600u32 {
        let (key, value) = (format!("{}", at * 7919 % 601).into_bytes(), vec![b'v'; 150]);
        engine.put(&key, &value).unwrap();
        model.insert(key, value);
    }
    engine.quiesce().unwrap();
    assert!(detail(&engine, "level0_tables") > 8, "{}", detail(&engine, "level0_tables"));
    assert_eq!(engine.stats().unwrap().compaction_count, Some(0));
    drop(pause);
    engine.quiesce().unwrap();
    assert!(detail(&engine, "level0_tables") < 3);
    assert!(folded(&engine) == model);
}

#[test]
fn a_crash_anywhere_in_compacting_a_range_changes_no_record() {
    let disk = SimFs::new();
    let options = Options { durability: Durability::Power, ..tiny() };
    let engine = open(&disk, &options);
    let _pause = engine.pause_compactions().unwrap();
    let mut model = Records::new();
    for step in 0..500u32 {
        let key = format!("{:02}", step * 31 % 71).into_bytes();
        if step % 4 == 0 {
            engine.delete(&key).unwrap();
            model.remove(&key);
        } else {
            let value = format!("{step}|{}", "y".repeat((step * 53 % 300) as usize)).into_bytes();
            engine.put(&key, &value).unwrap();
            model.insert(key, value);
        }
        if step == 250 {
            engine.compact().unwrap();
        }
    }
    engine.flush().unwrap();
    let before = disk.mark();
    for range in [
        KeyRange::between(b"10", b"30"),
        KeyRange::from(b"25"),
        KeyRange::between(b"", b"26"),
        KeyRange::all(),
    ] {
        engine.compact_range(range).unwrap();
        assert!(folded(&engine) == model);
    }
    let after = disk.mark();
    let trace = disk.trace();
    // One compaction at least: a table, its name, the manifest, the inputs removed. How many there
    // are depends on how flushes fell together.
    assert!(after - before >= 6, "{}", after - before);
    for cut in before..=after {
        for crash in [
            CrashModel::KeepAll,
            CrashModel::DropUnsynced,
            CrashModel::TornWrite { seed: 1 },
            CrashModel::RandomSubset { seed: 2 },
        ] {
            let image = trace.crash_at(cut, crash);
            let engine = open(&image, &options);
            assert!(folded(&engine) == model, "{crash:?}, cut {cut} of {before}..{after}");
            engine.quiesce().unwrap();
            let known: u64 =
                (0..7).map(|level| detail(&engine, &format!("level{level}_tables"))).sum();
            assert_eq!(tables(&image).len() as u64, known, "{crash:?}, cut {cut}: leaked tables");
        }
    }
}

/// What may be found under a key: more than one thing after a write that failed.
#[derive(Default)]
struct Allowed(BTreeMap<Vec<u8>, Vec<Option<Vec<u8>>>>);

impl Allowed {
    fn note(&mut self, key: &[u8], value: Option<&[u8]>, is_done: bool) {
        let allowed = self.0.entry(key.to_vec()).or_insert_with(|| vec![None]);
        if is_done {
            allowed.clear();
        }
        allowed.push(value.map(<[u8]>::to_vec));
    }

    #[track_caller]
    fn check(&self, found: &Records, place: &str) {
        for (key, allowed) in &self.0 {
            let value = found.get(key).cloned();
            assert!(allowed.contains(&value), "{place}: {}", key.escape_ascii());
        }
        assert!(found.keys().all(|key| self.0.contains_key(key)), "{place}");
    }
}

/// Writes, flushes and compacts; each time something fails the disk gets room again, and the
/// engine is told to resume. Returns what may be found.
fn write_through_full_disks(disk: &SimFs, engine: &Lsm, allowed: &mut Allowed, place: &str) {
    for step in 0..160u32 {
        let key = format!("{:02}", step * 31 % 47).into_bytes();
        let value = format!("{step}|{}", "x".repeat((step * 97 % 400) as usize)).into_bytes();
        let value = (step % 5 > 0).then_some(value);
        let done = match &value {
            Some(value) => engine.put(&key, value),
            None => engine.delete(&key),
        };
        allowed.note(&key, value.as_deref(), done.is_ok());
        let done = done.and_then(|()| match step % 40 {
            15 => engine.sync(),
            25 => engine.flush(),
            35 => engine.compact_range(KeyRange::between(b"10", b"30")),
            39 => engine.compact(),
            _ => Ok(()),
        });
        if done.is_err() && disk.fault_count() > 0 {
            // When no new log could be made, nothing is suspended: the next write tries again.
            let again = engine.put(&key, b"again");
            allowed.note(&key, Some(b"again"), again.is_ok());
            let is_suspended = matches!(again, Err(Error::Suspended { .. }));
            let told = engine.stats().unwrap().details;
            let told = told.iter().any(|(name, why)| name == "background_error" && !why.is_empty());
            assert!(told || !is_suspended, "{place}");
            allowed.check(&folded(engine), place);
            if step % 2 == 0 && is_suspended {
                // Still full: nothing changes.
                assert!(engine.resume().is_err(), "{place}");
                allowed.check(&folded(engine), place);
            }
            disk.clear_faults();
            engine.resume().unwrap_or_else(|error| panic!("{place}: {error}"));
            engine.resume().unwrap();
        } else {
            done.unwrap_or_else(|error| panic!("{place}: {error}"));
        }
    }
}

/// Whether the disk was ever full.
fn fill_up_at(after: usize, durability: Durability, short_write: bool) -> bool {
    let place = format!("{durability}, full after {after} calls, short {short_write}");
    let disk = SimFs::new();
    let options = Options { durability, ..tiny() };
    let engine = open(&disk, &options);
    disk.fail_at(FaultPoint {
        after,
        scope: FaultScope::TakesSpace,
        kind: FaultKind::NoSpace,
        sticky: true,
        short_write,
    });
    let mut allowed = Allowed::default();
    write_through_full_disks(&disk, &engine, &mut allowed, &place);
    disk.clear_faults();
    let was_full = disk.fault_count() > 0;
    if was_full {
        // What struck while nobody looked.
        engine.resume().unwrap();
    }
    engine.sync().unwrap();
    engine.quiesce().unwrap();
    let found = folded(&engine);
    allowed.check(&found, &place);
    let in_levels: u64 = (0..7).map(|level| detail(&engine, &format!("level{level}_tables"))).sum();
    assert_eq!(tables(&disk).len() as u64, in_levels, "{place}: tables that nobody knows");
    let trace = disk.trace();
    Box::new(engine).close().unwrap();
    for disk in [disk, trace.crash_at(trace.len(), CrashModel::DropUnsynced)] {
        allowed.check(&folded(&open(&disk, &options)), &place);
    }
    was_full
}

#[test]
fn writing_goes_on_after_a_full_disk_and_nothing_acknowledged_is_lost() {
    for durability in Durability::ALL {
        for short_write in [false, true] {
            let mut after = 0;
            while fill_up_at(after, durability, short_write) {
                after += 1;
            }
            assert!(after > 30, "only {after} calls needed space");
        }
    }
}

#[test]
fn after_another_failure_only_reopening_helps() {
    let disk = SimFs::new();
    let engine = open(&disk, &tiny());
    engine.put(b"key", b"value").unwrap();
    disk.fail_at(FaultPoint {
        after: 0,
        scope: FaultScope::Sync,
        kind: FaultKind::NoSpace,
        sticky: false,
        short_write: false,
    });
    assert!(engine.sync().is_err());
    assert!(matches!(engine.put(b"a", b"").unwrap_err(), Error::Poisoned { .. }));
    assert!(matches!(engine.resume().unwrap_err(), Error::Poisoned { .. }));
    drop(engine);
    assert_eq!(open(&disk, &tiny()).get_vec(b"key").unwrap().as_deref(), Some(&b"value"[..]));
}

#[test]
fn a_rate_limit_changes_nothing_but_the_rate() {
    let disk = SimFs::new();
    // So slow that flushing all would take an hour: closing does not wait for that.
    let options = Options { background_bytes_per_second: 10, ..tiny() };
    let engine = open(&disk, &options);
    for at in 0..60u32 {
        engine.put(&at.to_be_bytes(), &[7; 100]).unwrap();
    }
    Box::new(engine).close().unwrap();
    let options = Options { background_bytes_per_second: 1 << 40, ..tiny() };
    let engine = open(&disk, &options);
    engine.compact().unwrap();
    assert_eq!(folded(&engine).len(), 60);
}
