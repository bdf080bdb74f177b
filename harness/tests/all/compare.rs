//! Comparisons from outside: what is run, printed and left behind.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::support::{enginelab, insert, is_empty, json_of};

#[test]
fn a_comparison_prints_the_published_lines_and_both_tables() {
    let directory = TempDir::new().unwrap();
    let pair = ["--engines", "memory,raw-append", "--pair", "raw-append,memory"];
    let assert = insert(directory.path(), &pair).args(["--repeats", "2"]).assert().success();
    let printed = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    for expected in [
        "\nraw-append 0.1.0: ",
        "\n  times (s): ",
        "\n  mean time (s): ",
        "\n  size changes (bytes): 135,100 135,100\n",
        "\n  mean size change (bytes): 135,100.0\n",
        "\nraw-append : memory\n  Disk space: n/a\n  Time taken: ",
        "\nTime in seconds\n engine ",
        "\nDisk space in MB (10^6 bytes), growth of the directory\n engine ",
        "items 50; value 2,656 bytes, corpus varied, framing json",
    ] {
        assert!(printed.contains(expected), "{expected:?} is not in:\n{printed}");
    }
    assert!(printed.lines().all(|line| line.chars().count() <= 100), "{printed}");
    assert!(!printed.contains('\u{1b}'), "no colour unless on a terminal");
    assert!(is_empty(directory.path()), "the data is removed afterwards");
}

#[test]
fn the_same_seed_executes_the_same_operations_however_they_are_cut() {
    let directory = TempDir::new().unwrap();
    let hash = |arguments: &[&str]| {
        let mut command = insert(directory.path(), &["--engines", "memory,raw-append"]);
        command.args(arguments);
        let comparison = json_of(command);
        let hashes: Vec<_> =
            comparison.runs.into_iter().map(|run| run.operations.unwrap().hash).collect();
        assert_eq!(hashes[0], hashes[1]);
        hashes[0].clone()
    };
    let plain = hash(&[]);
    assert_eq!(hash(&["--threads", "3", "--batch", "7"]), plain);
    assert_ne!(hash(&["--seed", "43"]), plain);
    assert_ne!(hash(&["--corpus", "fixed"]), plain);
    assert_ne!(hash(&["--corpus", "random"]), plain);
    assert_ne!(hash(&["--framing", "text"]), plain);
}

#[test]
fn every_engine_that_is_here_runs_by_default() {
    let directory = TempDir::new().unwrap();
    let comparison = json_of(insert(directory.path(), &[]));
    let mut ran = comparison.engines();
    ran.sort_unstable();
    let mut expected: Vec<&str> = engines::registry::all()
        .iter()
        .filter(|engine| engine.kind != engines::registry::Kind::Reference)
        .filter(|engine| (engine.available)().is_ok())
        .map(|engine| engine.name)
        .collect();
    expected.sort_unstable();
    assert_eq!(ran, expected);
    assert_eq!(comparison.problems(), Vec::<String>::new());
}

#[test]
fn kept_data_can_be_opened() {
    let directory = TempDir::new().unwrap();
    insert(directory.path(), &["--engines", "raw-append", "--keep"]).assert().success();
    let made = fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap().path();
    let engine = engines::registry::identify(&made.join("raw-append-1")).unwrap();
    assert_eq!(engine.name, "raw-append");
}

#[test]
fn what_lies_in_the_directory_already_is_left_alone() {
    let directory = TempDir::new().unwrap();
    let other = directory.path().join("enginelab-of-somebody");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("raw-append.data"), b"precious").unwrap();
    fs::write(directory.path().join("CURRENT"), b"MANIFEST-000001\n").unwrap();
    insert(directory.path(), &["--engines", "raw-append"]).assert().success();
    assert_eq!(fs::read(other.join("raw-append.data")).unwrap(), b"precious");
    assert_eq!(fs::read(directory.path().join("CURRENT")).unwrap(), b"MANIFEST-000001\n");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_system_in_memory_is_named_as_such() {
    let shm = Path::new("/dev/shm");
    let is_memory = |path| harness::measure::filesystem::of(path).is_ok_and(|fs| fs.in_memory);
    if !shm.is_dir() || !is_memory(shm) {
        return;
    }
    let directory = TempDir::new_in(shm).unwrap();
    let assert = insert(directory.path(), &["--engines", "raw-append"]).assert().success();
    let said = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert!(said.contains("in memory: nothing here says anything about a disk"), "{said}");
    let printed = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    assert!(printed.contains("in memory, not on a disk"), "{printed}");
}

