//! The replay of traces, from outside.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use harness::results::{Comparison, KindFigures, Phase, Run};
use harness::workload::Workload;
use harness::workload::dbbench::Bench;
use harness::workload::op::Kind;
use harness::workload::rng::SplitMix64;
use harness::workload::trace::{Format, Trace};
use tempfile::TempDir;

use crate::support::{
    compare, enginelab, json_of, not_found, operations, printed, refused, rows, sound,
};

/// Files of traces, and a place for the data beside them.
struct Place {
    directory: TempDir,
    data: PathBuf,
}

impl Place {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let data = directory.path().join("data");
        fs::create_dir(&data).unwrap();
        Self { directory, data }
    }

    /// A file, and its path.
    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.directory.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn replay(&self, files: &[&str], more: &[&str]) -> Comparison {
        sound(&self.data, &[&["trace"], files, more].concat())
    }

    fn is_clean(&self) -> bool {
        fs::read_dir(&self.data).unwrap().next().is_none()
    }
}

fn trace_of(comparison: &Comparison) -> &Trace {
    match &comparison.workload.workload {
        Workload::Trace(trace) => trace,
        other => panic!("another workload: {}", other.title()),
    }
}

/// What a trace must do to a store, found by a store of its own: the sizes by their keys.
#[derive(Default)]
struct Model {
    store: HashMap<String, u64>,
    kinds: BTreeMap<Kind, u64>,
    hits: u64,
    misses: u64,
    put_bytes: u64,
}

impl Model {
    fn request(&mut self, key: &str, word: &str, bytes: u64) {
        let there = self.store.contains_key(key);
        let (kind, reads, puts) = match word {
            "get" | "gets" => (Kind::Read, true, false),
            "set" => (Kind::Update, false, true),
            "add" if there => (Kind::Read, true, false),
            "add" => (Kind::Insert, false, true),
            "delete" => (Kind::Delete, false, false),
            _ if there => (Kind::ReadModifyWrite, true, true),
            _ => (Kind::Read, true, false),
        };
        *self.kinds.entry(kind).or_default() += 1;
        if reads {
            *(if there { &mut self.hits } else { &mut self.misses }) += 1;
        }
        if puts {
            self.store.insert(key.to_owned(), bytes);
            self.put_bytes += bytes;
        }
        if kind == Kind::Delete {
            self.store.remove(key);
        }
    }
}

const WORDS: [&str; 11] =
    ["get", "gets", "set", "add", "replace", "cas", "append", "prepend", "delete", "incr", "decr"];

/// A cache trace as Twitter published them, and what it must do.
fn synthetic(seed: u64, requests: u64) -> (String, Model) {
    let (mut lines, mut model, mut rng) = (String::new(), Model::default(), SplitMix64::new(seed));
    let mut second = 1_583_990_400u64;
    for _ in 0..requests {
        second += u64::from(rng.below(50) == 0);
        // Popular keys among many, of different lengths; some have a comma.
        let bits = rng.below(10);
        let number = rng.below(1 << bits);
        let key = format!("nz:{number:x}{}", "k,".repeat(number % 7));
        let word = WORDS[rng.below(WORDS.len())];
        let (bytes, client) = (rng.below(400) as u64, rng.below(30));
        let ttl = if word == "set" { 86_400 } else { 0 };
        let size = key.len();
        lines += &format!("{second},{key},{size},{bytes},{client},{word},{ttl}\n");
        model.request(&key, word, bytes);
    }
    (lines, model)
}

