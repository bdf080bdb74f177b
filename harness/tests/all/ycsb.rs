//! The workloads of YCSB from outside.

use std::path::Path;

use assert_cmd::Command;
use harness::results::Comparison;
use tempfile::TempDir;

fn ycsb(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_enginelab"));
    command.args(["compare", "ycsb", "--records", "500", "--operations", "3000", "--dir"]);
    command.arg(directory).args(arguments);
    command
}

fn json_of(mut command: Command) -> Comparison {
    let output = command.arg("--json").assert().success().get_output().stdout.clone();
    serde_json::from_slice(&output).unwrap()
}

/// Each core workload, with one client and with three: every engine does the same, and every
/// record has the value of its last write.
#[test]
fn every_core_workload_is_executed_alike_and_verified() {
    let directory = TempDir::new().unwrap();
    for core in ["a", "b", "c", "d", "e", "f"] {
        for threads in ["1", "3"] {
            let engines = "bitcask,lsm,redb,memory";
            let arguments = ["--core", core, "--engines", engines, "--threads", threads];
            let comparison = json_of(ycsb(directory.path(), &arguments));
            assert_eq!(comparison.problems(), Vec::<String>::new(), "{core}");
            assert_eq!(comparison.runs.len(), 4);
            let first = comparison.runs[0].operations.clone().unwrap();
            assert_eq!(first.count, 3_500, "{core}");
            for run in &comparison.runs {
                assert_eq!(run.operations.as_ref(), Some(&first), "{core} {}", run.engine);
                let traffic = run.phase("run").unwrap().traffic.as_ref().unwrap();
                let kinds = &traffic.kinds;
                let missing: u64 = kinds.values().map(|figures| figures.not_found).sum();
                assert_eq!(missing, 0, "{core} {}", run.engine);
                let verified = run.verified.unwrap();
                assert!(verified.read_back >= 500 && verified.is_whole(), "{verified:?}");
                let inserted = kinds.iter().find(|(kind, _)| kind.words() == "insert");
                let inserted = inserted.map_or(0, |(_, figures)| figures.operations);
                assert_eq!(verified.read_back, 500 + inserted, "{core} {}", run.engine);
            }
        }
    }
}

#[test]
fn what_an_engine_cannot_do_is_no_failure() {
    let directory = TempDir::new().unwrap();
    let arguments = ["--core", "e", "--engines", "raw-append,memory"];
    let comparison = json_of(ycsb(directory.path(), &arguments));
    let raw = comparison.runs_of("raw-append").next().unwrap();
    assert_eq!(raw.not_applicable.as_deref(), Some("raw-append has no ordered scan"));
    assert_eq!(raw.problem(), None);
    assert!(comparison.runs_of("memory").next().unwrap().verified.unwrap().is_whole());
}

#[test]
fn a_limit_of_time_ends_the_run_and_the_check_knows_what_was_done() {
    let directory = TempDir::new().unwrap();
    let arguments =
        ["-p", "maxexecutiontime=1", "--operations", "9000000000", "--engines", "memory,lsm"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_enginelab"));
    command.args(["compare", "ycsb", "--records", "200", "--threads", "2", "--dir"]);
    command.arg(directory.path()).args(arguments);
    let comparison = json_of(command);
    assert_eq!(comparison.problems(), Vec::<String>::new());
    for run in &comparison.runs {
        let run_phase = run.phase("run").unwrap();
        let traffic = run_phase.traffic.as_ref().unwrap();
        assert!(traffic.time_limited && traffic.operations > 0);
        assert!(run_phase.seconds >= 1.0);
        assert_eq!(run.operations.as_ref().unwrap().count, 200, "the load alone is compared");
        assert_eq!(run.verified.unwrap().read_back, 200);
    }
}

#[test]
fn the_lines_of_ycsb_and_the_check_of_the_distribution_are_printed() {
    let directory = TempDir::new().unwrap();
    let arguments = ["--core", "f", "--engines", "memory", "--ycsb-output"];
    let assert = ycsb(directory.path(), &arguments).assert().success();
    let printed = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    for expected in [
        "\n# memory, run 1, load\n[OVERALL], RunTime(ms), ",
        "\n[INSERT], Operations, 500\n",
        "\n# memory, run 1, run\n",
        "\n[OVERALL], Throughput(ops/sec), ",
        "\n[READ], AverageLatency(us), ",
        "\n[READ], 95thPercentileLatency(us), ",
        "\n[READ], 99thPercentileLatency(us), ",
        "\n[READ-MODIFY-WRITE], Operations, ",
        "\n[READ-MODIFY-WRITE], Return=OK, ",
        "Distribution of the first 3,000 requests: ",
        "  memory: 100.000 % of its reads found their record\n",
        "\nrun, read-modify-write: operations a second, and latency in microseconds\n",
    ] {
        assert!(printed.contains(expected), "{expected:?} is not in:\n{printed}");
    }
    assert!(printed.lines().all(|line| line.chars().count() <= 100), "{printed}");
}

#[test]
fn a_wrong_property_is_refused_with_its_place() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("workload");
    std::fs::write(&file, "recordcount=10\nreadproportion=much\n").unwrap();
    let mut command = ycsb(directory.path(), &["-P"]);
    let output = command.arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("workload, line 2: readproportion is \"much\", expected"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}
