//! The benchmarks of db_bench from outside.

use harness::workload::op::Kind;
use tempfile::TempDir;

use crate::support::{compare, printed, refused, rows, sound};

/// Every benchmark that has a name.
const ALL_BENCHMARKS: &str = "fillseq,stats,readseq,readreverse,fillbatch,fillsync,fill100K,\
                              fillrandom,overwrite,readrandom,readmissing,readhot,seekrandom,\
                              seekordered,multireadrandom,updaterandom,readwhilewriting,\
                              readwhilescanning,seekrandomwhilewriting,open,waitforcompaction,\
                              compact,readrandom,deleterandom,filluniquerandom,deleteseq,readseq,\
                              fillrandom";

fn dbbench<'a>(benchmarks: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["dbbench", "--num", "2000", "--benchmarks", benchmarks], more].concat()
}

/// By hand: a walk visits all 2,000 entries; of 2,000 keys drawn with replacement 1 - 1/e are
/// there, which is 1,264, and 1 - 1/e^2 after as many again; the hot ones are 20.
#[test]
fn dbbench_does_all_of_them_and_knows_what_is_left() {
    let directory = TempDir::new().unwrap();
    for threads in ["1", "3"] {
        let arguments = dbbench(ALL_BENCHMARKS, &["--threads", threads]);
        let engines = ["--engines", "bitcask,lsm,sqlite,memory"];
        for run in sound(directory.path(), &[&arguments[..], &engines].concat()).runs {
            let figures = |phase: &str, kind| {
                let traffic = run.phase(phase).unwrap().traffic.as_ref().unwrap();
                traffic.kinds[&kind].clone()
            };
            for walk in [("readseq", Kind::Scan), ("readreverse", Kind::ScanBack)] {
                let walk = figures(walk.0, walk.1);
                assert_eq!((walk.visited, walk.read_bytes), (2_000, 2_000 * 116), "{}", run.engine);
            }
            assert_eq!(figures("fillbatch", Kind::BatchWrite).operations, 2_000);
            let sync = figures("fillsync", Kind::Sync);
            assert_eq!((sync.operations, figures("fillsync", Kind::Update).operations), (2, 2));
            assert_eq!(figures("fill100K", Kind::Update).written_bytes, 2 * 100_016);
            let random = figures("readrandom", Kind::Read);
            let found = 2_000 - random.not_found;
            assert!((1_650..1_810).contains(&found), "{found} of 2,000 (1,729)");
            assert_eq!(figures("readmissing", Kind::Read).not_found, 2_000);
            let sought = figures("seekrandom", Kind::Seek);
            assert!(sought.not_found > 0 && sought.not_found < 400, "{sought:?}");
            assert_eq!(figures("seekordered", Kind::Seek).operations, 2_000);
            let several = figures("multireadrandom", Kind::BatchRead);
            assert_eq!(several.operations, 2_000);
            for (phase, kind) in [
                ("readwhilewriting", Kind::Update),
                ("seekrandomwhilewriting", Kind::Update),
                ("readwhilescanning", Kind::ScanAll),
            ] {
                let traffic = run.phase(phase).unwrap().traffic.as_ref().unwrap();
                assert_eq!(traffic.operations, 2_000, "the thread beside is not among them");
                let beside: Vec<_> = traffic.background.keys().collect();
                assert!(beside.is_empty() || beside == [&kind], "{phase}: {beside:?}");
            }
            assert_eq!(figures("readseq 2", Kind::Scan).visited, 0, "all were deleted");
            let left = run.verified.unwrap().read_back;
            assert!((1_190..1_340).contains(&left), "{left} of 1,264");
            let is_memory = run.engine == "memory";
            assert_eq!(run.phase("open again").is_none(), is_memory);
            assert_eq!(run.left_out.contains_key("open again"), is_memory);
            assert!(!run.stats["stats"].is_empty());
        }
    }
}

