//! What the requests of a trace do to an engine, and what is told of them.

use harness::workload::op::Kind;
use harness::workload::trace::Format;

use super::synthetic::synthetic;
use super::{Place, trace_of};
use crate::support::{
    compare, enginelab, json_of, not_found, operations, printed, refused, rows, sound,
};

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
