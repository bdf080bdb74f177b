//! The workloads from outside, but for YCSB's, which have a file of their own.

use harness::workload::op::Kind;
use tempfile::TempDir;

use crate::support::{
    compare, enginelab, file, not_found, operations, printed, refused, rows, sound, stdout,
};

#[test]
fn every_workload_is_listed_with_a_line_and_has_a_help() {
    let listed = stdout(enginelab(&["workloads"]));
    assert!(listed.lines().all(|line| line.chars().count() <= 100), "{listed}");
    let names: Vec<&str> =
        listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let expected = ["insert", "riak", "settee", "vpork", "ycsb", "dbbench", "custom", "trace"];
    assert_eq!(names, expected);
    for name in names {
        for command in ["compare", "record"] {
            let help = stdout(enginelab(&[command, name, "--help"]));
            let summary = listed.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
            let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(
                flat(&help).to_lowercase().starts_with(&flat(summary).to_lowercase()),
                "{help}"
            );
        }
    }
}

#[test]
fn insert_overwrites_and_deletes_and_the_check_knows_what_is_left() {
    let directory = TempDir::new().unwrap();
    for (threads, batch) in [("1", "1"), ("3", "1"), ("2", "7")] {
        let arguments = ["insert", "--items", "2000", "--overwrites", "0.25", "--deletes", "0.25"];
        let clients = ["--threads", threads, "--batch", batch, "--engines", "bitcask,lsm,memory"];
        let comparison = sound(directory.path(), &[&arguments[..], &clients].concat());
        for run in comparison.runs {
            assert_eq!(run.operations.as_ref().unwrap().count, 4_000);
            // A record that was deleted last is gone; with 1,000 deletions of 2,000 records a third
            // or so is.
            let left = run.verified.unwrap().read_back;
            assert!((1_100..1_900).contains(&left), "{left}");
        }
    }
    let said =
        refused(enginelab(&["compare", "insert", "--overwrites", "0.9", "--deletes", "0.2"]));
    assert!(said.contains("--overwrites 0.9 and --deletes 0.2: together at most 0.99"), "{said}");
}

const RIAK: [&str; 5] = ["riak", "--items", "300", "--engines", "bitcask,lsm,memory,raw-append"];

/// By hand: 300 items in 3 copies are 900 records of 32 and 2,656 bytes, of which Bitcask needs 14
/// more for each in its data files, and 50 in its hint files (18 and the key).
#[test]
fn riak_keeps_every_copy_and_reads_each_record_back_once() {
    let directory = TempDir::new().unwrap();
    for more in [&[][..], &["--threads", "3"], &["--ring-size", "8", "--copies", "8"]] {
        let comparison = sound(directory.path(), &[&RIAK[..], more].concat());
        let copies = if more.contains(&"--copies") { 8 } else { 3 };
        for run in &comparison.runs {
            assert_eq!(operations(run, "load", Kind::Insert), 300);
            let verified = run.verified.unwrap();
            assert_eq!((verified.read_back, verified.extra), (300, Some(0)), "{}", run.engine);
            let instances = if copies == 8 { "8" } else { "64" };
            assert_eq!(run.settings["instances"], instances);
        }
        let bitcask = comparison.runs_of("bitcask").next().unwrap();
        let size = |phase| bitcask.disk_after(phase).unwrap().apparent_bytes;
        let grown = size("close before restart") - size("open");
        let copies = 300 * copies;
        let (data, all) = (copies * (2_656 + 32 + 14), copies * (2_656 + 32 + 14 + 50));
        assert!((data..all + 64 * 8_192).contains(&grown), "{grown}, not {data} to {all}");
    }
}