#[test]
fn a_cache_trace_does_what_its_requests_say_plain_and_compressed() {
    let place = Place::new();
    let (lines, model) = synthetic(42, 20_000);
    // The names say the wrong thing: the first bytes tell what a file is.
    let plain = place.file("plain.zst", &lines);
    let packed = place.file("packed.csv", zstd::encode_all(lines.as_bytes(), 3).unwrap());
    let engines = ["--engines", "bitcask,lsm,redb,memory"];
    let comparison = place.replay(&[&plain], &engines);
    for run in &comparison.runs {
        for kind in Kind::ALL {
            let expected = model.kinds.get(&kind).copied().unwrap_or(0);
            assert_eq!(operations(run, "load", kind), expected, "{kind} {}", run.engine);
        }
        assert_eq!(not_found(run), model.misses, "{}", run.engine);
        let verified = run.verified.unwrap();
        assert_eq!(verified.read_back, model.store.len() as u64);
        let live: u64 = model.store.iter().map(|(key, bytes)| key.len() as u64 + bytes).sum();
        assert_eq!(verified.live_bytes, live);
    }
    let trace = trace_of(&comparison);
    assert_eq!((trace.facts.hits, trace.facts.misses), (model.hits, model.misses));
    assert_eq!((trace.facts.put_bytes, trace.facts.format), (model.put_bytes, Format::Twitter));
    assert_eq!(trace.facts.requests.values().sum::<u64>(), 20_000);
    let word = |word: &str| lines.lines().filter(|l| l.rsplit(',').nth(1) == Some(word)).count();
    for (name, count) in &trace.facts.requests {
        assert_eq!(*count, word(name) as u64, "{name}");
    }
    assert_eq!(trace.facts.expiring, word("set") as u64);
    assert_eq!(trace.compiled, None, "a result names no temporary file");

    // A key's requests keep their order, however many threads share the trace, and at any pace.
    for more in [&["--threads", "2"][..], &["--threads", "5", "--rate", "2_000_000"]] {
        let shared = place.replay(&[&plain], &[&engines[..], more].concat());
        for (run, alone) in shared.runs.iter().zip(&comparison.runs) {
            assert_eq!(run.operations, alone.operations, "{more:?} {}", run.engine);
            assert_eq!(not_found(run), model.misses, "{more:?} {}", run.engine);
            assert_eq!(run.verified.unwrap().live_bytes, alone.verified.unwrap().live_bytes);
            assert!(run.phase("load").unwrap().traffic.as_ref().unwrap().determined);
        }
    }

    let threads = [&engines[..], &["--threads", "3", "--content", "random"]].concat();
    let compressed = place.replay(&[&packed], &threads);
    assert_eq!(trace_of(&compressed).checksum, trace.checksum);
    // In two files, it is the same trace.
    let half = lines.len() / 2 + lines[lines.len() / 2..].find('\n').unwrap() + 1;
    let (first, second) = lines.split_at(half);
    let (first, second) = (place.file("1", first), place.file("2", second));
    let halves = place.replay(&[&first, &second], &["--engines", "memory"]);
    assert_eq!(halves.runs[0].operations, comparison.runs[0].operations);
    assert!(place.is_clean());
}

/// An engine that cannot get is folded over, and tells records by their keys.
#[test]
fn a_trace_without_reads_runs_on_an_engine_that_cannot_get() {
    let place = Place::new();
    let lines: String =
        (0..500).map(|n| format!("5,key-{},6,{},1,set,0\n", n % 100, n % 7 * 10)).collect();
    let comparison = place.replay(&[&place.file("t", lines)], &["--engines", "raw-append"]);
    assert_eq!(comparison.runs[0].operations.as_ref().unwrap().count, 500);
}

#[test]
fn a_list_of_ycsb_is_replayed_in_key_order_too() {
    let place = Place::new();
    let mut lines = String::new();
    for number in 0..100 {
        let fields = format!("field0={}", "x".repeat(number));
        lines += &format!("INSERT usertable user{number:03} [ {fields} ]\n");
    }
    lines += "READ usertable user007 [ <all fields>]\nREAD usertable nobody [ <all fields>]\n\n";
    lines += "UPDATE usertable user007 [ field0=abc ]\nUPDATE usertable somebody [ field1=abcd ]\n";
    lines += "SCAN usertable user098 50 [ <all fields>]\nDELETE usertable user001\n";
    let file = place.file("ycsb.log", &lines);
    for run in place.replay(&[&file], &["--engines", "lsm,memory"]).runs {
        let kinds = &run.phase("load").unwrap().traffic.as_ref().unwrap().kinds;
        let counts: Vec<_> = kinds.iter().map(|(kind, of)| (*kind, of.operations)).collect();
        let expected = [
            (Kind::Insert, 101),
            (Kind::Delete, 1),
            (Kind::Read, 2),
            (Kind::Scan, 1),
            (Kind::UpdateField, 1),
        ];
        assert_eq!(counts, expected);
        // "somebody" comes before "user000".
        assert_eq!((kinds[&Kind::Scan].visited, not_found(&run)), (2, 1));
        // An update of a field leaves the size: "field0=" and as many bytes as the number says,
        // without user001; and what was given of somebody.
        let values: u64 = (0..100).filter(|&number| number != 1).map(|number| 7 + number).sum();
        let live = values + 99 * 7 + (8 + 11);
        assert_eq!(run.verified.unwrap().live_bytes, live);
    }
}

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