#[test]
fn names_of_engines_may_stand_apart() {
    let directory = TempDir::new().unwrap();
    let comparison = json_of(insert(directory.path(), &["--engines", "memory, raw-append"]));
    let mut engines = comparison.engines();
    engines.sort_unstable();
    assert_eq!(engines, ["memory", "raw-append"]);
}

#[test]
fn every_phase_tells_what_it_took() {
    let directory = TempDir::new().unwrap();
    let comparison = json_of(insert(directory.path(), &["--engines", "raw-append,memory"]));
    for run in &comparison.runs {
        let load = run.phase("load").unwrap();
        let traffic = load.traffic.as_ref().unwrap();
        let (kind, figures) = traffic.kinds.iter().next().unwrap();
        assert_eq!(serde_json::to_value(kind).unwrap(), "insert");
        assert_eq!((figures.calls, figures.operations, figures.not_found), (50, 50, 0));
        assert_eq!(figures.written_bytes, 50 * (32 + 2_656));
        let latency = &figures.latency;
        let percentiles =
            [latency.min_ns, latency.p50_ns, latency.p90_ns, latency.p99_ns, latency.max_ns];
        assert!(percentiles.is_sorted() && percentiles[0] > 0, "{latency:?}");
        assert!((latency.mean_ns * 50.0 / 1e9 - latency.total_seconds).abs() < 1e-9);
        assert!(latency.total_seconds <= load.seconds * 1.001, "{latency:?} {}", load.seconds);
        assert_eq!(traffic.timeline.iter().sum::<u64>(), 50);
        assert!(traffic.own_ns.unwrap() > 0.0 && !traffic.time_limited);
        let verified = run.verified.unwrap();
        assert_eq!(verified.live_bytes, 50 * (32 + 2_656));
        #[cfg(target_os = "linux")]
        {
            assert!(load.usage.device_read_bytes.is_some());
            assert!(load.seen.peak_own_bytes.unwrap() > 1 << 20);
            let written = load.usage.call_written_bytes.unwrap();
            let expected = if run.engine == "raw-append" { 50 * (32 + 2_656) } else { 0 };
            assert!(written >= expected, "{}: {written}", run.engine);
        }
    }
    let raw = comparison.runs_of("raw-append").next().unwrap();
    let space = raw.space_amplification().unwrap();
    assert!((space - 135_100.0 / 134_400.0).abs() < 1e-9, "{space}");
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let directory = TempDir::new().unwrap();
    let arguments = ["--engines", "memory", "--rate", "500", "--threads", "2"];
    let comparison = json_of(insert(directory.path(), &arguments));
    let load = comparison.runs[0].phase("load").unwrap();
    // The last of 50 operations is due after 49 five-hundredths of a second.
    assert!(load.seconds >= 0.098, "{}", load.seconds);
    assert_eq!(load.traffic.as_ref().unwrap().rate, Some(500.0));
    assert_eq!(comparison.runs[0].verified.unwrap().read_back, 50);
}

/// What cannot be had is refused with the reason, and what can be is.
#[test]
fn a_cap_on_memory_holds_or_is_refused() {
    let directory = TempDir::new().unwrap();
    let capped = ["compare", "insert", "--engines", "memory", "--items", "30000", "--dir"];
    let output = enginelab(&capped)
        .arg(directory.path())
        .args(["--memory-cap", "48M", "--json"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    match output.status.code() {
        Some(2) => assert!(said.contains("--memory-cap cannot be had here: "), "{said}"),
        // 80 MB of values do not fit into 48 MiB.
        Some(1) => assert!(said.contains("for lack of memory under --memory-cap"), "{said}"),
        other => panic!("{other:?}: {said}"),
    }
    let roomy = insert(directory.path(), &["--engines", "memory", "--memory-cap", "4G"]).output();
    assert!([Some(0), Some(2)].contains(&roomy.unwrap().status.code()));
}