#[test]
fn riak_prints_the_published_report_beside_and_what_makes_the_difference() {
    let directory = TempDir::new().unwrap();
    let arguments = [&RIAK[..], &["--repeats", "2"]].concat();
    let printed = printed(directory.path(), &arguments);
    let rows = rows(&printed);
    for expected in [
        "Riak's layout with 300 items: items 300; value 2,656 bytes of JSON, always the same; ",
        "bitcask : lsm",
        "published, 5,000 items, 5 runs: Disk space: 1.113 : 1.000; Time taken: 1.000 : 1.016",
        "Riak's report: insert times in seconds, size changes in bytes",
        "Riak's Bitcask, 5,000 12.416 12.036 48,871,379 48,871,588.4 3,258",
        "11.906 48,871,763",
        "Riak's LevelDB, 500,000 1,921.870 1,921.870 1,627,507,469 1,627,507,469.0 1,085",
        "What the differences are made of",
        "Riak's LevelDB, 5,000 2,445.40 100.00 2,927 239 n/a n/a 85",
        "Time: bitcask took ",
        "Space: a copy took ",
        "Memory: 256 MiB for all instances of an engine together, which is 4 MiB for each. ",
        "Growth is counted from before the engine was opened; the size changes and ratios of the",
    ] {
        assert!(rows.iter().any(|row| row.starts_with(expected)), "{expected:?} not in {rows:#?}");
    }
    for (arguments, expected) in [
        (["riak", "--ring-size", "63"], "--ring-size 63: expected a power of two up to 1024"),
        (["riak", "--ring-size", "2048"], "--ring-size 2048: expected a power of two up to 1024"),
        (["riak", "--copies", "65"], "--copies 65: each is in a partition of its own"),
        (["riak", "--copies", "0"], "invalid value '0' for '--copies <N>'"),
    ] {
        let said = refused(compare(directory.path(), &arguments));
        assert!(said.contains(expected), "{said}");
    }
}

const SETTEE: [&str; 9] =
    ["settee", "--singles", "300", "--bulk", "1050", "--long", "2500", "--engines", "lsm,bitcask"];

#[test]
fn settee_writes_and_reads_singly_and_in_bulk() {
    let directory = TempDir::new().unwrap();
    for threads in ["1", "3"] {
        let arguments = [&SETTEE[..], &["--threads", threads]].concat();
        for run in sound(directory.path(), &arguments).runs {
            assert_eq!(operations(&run, "single writes", Kind::Insert), 300);
            assert_eq!(operations(&run, "single reads", Kind::Read), 300);
            assert_eq!(operations(&run, "bulk writes", Kind::BatchWrite), 1_050);
            assert_eq!(operations(&run, "bulk reads", Kind::BatchRead), 1_050);
            assert_eq!(operations(&run, "load", Kind::BatchWrite), 2_500);
            let traffic = run.phase("bulk reads").unwrap().traffic.clone().unwrap();
            let bulk = &traffic.kinds[&Kind::BatchRead];
            assert_eq!((bulk.calls, bulk.read_bytes), (11, 1_050 * 250));
            assert_eq!((not_found(&run), run.verified.unwrap().read_back), (0, 3_850));
        }
    }
}

#[test]
fn settee_prints_the_published_clients_beside() {
    let directory = TempDir::new().unwrap();
    let printed = printed(directory.path(), &SETTEE);
    let rows = rows(&printed);
    for expected in [
        "Settee's table: records a second, and seconds",
        "CouchDB-Python 24 603 1.248 1.108 85.7 n/a n/a",
        "Settee-H2-Psyco 392 687 0.6 0.77 8.48 7,000..7,700 n/a",
        "The long load: records a second of each million",
        "until",
    ] {
        assert!(rows.iter().any(|row| row.starts_with(expected)), "{expected:?} not in {rows:#?}");
    }
    let long: Vec<&String> = rows.iter().filter(|row| row.starts_with("2,500 ")).collect();
    assert!(long.len() == 1 && !long[0].contains("n/a"), "{long:?}");
    let said = refused(enginelab(&["compare", "settee", "--long", "1000000000000"]));
    assert!(said.contains("records in all, but there are 1,000,000,000,000 keys"), "{said}");
}

/// With 30 threads, and with one; the reads are of records that were acknowledged, so all are
/// found, and every record is there in the end.
#[test]
fn vpork_finds_what_it_reads_with_many_threads() {
    let directory = TempDir::new().unwrap();
    for (threads, iterations) in [("30", "100"), ("1", "3000")] {
        let arguments = ["vpork", "--iterations", iterations, "--threads", threads];
        let size = ["--data-size", "300", "--engines", "bitcask,lsm,memory"];
        for run in sound(directory.path(), &[&arguments[..], &size].concat()).runs {
            let (writes, reads) =
                (operations(&run, "load", Kind::Insert), operations(&run, "load", Kind::Read));
            assert!((2_300..2_500).contains(&writes), "{writes}");
            assert!((200..400).contains(&reads), "{reads}");
            let traffic = run.phase("load").unwrap().traffic.clone().unwrap();
            assert_eq!(traffic.kinds[&Kind::Read].read_bytes, reads * 300);
            assert_eq!((not_found(&run), run.verified.unwrap().read_back), (0, writes));
        }
    }
}

