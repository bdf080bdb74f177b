//! Workloads that were recorded, and compiled traces.

use std::fs;

use harness::results::{KindFigures, Phase, Run};
use harness::workload::dbbench::Bench;
use harness::workload::rng::SplitMix64;

use super::synthetic::synthetic;
use super::{Place, text, trace_of};
use crate::support::{compare, enginelab, refused, sound};

/// What was recorded of a workload is what the workload does: the hash over all operations with
/// their keys and values is the same, and so is what is found and what is left in the end.
fn check_recorded(place: &Place, workload: &[&str], threads: &str) {
    let recorded = place.directory.path().join("recorded");
    let recorded = recorded.to_str().unwrap();
    let engines = ["--engines", "memory,bitcask,raw-append", "--seed", "7"];
    let original = sound(&place.data, &[workload, &engines].concat());
    let record = [&["record"], workload, &["--seed", "7", "--out", recorded]].concat();
    enginelab(&record).assert().success();
    let engines = ["--engines", "memory,bitcask,raw-append", "--threads", threads];
    let replayed = place.replay(&[recorded], &engines);
    assert_eq!(original.runs.len(), replayed.runs.len());
    for then in &original.runs {
        let now = replayed.runs_of(&then.engine).next().unwrap();
        assert_eq!(now.operations, then.operations, "{workload:?}");
        assert_eq!(now.left_out, then.left_out, "{workload:?}");
        assert_eq!(now.not_applicable, then.not_applicable, "{workload:?}");
        let verified =
            |run: &Run| run.verified.map(|verified| (verified.read_back, verified.live_bytes));
        assert_eq!(verified(now), verified(then), "{workload:?}");
        let phases = |run: &Run| -> Vec<(String, Option<(u64, String)>)> {
            let done = |phase: &Phase| {
                phase.traffic.as_ref().map(|traffic| (traffic.operations, traffic.hash.clone()))
            };
            run.phases.iter().map(|phase| (phase.name.clone(), done(phase))).collect()
        };
        assert_eq!(phases(now), phases(then), "{workload:?}");
        let kinds = |run: &Run| -> Vec<_> {
            let traffic = run.phases.iter().filter_map(|phase| phase.traffic.clone());
            let kinds = traffic.flat_map(|traffic| traffic.kinds);
            // Threads have parts of a batch, each of which is a call of its own.
            let calls = |figures: &KindFigures| (threads == "1").then_some(figures.calls);
            kinds.map(|(kind, f)| (kind, calls(&f), f.operations, f.not_found)).collect()
        };
        assert_eq!(kinds(now), kinds(then), "{workload:?}");
    }
    let of_trace = trace_of(&replayed).facts.recorded.as_ref().unwrap();
    assert_eq!(*of_trace.workload, original.workload.workload);
}

#[test]
fn a_recorded_workload_is_replayed_as_it_was() {
    let place = Place::new();
    let example = enginelab(&["compare", "custom", "--example"]).output().unwrap().stdout;
    let example = String::from_utf8(example).unwrap().replace("threads = 2", "threads = 1");
    let example = place.file("w.toml", example);
    let mixed = place.file(
        "mixed.toml",
        "keys = { count = 500, bytes = 12 }\nvalues = { bytes = 50 }\n\
         [[phases]]\nname = 'load'\noperations = 300\nmix = { insert = 1 }\nbatch = 7\n\
         [[phases]]\nname = 'mixed'\noperations = 5000\nbatch = 7\n\
         mix = { read = 0.4, delete = 0.2, update = 0.2, read_modify_write = 0.2 }\n\
         [[phases]]\nname = 'sync'\nkind = 'sync'\n\
         [[phases]]\nname = 'again'\nkind = 'reopen'\n",
    );
    let workloads: [(&[&str], &str); 7] = [
        (
            &[
                "insert",
                "--items",
                "500",
                "--overwrites",
                "0.3",
                "--deletes",
                "0.2",
                "--batch",
                "7",
            ],
            "1",
        ),
        (&["ycsb", "--core", "d", "--records", "300", "--operations", "2000"], "1"),
        (&["settee", "--singles", "100", "--bulk", "250", "--long", "500"], "1"),
        (&["vpork", "--iterations", "900", "--data-size", "300", "--threads", "1"], "1"),
        (&["riak", "--items", "100", "--ring-size", "8"], "1"),
        (&["custom", &example], "1"),
        (&["custom", &mixed], "1"),
    ];
    for (workload, threads) in workloads {
        check_recorded(&place, workload, threads);
    }
    check_recorded(&place, &["custom", &mixed], "3");
}