/// What is left must be what was written last, the writes of the thread beside included.
#[test]
fn dbbench_verifies_what_the_thread_beside_wrote() {
    let directory = TempDir::new().unwrap();
    let benchmarks = "fillseq,fillrandom,readwhilewriting,readwhilewriting";
    for more in [&["--threads", "1"][..], &["--threads", "2"], &["--rate", "100000"]] {
        let engines = ["--reads", "50000", "--engines", "bitcask,lsm,redb"];
        let arguments = dbbench(benchmarks, &[more, &engines].concat());
        for run in sound(directory.path(), &arguments).runs {
            let beside = |phase: &str| {
                let traffic = run.phase(phase).unwrap().traffic.as_ref().unwrap();
                traffic.background.values().map(|kind| kind.operations).sum::<u64>()
            };
            let written = beside("readwhilewriting") + beside("readwhilewriting 2");
            assert!(written > 0, "{}", run.engine);
            let left = run.verified.unwrap().read_back;
            assert!((1_150..=2_000).contains(&left), "{left}: fillseq's are gone, 1,264 and more");
        }
    }
}

/// An engine without order has n/a where order is asked for, and goes on behind it.
#[test]
fn dbbench_goes_on_without_what_an_engine_cannot_do() {
    let directory = TempDir::new().unwrap();
    let benchmarks = "fillseq,readseq,readrandom,seekrandomwhilewriting,compact";
    let arguments = dbbench(benchmarks, &["--engines", "raw-append,memory,null"]);
    let comparison = sound(directory.path(), &arguments);
    let raw = comparison.runs_of("raw-append").next().unwrap();
    let left_out: Vec<&String> = raw.left_out.keys().collect();
    assert_eq!(left_out, ["readseq", "seekrandomwhilewriting"]);
    assert_eq!(raw.verified.unwrap().read_back, 2_000);
    assert!(raw.phase("compact").is_some() && raw.not_applicable.is_none());
    let printed = printed(directory.path(), &arguments);
    let rows = rows(&printed);
    assert!(rows.iter().any(|row| row == "n/a: raw-append has no ordered scan."), "{rows:#?}");
}

#[test]
fn dbbench_prints_a_table_a_benchmark_and_the_originals_lines() {
    let directory = TempDir::new().unwrap();
    let benchmarks = "fillseq,readrandom,stats,readrandom,fillsync,open";
    let all = "bitcask,lsm,sqlite,redb,fjall,lmdb,memory";
    let arguments = dbbench(benchmarks, &["--engines", all, "--db-bench-output"]);
    let printed = printed(directory.path(), &arguments);
    let rows = rows(&printed);
    for expected in [
        "db_bench with 2,000 entries: benchmarks fillseq, readrandom, stats, readrandom, fillsync, ",
        "readrandom 2",
        "micros/op ",
        "found 2,000 2,000 2,000 2,000 2,000 2,000",
        "live_records ",
        "# lsm, run 1",
        "Values: 100 bytes each (50 bytes after compression)",
        "fillseq : ",
        "fillsync : ",
        "open : ",
    ] {
        assert!(rows.iter().any(|row| row.starts_with(expected)), "{expected:?} not in {rows:#?}");
    }
    let line = rows.iter().filter(|row| row.starts_with("readrandom : "));
    let lines: Vec<&String> = line.collect();
    assert_eq!(lines.len(), 14, "{lines:?}");
    assert!(
        lines.iter().all(|line| line.ends_with("micros/op; (2000 of 2000 found)")),
        "{lines:?}"
    );
    for (arguments, expected) in [
        (["dbbench", "--benchmarks", "fillseq,readrandm"], "\"readrandm\"; there are: fillseq, "),
        (["dbbench", "--compression-ratio", "2"], "expected a number from 0 to 1"),
        (["dbbench", "--num", "9999999999999"], "--num 9999999999999: at most 1,099,511,627,776"),
    ] {
        let said = refused(compare(directory.path(), &arguments));
        assert!(said.contains(expected), "{said}");
    }
}
