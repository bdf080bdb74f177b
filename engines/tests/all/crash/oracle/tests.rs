//! The judge against histories small enough to tell the verdict by hand.

use std::path::Path;

use engines::fs::sim::{Call, SimFs};
use engines::fs::{Create, FileSystem};

use super::*;

const KEEP: CrashModel = CrashModel::KeepAll;
const DROP: CrashModel = CrashModel::DropUnsynced;

/// Operation `n` is issued at mark 10·n and acknowledged at 10·n + 5.
fn history(durability: Durability, operations: &[&[(&str, Option<&str>)]]) -> History {
    let operations = operations.iter().enumerate().map(|(number, changes)| Operation {
        changes: changes
            .iter()
            .map(|(key, value)| ((*key).into(), value.map(|value| value.as_bytes().to_vec())))
            .collect(),
        phase: 0,
        issued: 10 * number,
        acked: Some(10 * number + 5),
        log: None,
    });
    let streams = vec![operations.collect()];
    History { durability, atomic_batch: true, streams, barriers: Vec::new() }
}

fn state(records: &[(&str, &str)]) -> State {
    records.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
}

fn verdict(history: &History, records: &[(&str, &str)], cut: usize, law: Law) -> bool {
    let model = if law == Law::Prefix { KEEP } else { DROP };
    Oracle::new(history.clone()).check(&state(records), cut, model, law).is_ok()
}

fn three() -> [&'static [(&'static str, Option<&'static str>)]; 3] {
    [&[("a", Some("1"))], &[("b", Some("2"))], &[("a", None)]]
}

#[test]
fn acknowledged_operations_must_be_there_and_those_not_issued_must_not() {
    let history = history(Durability::Process, &three());
    let outcomes: [&[(&str, &str)]; 4] =
        [&[], &[("a", "1")], &[("a", "1"), ("b", "2")], &[("b", "2")]];
    let allowed = |cut| outcomes.map(|records| verdict(&history, records, cut, Law::Prefix));
    assert_eq!(allowed(0), [true, false, false, false]);
    assert_eq!(allowed(1), [true, true, false, false]);
    assert_eq!(allowed(5), [false, true, false, false]);
    assert_eq!(allowed(12), [false, true, true, false]);
    assert_eq!(allowed(24), [false, false, true, true]);
    assert_eq!(allowed(25), [false, false, false, true]);
}

#[test]
fn a_barrier_covers_what_was_acknowledged_before_it_was_issued() {
    let mut history = history(Durability::Process, &three());
    let check = |history: &History, records: &[(&str, &str)], cut| {
        Oracle::new(history.clone()).check(&state(records), cut, DROP, Law::Prefix).is_ok()
    };
    assert!(check(&history, &[], 100));
    history.barriers.push(Barrier { level: Durability::Process, since: 0, issued: 7, acked: 9 });
    assert!(check(&history, &[], 100), "only against the death of the process");
    history.barriers.push(Barrier { level: Durability::Power, since: 0, issued: 7, acked: 9 });
    assert!(check(&history, &[], 8));
    assert!(!check(&history, &[], 9));
    assert!(check(&history, &[("a", "1")], 9));
    assert!(!check(&history, &[("b", "2")], 12), "a hole");
    assert!(check(&history, &[("b", "2")], 24));
    history.barriers[1].since = 1;
    assert!(check(&history, &[], 100));
}

#[test]
fn the_law_of_each_key_forgives_holes_but_not_resurrection_nor_foreign_bytes() {
    let mut history = history(Durability::Process, &three());
    assert!(!verdict(&history, &[("b", "2")], 15, Law::Prefix));
    assert!(verdict(&history, &[("b", "2")], 15, Law::EachKey), "in another log perhaps");
    assert!(!verdict(&history, &[("b", "1")], 15, Law::EachKey));
    assert!(!verdict(&history, &[("b", "3")], 15, Law::EachKey));
    assert!(!verdict(&history, &[("c", "1")], 15, Law::EachKey));
    history.barriers.push(Barrier { level: Durability::Power, since: 0, issued: 30, acked: 31 });
    assert!(verdict(&history, &[("b", "2")], 31, Law::EachKey));
    assert!(!verdict(&history, &[("b", "2"), ("a", "1")], 31, Law::EachKey), "deleted");
    assert!(!verdict(&history, &[], 31, Law::EachKey), "lost");
}

#[test]
fn half_a_batch_is_noticed_unless_batches_are_not_atomic() {
    let batch: [&[(&str, Option<&str>)]; 2] =
        [&[("a", Some("0"))], &[("a", None), ("b", Some("1")), ("c", Some("2")), ("c", Some("3"))]];
    let mut history = history(Durability::Buffered, &batch);
    let halves: [&[(&str, &str)]; 3] =
        [&[("a", "0"), ("b", "1")], &[("b", "1")], &[("b", "1"), ("c", "2")]];
    for half in halves {
        for law in [Law::Prefix, Law::EachKey] {
            assert!(!verdict(&history, half, 15, law), "{half:?} {law:?}");
        }
    }
    for law in [Law::Prefix, Law::EachKey] {
        assert!(verdict(&history, &[("b", "1"), ("c", "3")], 15, law));
        assert!(verdict(&history, &[("a", "0")], 15, law));
    }
    history.atomic_batch = false;
    assert!(!verdict(&history, halves[0], 15, Law::Prefix), "a hole within the batch");
    assert!(verdict(&history, halves[1], 15, Law::Prefix));
    assert!(verdict(&history, halves[2], 15, Law::Prefix));
}

#[test]
fn a_failed_operation_may_have_happened_until_a_later_one_of_its_key_is_guaranteed() {
    let operations: [&[(&str, Option<&str>)]; 3] =
        [&[("a", Some("1"))], &[("a", Some("2"))], &[("a", Some("3"))]];
    let mut history = history(Durability::Power, &operations);
    history.streams[0][1].acked = None;
    assert!(verdict(&history, &[("a", "1")], 20, Law::EachKey));
    assert!(verdict(&history, &[("a", "2")], 20, Law::EachKey));
    assert!(!verdict(&history, &[], 20, Law::EachKey));
    assert!(!verdict(&history, &[("a", "2")], 25, Law::EachKey));
    assert!(verdict(&history, &[("a", "3")], 25, Law::EachKey));
}

#[test]
fn a_newer_write_than_a_lost_one_is_forgiven_in_another_log_only() {
    let numbers: Vec<FileNumber> = {
        let fs = SimFs::new();
        for name in ["/a", "/b"] {
            fs.create(Path::new(name), Create::New).unwrap();
        }
        let number = |call: &Call| match call {
            Call::Create { file, .. } => *file,
            _ => unreachable!("only files were created"),
        };
        fs.trace().calls().iter().map(number).collect()
    };
    let mut history = history(Durability::Process, &three());
    let check =
        |history: &History, records: &[(&str, &str)]| verdict(history, records, 24, Law::EachKey);
    assert!(check(&history, &[("b", "2")]), "no log is known");
    for operation in &mut history.streams[0] {
        operation.log = Some(numbers[0]);
    }
    assert!(check(&history, &[]));
    assert!(check(&history, &[("a", "1"), ("b", "2")]));
    assert!(check(&history, &[("b", "2")]), "a may have been deleted");
    assert!(!verdict(&history, &[("b", "2")], 15, Law::EachKey), "not yet: a is lost");
    history.streams[0][1].log = Some(numbers[1]);
    assert!(verdict(&history, &[("b", "2")], 15, Law::EachKey));
}