/// Six seconds are replayed 20 times as fast: the last request is due after a quarter of one.
#[test]
fn a_trace_is_replayed_at_its_speed() {
    let place = Place::new();
    let lines: String = [100, 100, 100, 103, 105, 105]
        .map(|second| format!("{second},k{second},4,10,1,set,0\n"))
        .concat();
    let file = place.file("t", lines);
    for threads in ["1", "2"] {
        let arguments = ["--engines", "memory", "--speed", "20", "--threads", threads];
        let comparison = place.replay(&[&file], &arguments);
        let run = comparison.runs[0].phase("load").unwrap();
        // 5 seconds and a half, the second of two requests of its second.
        assert!(run.seconds >= 5.5 / 20.0, "{}", run.seconds);
        let rate = run.traffic.as_ref().unwrap().rate.unwrap();
        assert!((rate - 6.0 / (5.5 / 20.0)).abs() < 1e-9, "{rate}");
        assert_eq!(trace_of(&comparison).facts.seconds, Some(5));
    }
    for (from, to) in [(0, 1_000_000_001u64), (7, u64::MAX), (u64::MAX - 5, u64::MAX)] {
        let line = |second| format!("{second},k,1,10,1,set,0\n");
        let far = place.file("far", line(from) + &line(to));
        let replay = ["trace", &far, "--engines", "memory", "--speed", "1000000"];
        if to - from <= 5 {
            sound(&place.data, &replay);
            continue;
        }
        let said = refused(compare(&place.data, &replay));
        let expected = "line 2: expected a timestamp at most 1,000,000,000 seconds after the first";
        assert!(said.contains(expected), "{said}");
    }
    let untimed = place.file("y", "READ usertable user1\n");
    let said = refused(compare(&place.data, &["trace", &untimed, "--speed", "2"]));
    assert!(said.contains("--speed: the trace tells no times"), "{said}");
}

#[test]
fn the_report_tells_requests_hits_and_sizes() {
    let place = Place::new();
    let (lines, model) = synthetic(5, 3_000);
    let file = place.file("t.csv", lines);
    let out = place.directory.path().join("r.json");
    let more = ["--engines", "memory,lsm", "--out", out.to_str().unwrap()];
    let printed = printed(&place.data, &[&["trace", &file], &more[..]].concat());
    let rows = rows(&printed);
    let reads = model.hits + model.misses;
    let share = 100.0 * model.hits as f64 / reads as f64;
    let grouped = |number: u64| match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", number / 1_000, number % 1_000),
    };
    let found = [reads, model.hits, model.misses].map(grouped).join(" ");
    for expected in [
        "Requests of the trace".to_owned(),
        "Reads that found their record".to_owned(),
        format!("memory {found} {share:.2}"),
        format!("lsm {found} {share:.2}"),
    ] {
        assert!(rows.contains(&expected), "{expected:?} is not in:\n{printed}");
    }
    assert!(printed.contains("Trace: 3,000 operations on "), "{printed}");
    let mut command = compare(&place.data, &["trace", &file, "--engines", "memory,lsm"]);
    command.arg("--resume").arg(&out);
    let resumed = json_of(command);
    assert_eq!(resumed.runs.len(), 2);
    let other = place.file("u.csv", synthetic(6, 3_000).0);
    let mut command = compare(&place.data, &["trace", &other, "--engines", "memory,lsm"]);
    command.arg("--resume").arg(&out);
    assert!(refused(command).contains("cannot resume"));
    let path = out.to_str().unwrap();
    enginelab(&["diff", path, path]).assert().success();
}