/// Every benchmark of db_bench but those with a thread beside, whose part nobody knows before.
#[test]
fn every_benchmark_of_db_bench_is_replayed_as_it_was() {
    let place = Place::new();
    let few = ["--num", "300"];
    check_recorded(&place, &[&["dbbench"], &few[..]].concat(), "1");
    for (bench, name) in Bench::ALL {
        let benchmarks = format!("fillrandom,{name}");
        let dbbench = [&["dbbench", "--benchmarks", &benchmarks], &few[..]].concat();
        if name.contains("while") {
            let out = place.directory.path().join("beside");
            let record = [&["record"], &dbbench[..], &["--out", text(&out)]].concat();
            let said = refused(enginelab(&record));
            let expected = format!("phase \"{bench}\" has a thread beside the others");
            assert!(said.contains(&expected) && !out.exists(), "{said}");
        } else {
            check_recorded(&place, &dbbench, "1");
        }
    }
    check_recorded(&place, &[&["dbbench", "--benchmarks", "fillsync"], &few[..]].concat(), "2");
    let long =
        ["dbbench", "--benchmarks", "fillseq,readseq", "--num", "5", "--reads", "5000000000"];
    let out = place.directory.path().join("long");
    let said = refused(enginelab(&[&["record"], &long[..], &["--out", text(&out)]].concat()));
    assert!(said.contains("a scan of 5,000,000,000 records"), "{said}");
}

/// A trace that was compiled once is replayed without that, and is the same.
#[test]
fn a_compiled_trace_is_the_trace() {
    let place = Place::new();
    let (lines, _) = synthetic(3, 2_000);
    let file = place.file("t.csv", lines);
    let compiled = place.directory.path().join("compiled");
    let compiled = compiled.to_str().unwrap();
    enginelab(&["record", "trace", &file, "--out", compiled]).assert().success();
    let [direct, again] =
        [&file, compiled].map(|file| place.replay(&[file], &["--engines", "memory"]));
    assert_eq!(direct.runs[0].operations, again.runs[0].operations);
    assert_eq!(trace_of(&direct).checksum, trace_of(&again).checksum);
}

/// Every byte of a recorded trace is under its checksum, and no part of one is taken for a whole.
#[test]
fn a_damaged_recorded_trace_is_refused() {
    let place = Place::new();
    let path = place.directory.path().join("recorded");
    let recorded = path.to_str().unwrap();
    let insert = ["record", "insert", "--items", "20", "--out", recorded];
    enginelab(&insert).assert().success();
    let whole = fs::read(&path).unwrap();
    let (seed, mut rng) = (11, SplitMix64::new(11));
    let refuse = |bytes: &[u8], what: String| {
        let file = place.file("damaged", bytes);
        let said = refused(compare(&place.data, &["trace", &file]));
        assert!(said.contains("damaged"), "seed {seed}, {what}: {said}");
    };
    for _ in 0..20 {
        let (at, bit) = (rng.below(whole.len()), rng.below(8));
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << bit;
        refuse(&damaged, format!("byte {at} of {}, bit {bit}", whole.len()));
        let length = 8 + rng.below(whole.len() - 8);
        refuse(&whole[..length], format!("cut to {length} of {}", whole.len()));
    }
    let said = refused(compare(&place.data, &["trace", recorded, recorded]));
    assert!(said.contains("is replayed alone"), "{said}");
    let limited = place.file(
        "w.toml",
        "keys = { count = 9, bytes = 2 }\nvalues = { bytes = 1 }\n\
         [[phases]]\nname = 'a'\noperations = 9\nseconds = 5\nmix = { insert = 1 }\n",
    );
    let out = place.directory.path().join("out");
    let said = refused(enginelab(&["record", "custom", &limited, "--out", text(&out)]));
    assert!(said.contains("phase \"a\" ends when its time is up"), "{said}");
    assert!(!out.exists());
}