#[test]
fn vpork_prints_its_report_beside_the_published_ones() {
    let directory = TempDir::new().unwrap();
    let arguments = ["vpork", "--iterations", "20", "--engines", "memory", "--write-odds", "1"];
    let printed = printed(directory.path(), &arguments);
    let rows = rows(&printed);
    for expected in [
        "VPork: 20 iterations a thread: write odds 1; read odds 0.1; value 24,000 random bytes; ",
        "VPork's report of memory, run 1, beside those of Voldemort",
        "writes 600 48,072 159,855",
        "bytes written (MB) 13.73 1,100.28 3,658.79",
        "not found 0 21 12",
    ] {
        assert!(rows.iter().any(|row| row.starts_with(expected)), "{expected:?} not in {rows:#?}");
    }
    for (arguments, expected) in [
        (["vpork", "--write-odds", "1.5"], "expected a number from 0 to 1"),
        (["vpork", "--write-odds", "0"], "there would be nothing to read"),
        (["vpork", "--data-size", "99999999"], "there can be at most 16777216"),
        (["vpork", "--iterations", "9999999999999"], "--iterations: at most"),
    ] {
        let said = refused(compare(directory.path(), &arguments));
        assert!(said.contains(expected), "{said}");
    }
}

/// Added to another, it would be a small number.
#[test]
fn a_count_beyond_all_machines_is_refused_by_every_workload() {
    let directory = TempDir::new().unwrap();
    let most = u64::MAX.to_string();
    for (workload, flags) in [
        ("insert", &["--items"][..]),
        ("riak", &["--items", "--ring-size", "--copies"]),
        ("settee", &["--singles", "--bulk", "--long"]),
        ("vpork", &["--iterations"]),
        ("ycsb", &["--records", "--operations"]),
        ("dbbench", &["--num", "--reads"]),
    ] {
        for flag in flags {
            let said = refused(compare(directory.path(), &[workload, flag, &most]));
            assert!(said.contains(flag) && said.contains("at most"), "{said}");
        }
    }
}

/// Another workload has other parameters: none of them is the reason.
#[test]
fn another_workload_is_not_gone_on_with() {
    let directory = TempDir::new().unwrap();
    let result = directory.path().join("r.json");
    let result = result.to_str().unwrap();
    let engines = ["--engines", "memory"];
    let insert = [&["insert", "--items", "50", "--out", result], &engines[..]].concat();
    compare(directory.path(), &insert).assert().success();
    for other in ["riak", "settee", "vpork", "ycsb", "dbbench"] {
        let other_one = [&[other, "--resume", result], &engines[..]].concat();
        let said = refused(compare(directory.path(), &other_one));
        let expected =
            format!("cannot resume: the workload was \"insert\" there, and is \"{other}\" here");
        assert!(said.contains(&expected), "{said}");
    }
}

/// What would change nothing is not taken in silence.
#[test]
fn flags_without_meaning_are_refused_with_the_reason() {
    let directory = TempDir::new().unwrap();
    let file = |name: &str, text: &str| file(directory.path(), name, text);
    let trace = file("t", "1,a,1,5,1,set,0\n2,a,1,5,1,get,0\n");
    let own = file(
        "w.toml",
        "keys = { count = 9, bytes = 2 }\nvalues = { bytes = 1 }\n\
         [[phases]]\nname = 'a'\noperations = 9\nmix = { insert = 1 }\nthreads = 1\nrate = 900\n",
    );
    let out = directory.path().join("out");
    let out = out.to_str().unwrap();
    let recorded = directory.path().join("recorded");
    let recorded = recorded.to_str().unwrap();
    let record = ["record", "insert", "--items", "5", "--out", recorded];
    enginelab(&record).assert().success();
    let (temp, out_flags) = (directory.path().to_str().unwrap(), ["--out", out]);
    let cases: [(&[&str], &str); 21] = [
        (&["compare", "dbbench", "--benchmarks", "readseq", "--rate", "5"], "--rate: no phase"),
        (&["compare", "trace", &trace, "--speed", "2", "--rate", "5"], "--rate: no phase"),
        (&["compare", "custom", &own, "--rate", "5"], "--rate: no phase"),
        (&["compare", "custom", &own, "--threads", "2"], "--threads: no phase"),
        (&["compare", "ycsb", "--ycsb-output", "--json"], "--ycsb-output: no report"),
        (&["compare", "dbbench", "--db-bench-output", "--quiet"], "--db-bench-output: no report"),
        (&["compare", "dbbench", "--benchmarks", "fillseq", "--reads", "5"], "--reads: none of"),
        (&["compare", "trace", recorded, "--content", "random"], "--content: the values are those"),
        (&["compare", "trace", recorded, "--value-bytes", "5"], "--value-bytes: "),
        (&["compare", "trace", recorded, "--skip-bad-lines"], "is replayed as it is"),
        (&["compare", "trace", recorded, "--temp-dir", temp], "--temp-dir: "),
        (&["record", "ycsb", "--ycsb-output"], "--ycsb-output: nothing is measured"),
        (&["record", "dbbench", "--db-bench-output"], "--db-bench-output: nothing is measured"),
        (&["record", "custom", "--example"], "--example: it is printed by enginelab compare"),
        (&["record", "trace", &trace, "--speed", "2"], "--speed: a trace is recorded as it is"),
        (&["record", "trace", &trace, "--content", "random"], "--content: a trace is recorded as"),
        (&["record", "trace", &trace, "--seed", "2"], "--seed: a trace is recorded as it is"),
        (&["record", "trace", recorded, "--threads", "2"], "--threads: a trace is recorded as"),
        (&["record", "trace", &trace, "--rate", "2"], "unexpected argument '--rate'"),
        (&["record", "insert", "--engines", "lsm"], "unexpected argument '--engines'"),
        (&["compare", "vpork", "--items", "2"], "unexpected argument '--items'"),
    ];
    for (arguments, expected) in cases {
        let more: &[&str] = if arguments[0] == "record" { &out_flags } else { &[] };
        let said = refused(enginelab(&[arguments, more].concat()));
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert!(!std::path::Path::new(out).exists());
    }
}