#[test]
fn a_line_that_is_no_request_is_told_or_skipped() {
    let place = Place::new();
    let lines = "1,a,1,5,1,set,0\n\n2,b,1,5,1,fetch,0\n3,c,1,5,1,get,0\n2,d,1,5,1,set,0\n";
    let file = place.file("t", lines);
    let said = refused(compare(&place.data, &["trace", &file]));
    assert!(said.contains("t, line 3: expected one of get, gets, set"), "{said}");
    assert!(said.contains("found \"2,b,1,5,1,fetch,0\""), "{said}");
    let skipping = ["--skip-bad-lines", "--engines", "memory"];
    let comparison = place.replay(&[&file], &skipping);
    assert_eq!(trace_of(&comparison).facts.skipped_lines, 2);
    assert_eq!(comparison.runs[0].operations.as_ref().unwrap().count, 2);
    let backward = place.file("b", "7,a,1,5,1,set,0\n6,a,1,5,1,set,0\n");
    let said = refused(compare(&place.data, &["trace", &backward]));
    assert!(said.contains("b, line 2: expected a timestamp from 7 on"), "{said}");
    let ycsb = place.file("y", "READ usertable k\n");
    let said = refused(compare(&place.data, &["trace", &ycsb, &backward]));
    assert!(said.contains("b, line 1: expected a request without a time"), "{said}");
    let long = place.file("l", vec![b'x'; 2 << 20]);
    assert!(refused(compare(&place.data, &["trace", &long])).contains("line 1: expected lines of"));
    let empty = place.file("e", "\n");
    assert!(refused(compare(&place.data, &["trace", &empty])).contains("there is no request"));
    let (lines, _) = synthetic(1, 1_000);
    let mut packed = zstd::encode_all(lines.as_bytes(), 3).unwrap();
    packed.truncate(packed.len() / 2);
    let packed = place.file("cut", packed);
    assert!(refused(compare(&place.data, &["trace", &packed])).contains("cannot read"));
    assert!(refused(compare(&place.data, &["trace", "nowhere"])).contains("cannot read nowhere"));
    let folder = refused(compare(&place.data, &["trace", text(&place.data)]));
    assert!(folder.contains("data is not an ordinary file"), "{folder}");
    assert!(place.is_clean());
}

/// The longest line is one of 1 MiB; what is longer is skipped up to its end, as one line.
#[test]
fn a_line_that_is_too_long_is_skipped_as_any_other() {
    let place = Place::new();
    let line = |length: usize| {
        let (before, after) = ("READ usertable k [", "]");
        format!("{before}{}{after}", "x".repeat(length - before.len() - after.len()))
    };
    const MOST: usize = 1 << 20;
    let good = "READ usertable k";
    for (lines, requests, skipped) in [
        (format!("{good}\n{}\n{good}\n", line(MOST)), 3, 0),
        (format!("{good}\n{}\n{good}\n", line(MOST + 1)), 2, 1),
        (format!("{good}\n{}\n{good}\n", line(3 * MOST)), 2, 1),
        (format!("{good}\n{}", line(3 * MOST)), 1, 1),
        (format!("{}\n{good}", line(MOST + 1)), 1, 1),
        (format!("{}\n{}\n{good}", line(MOST + 1), line(2 * MOST)), 1, 2),
    ] {
        for packed in [false, true] {
            let bytes = if packed {
                zstd::encode_all(lines.as_bytes(), 1).unwrap()
            } else {
                lines.clone().into()
            };
            let file = place.file("lines", bytes);
            let comparison = place.replay(&[&file], &["--skip-bad-lines", "--engines", "memory"]);
            let facts = &trace_of(&comparison).facts;
            assert_eq!((facts.requests["READ"], facts.skipped_lines), (requests, skipped));
            if skipped > 0 {
                let number = 1 + u64::from(lines.starts_with(&format!("{good}\n")));
                let said = refused(compare(&place.data, &["trace", &file]));
                let expected = format!("line {number}: expected lines of at most 1 MiB");
                assert!(said.contains(&expected), "{said}");
            }
        }
    }
}

/// It is told at the line where it is passed, and no way to skip lines leads around it.
#[test]
fn a_trace_of_too_many_seconds_is_refused_at_its_line() {
    const MOST: u64 = 2 << 20;
    let place = Place::new();
    let lines: String = (0..=MOST).map(|second| format!("{second},k,1,1,1,get,0\n")).collect();
    let file = place.file("long", lines);
    for more in [&[][..], &["--skip-bad-lines"]] {
        let said = refused(compare(&place.data, &[&["trace", &file], more].concat()));
        let expected = format!("long, line {}: expected at most 2,097,152 different", MOST + 1);
        assert!(said.contains(&expected), "{said}");
    }
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

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