/// LMDB's keys have 511 bytes at most; the others go on.
#[test]
fn an_engine_whose_keys_are_too_short_is_not_applicable_and_no_failure() {
    let directory = TempDir::new().unwrap();
    let file = |name: &str, text: &str| file(directory.path(), name, text);
    let custom = |bytes: u32| {
        file(
            &format!("{bytes}.toml"),
            &format!(
                "keys = {{ count = 50, bytes = {bytes} }}\nvalues = {{ bytes = 1 }}\n\
                 [[phases]]\nname = 'load'\noperations = 50\nmix = {{ insert = 1 }}\n"
            ),
        )
    };
    let (short, long, longest) = (custom(511), custom(512), custom(65_535));
    let key = "k".repeat(600);
    let trace = file("t", &format!("1,{key},600,5,1,set,0\n2,a,1,5,1,get,0\n"));
    let compiled = directory.path().join("compiled");
    let compiled = compiled.to_str().unwrap();
    enginelab(&["record", "trace", &trace, "--out", compiled]).assert().success();
    let padded = directory.path().join("padded");
    let padded = padded.to_str().unwrap();
    let ycsb = ["ycsb", "-p", "zeropadding=700", "--records", "50", "--operations", "20"];
    let record = [&["record"], &ycsb[..], &["--out", padded]].concat();
    enginelab(&record).assert().success();
    let workloads: [(&[&str], Option<&str>); 7] = [
        (&["custom", &short], None),
        (&["custom", &long], Some("512")),
        (&["custom", &longest], Some("65,535")),
        (&["trace", &trace], Some("600")),
        (&["trace", compiled], Some("600")),
        (&ycsb, Some("704")),
        (&["trace", padded], Some("704")),
    ];
    for (workload, bytes) in workloads {
        let engines = ["--engines", "lmdb,bitcask,fjall,lsm,redb,sqlite,sled"];
        let comparison = sound(directory.path(), &[workload, &engines].concat());
        let skipped: Vec<&str> =
            comparison.skipped.iter().map(|skipped| skipped.reason.as_str()).collect();
        let expected = bytes.map(|bytes| {
            format!("lmdb holds keys of 511 bytes at most, and here they have up to {bytes}")
        });
        assert_eq!(skipped, expected.as_deref().into_iter().collect::<Vec<_>>(), "{workload:?}");
        assert_eq!(comparison.runs.len(), 7 - skipped.len());
        if let Some(expected) = expected {
            let alone = [workload, &["--engines", "lmdb"]].concat();
            let said = refused(compare(directory.path(), &alone));
            assert!(said.contains(&format!("no engine can run: {expected}")), "{said}");
        }
    }
    let printed = printed(directory.path(), &["custom", &long, "--engines", "lmdb,memory"]);
    assert!(rows(&printed).iter().any(|row| row.starts_with("lmdb n/a n/a")), "{printed}");
    let listed = stdout(enginelab(&["engines"]));
    assert!(listed.contains("keys of 511 bytes at most"), "{listed}");
}
