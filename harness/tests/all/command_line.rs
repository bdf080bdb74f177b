//! The program `enginelab` from outside: what it prints, what it leaves, how it ends.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use harness::report::json;
use harness::results::Comparison;
use tempfile::TempDir;

fn enginelab(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_enginelab"));
    command.args(arguments);
    command
}

/// `compare insert` of a few records into `directory`.
fn insert(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = enginelab(&["compare", "insert", "--items", "50", "--dir"]);
    command.arg(directory).args(arguments);
    command
}

fn json_of(mut command: Command) -> Comparison {
    let output = command.arg("--json").assert().success().get_output().stdout.clone();
    serde_json::from_slice(&output).unwrap()
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

/// Exit status 2, nothing on standard output, and one line on standard error, which is returned.
fn refused(mut command: Command) -> String {
    let assert = command.assert().code(2);
    let output = assert.get_output();
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    let lines: Vec<&str> =
        said.lines().filter(|line| !line.starts_with("warning: this is a debug build")).collect();
    assert_eq!(lines.len(), 1, "{said}");
    assert!(lines[0].starts_with("enginelab: "), "{said}");
    lines[0].to_owned()
}

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
fn results_are_written_as_json_and_markdown() {
    let directory = TempDir::new().unwrap();
    let (out, markdown) = (directory.path().join("r.json"), directory.path().join("r.md"));
    let data = directory.path().join("data");
    fs::create_dir(&data).unwrap();
    let mut command = insert(&data, &["--engines", "raw-append,memory", "--repeats", "2"]);
    command.arg("--out").arg(&out).arg("--markdown").arg(&markdown);
    let printed = json_of(command);
    let read = json::read(&out).unwrap();
    assert_eq!(read, printed);
    assert_eq!(read.runs.len(), 4);
    for run in &read.runs {
        assert_eq!(run.error, None);
        let verified = run.verified.unwrap();
        assert_eq!((verified.read_back, verified.lost, verified.wrong), (50, 0, 0));
        assert_eq!(verified.extra, Some(0));
        assert_eq!(run.operations.as_ref().unwrap().count, 50);
    }
    let text = fs::read_to_string(&markdown).unwrap();
    assert!(text.starts_with("# Insert of 50 records, "), "{text}");
    assert!(text.contains("\n### raw-append 0.1.0\n"), "{text}");
}

/// The names that results have had from the first day on.
#[test]
fn the_json_has_the_documented_fields() {
    let directory = TempDir::new().unwrap();
    let command = insert(directory.path(), &["--engines", "raw-append"]);
    let value = serde_json::to_value(json_of(command)).unwrap();
    assert_eq!(value["schema"], "enginelab.compare/2");
    for field in ["date", "cpu", "cores", "memory_bytes", "os", "kernel", "file_system", "rustc"] {
        assert!(value["machine"].get(field).is_some(), "machine.{field}");
    }
    let workload = serde_json::json!({
        "name": "insert", "items": 50, "batch": 1, "threads": 1, "corpus": "varied",
        "framing": "json", "overwrites": 0.0, "deletes": 0.0, "seed": 42, "durability": "process", "memory_bytes": 268_435_456,
        "compression": "snappy", "repeats": 1, "rate": null, "cold": false,
        "memory_cap_bytes": null, "time_limit_seconds": null,
    });
    assert_eq!(value["workload"], workload);
    let run = &value["runs"][0];
    for field in ["engine", "version", "settings", "repeat", "phases", "disk_before", "verified"] {
        assert!(!run[field].is_null(), "runs[].{field}");
    }
    assert!(run.get("error").unwrap().is_null());
    let phases: Vec<_> = run["phases"].as_array().unwrap().iter().map(|p| &p["name"]).collect();
    let expected = ["open", "load", "quiesce", "compact", "close", "reopen", "verify", "count"];
    assert_eq!(phases, expected);
    assert!(run["phases"][1]["seconds"].as_f64().unwrap() > 0.0);
    for size in ["apparent_bytes", "allocated_bytes"] {
        assert!(run["disk_before"][size].is_u64(), "runs[].disk_before.{size}");
        for phase in run["phases"].as_array().unwrap() {
            assert!(phase["disk"][size].is_u64(), "runs[].phases[].disk.{size}");
        }
    }
    let reopened = &run["phases"][5]["disk"];
    let grown = reopened["apparent_bytes"].as_u64().unwrap()
        - run["disk_before"]["apparent_bytes"].as_u64().unwrap();
    // 14 bytes of framing, 32 of key and 2,656 of value.
    assert_eq!(grown, 50 * (14 + 32 + 2_656));
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

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, b"").unwrap();
    let file = file.to_str().unwrap();
    let here = directory.path().to_str().unwrap();
    let missing = directory.path().join("missing");
    let under_missing = missing.join("out.json");
    let (missing, under_missing) = (missing.to_str().unwrap(), under_missing.to_str().unwrap());
    let cases: [(&[&str], &[&str]); 22] = [
        (&["--engines", "memory,bitcsak"], &["\"bitcsak\"", "raw-append"]),
        (&["--engines", "memory,memory"], &["memory is named twice"]),
        (&["--items", "0"], &["--items", "at least 1"]),
        (&["--items", "many"], &["--items", "many"]),
        (&["--batch", "0"], &["--batch"]),
        (&["--threads", "0"], &["--threads"]),
        (&["--repeats", "0"], &["--repeats", "there must be at least 1"]),
        (&["--items", "1,2,3"], &["--items", "1,2,3", "500,000"]),
        (&["--engines", "memory,,null"], &["--engines", "a name is missing"]),
        (&["--rate", "0"], &["--rate", "operations a second"]),
        (&["--time-limit", "-1"], &["--time-limit", "seconds"]),
        (&["--resume", missing], &["cannot read", missing]),
        (&["--resume", file], &[file, "EOF"]),
        (&["--memory", "1Q"], &["--memory", "256M"]),
        (&["--durability", "fsync"], &["fsync", "buffered, process, power"]),
        (&["--corpus", "lorem"], &["lorem", "fixed, varied, random"]),
        (&["--compression", "lz4"], &["lz4", "snappy"]),
        (&["--dir", missing], &["there is no directory", missing]),
        (&["--dir", file], &[file, "is not a directory"]),
        (&["--dir", here, "--items", "99999999999"], &[here, "MB free", "--dir"]),
        (&["--engines", "memory", "--pair", "memory,null"], &["null", "does not run"]),
        (&["--engines", "memory", "--out", under_missing], &[under_missing, "No such file"]),
    ];
    for (arguments, expected) in cases {
        let mut command = enginelab(&["compare", "insert"]);
        command.args(arguments);
        let said = refused(command);
        for part in expected {
            assert!(said.contains(part), "{arguments:?}: {part:?} is not in: {said}");
        }
    }
    refused(enginelab(&["compare", "insert", "--engines", "memory", "--out", here]));
    refused(enginelab(&["compare", "inserts"]));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing was left behind");
}

/// Nobody, root included, can make a directory in `/proc`.
#[cfg(target_os = "linux")]
#[test]
fn a_directory_that_takes_nothing_is_refused() {
    let command = enginelab(&["compare", "insert", "--engines", "memory", "--dir", "/proc"]);
    let said = refused(command);
    assert!(said.contains("cannot make a directory in /proc: "), "{said}");
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
fn engines_are_listed_for_people_and_programs() {
    let assert = enginelab(&["engines"]).assert().success();
    let printed = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    assert!(printed.contains("raw-append 0.1.0 (reference): "), "{printed}");
    assert!(printed.lines().all(|line| line.chars().count() <= 100), "{printed}");
    let assert = enginelab(&["engines", "--json"]).assert().success();
    let list: serde_json::Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    let names: Vec<&str> =
        list.as_array().unwrap().iter().map(|engine| engine["name"].as_str().unwrap()).collect();
    let known: Vec<&str> = engines::registry::all().iter().map(|engine| engine.name).collect();
    assert_eq!(names, known);
    assert!(list[0]["durability"].get("power").is_some());
}

#[test]
fn help_says_how_it_ends() {
    let assert = enginelab(&["--help"]).assert().success();
    let printed = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    assert!(printed.contains("Exit status:") && printed.contains("130"), "{printed}");
    enginelab(&["compare"]).assert().code(2);
    enginelab(&[]).assert().code(2);
}

#[test]
fn the_childs_entrance_explains_itself() {
    let assert = enginelab(&["run-one"]).write_stdin("").assert().code(1);
    let printed = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    assert!(printed.contains("for enginelab's own use"), "{printed}");
}

/// A result is renamed into place. What had that name is gone then, which for a device or a pipe
/// is more than anybody asked for.
#[test]
#[cfg(unix)]
fn a_result_never_takes_the_place_of_a_device_or_a_pipe() {
    use std::os::unix::fs::FileTypeExt;
    use std::os::unix::net::UnixListener;

    let directory = TempDir::new().unwrap();
    let socket = directory.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&socket, &link).unwrap();
    for path in [&socket, &link] {
        for flag in ["--out", "--markdown"] {
            let mut command = insert(directory.path(), &["--engines", "memory", flag]);
            command.arg(path);
            let said = refused(command);
            assert!(said.contains("is not an ordinary file"), "{said}");
        }
    }
    assert!(fs::symlink_metadata(&socket).unwrap().file_type().is_socket());
    assert!(link.is_symlink());
}

#[test]
#[cfg(unix)]
fn a_result_written_through_a_link_leaves_the_link() {
    let directory = TempDir::new().unwrap();
    let (target, link) = (directory.path().join("target.json"), directory.path().join("link"));
    fs::write(&target, "old").unwrap();
    std::os::unix::fs::symlink("target.json", &link).unwrap();
    insert(directory.path(), &["--engines", "memory", "--out"]).arg(&link).assert().success();
    assert!(link.is_symlink());
    assert_eq!(json::read(&target).unwrap().runs.len(), 1);
}

/// A report that could not be printed is no success, a reader that closed the pipe is no failure.
#[test]
#[cfg(target_os = "linux")]
fn a_report_that_cannot_be_printed_is_told() {
    let directory = TempDir::new().unwrap();
    let program = env!("CARGO_BIN_EXE_enginelab");
    let directory = directory.path().to_str().unwrap();
    let insert = ["compare", "insert", "--items", "50", "--engines", "memory", "--dir", directory];
    for arguments in [&["engines"][..], &insert] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output =
            std::process::Command::new(program).args(arguments).stdout(full).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("cannot write standard output: No space left"), "{said}");

        let mut child = std::process::Command::new(program)
            .args(arguments)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        assert!(child.wait().unwrap().success());
    }
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
fn one_file_is_not_written_twice() {
    let directory = TempDir::new().unwrap();
    let (plain, around) = (directory.path().join("x"), directory.path().join("../x"));
    let around = directory.path().join(".").join(around.file_name().unwrap());
    let mut command = insert(directory.path(), &["--engines", "memory"]);
    command.arg("--out").arg(&plain).arg("--markdown").arg(&around);
    let said = refused(command);
    assert!(said.contains("--out and --markdown both name"), "{said}");
    assert!(is_empty(directory.path()));
}

/// Takes runs out of a result, as if the comparison had been stopped before them.
#[test]
fn an_interrupted_comparison_is_finished_with_the_runs_that_are_missing() {
    let directory = TempDir::new().unwrap();
    let (data, out) = (directory.path().join("data"), directory.path().join("r.json"));
    fs::create_dir(&data).unwrap();
    let engines = ["--engines", "memory,raw-append", "--repeats", "3"];
    insert(&data, &engines).arg("--out").arg(&out).assert().success();
    let whole = json::read(&out).unwrap();
    let mut cut = whole.clone();
    cut.runs.truncate(4);
    cut.interrupted = true;
    json::replace_file(&out, &json::render(&cut).unwrap()).unwrap();

    insert(&data, &engines).arg("--resume").arg(&out).assert().success();
    let finished = json::read(&out).unwrap();
    assert_eq!(finished.runs[..4], cut.runs[..], "what was there stays as it was");
    assert!(!finished.interrupted);
    let order = |comparison: &Comparison| -> Vec<_> {
        comparison.runs.iter().map(|run| (run.engine.clone(), run.repeat)).collect()
    };
    assert_eq!(order(&finished), order(&whole));

    let text = fs::read(&out).unwrap();
    for (other, expected) in [
        (["--engines", "memory,null", "--repeats", "3"], "--engines was memory,raw-append there"),
        (
            ["--engines", "memory,raw-append", "--repeats", "4"],
            "repeats was 3 there, and is 4 here",
        ),
    ] {
        let mut command = insert(&data, &other);
        command.arg("--resume").arg(&out);
        let said = refused(command);
        assert!(said.contains("cannot resume") && said.contains(expected), "{said}");
        assert_eq!(fs::read(&out).unwrap(), text);
    }
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

#[test]
fn workloads_are_listed_a_line_each() {
    let assert = enginelab(&["workloads"]).assert().success();
    let printed = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    assert!(printed.starts_with("insert"), "{printed}");
    assert!(printed.lines().all(|line| line.chars().count() <= 100), "{printed}");
    let assert = enginelab(&["workloads", "--json"]).assert().success();
    let list: serde_json::Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    assert_eq!(list.as_array().unwrap().len(), printed.lines().count());
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

/// A result whose load took `factor` times as long.
fn slowed(comparison: &Comparison, factor: f64) -> Comparison {
    let mut slowed = comparison.clone();
    for phase in slowed.runs.iter_mut().flat_map(|run| &mut run.phases) {
        phase.seconds *= if phase.name == "load" { factor } else { 1.0 };
    }
    slowed
}

#[test]
fn diff_tells_what_became_worse_by_its_exit_status() {
    let directory = TempDir::new().unwrap();
    let mut first =
        json_of(insert(directory.path(), &["--engines", "memory,raw-append", "--repeats", "3"]));
    for run in &mut first.runs {
        for phase in run.phases.iter_mut().filter(|phase| phase.name == "load") {
            phase.seconds = 10.0 + f64::from(run.repeat % 3) / 10.0;
        }
    }
    let path = |name: &str| directory.path().join(name);
    for (name, factor) in
        [("a", 1.0), ("same", 1.0), ("slow", 2.0), ("little", 1.04), ("fast", 0.5)]
    {
        json::replace_file(&path(name), &json::render(&slowed(&first, factor)).unwrap()).unwrap();
    }
    let diff = |after: &str, arguments: &[&str]| {
        let mut command = enginelab(&["diff"]);
        command.arg(path("a")).arg(path(after)).args(arguments);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, printed) = diff("same", &[]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.starts_with("Nothing changed by more than 5 % beyond noise, of "), "{printed}");
    let (code, printed) = diff("slow", &[]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("WORSE memory, load seconds: 10.1"), "{printed}");
    assert!(printed.contains("ratio 2.00 (95 %: 1.9"), "{printed}");
    assert_eq!(printed.matches("WORSE").count(), 2, "{printed}");
    assert_eq!(diff("little", &[]).0, Some(0));
    assert_eq!(diff("slow", &["--threshold", "150"]).0, Some(0));
    let (code, printed) = diff("fast", &["--json"]);
    assert_eq!(code, Some(0));
    let told: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(told["changes"][0]["is_regression"], false);
    assert_eq!(told["changes"].as_array().unwrap().len(), 2);

    let mut other = first.clone();
    other.workload.client.seed = 1;
    json::replace_file(&path("other"), &json::render(&other).unwrap()).unwrap();
    let mut command = enginelab(&["diff"]);
    command.arg(path("a")).arg(path("other"));
    assert!(refused(command).contains("not the same work"));
    let mut command = enginelab(&["diff", "--threshold", "-1"]);
    command.arg(path("a")).arg(path("a"));
    assert!(refused(command).contains("--threshold"));
}

#[test]
fn results_of_machines_stand_side_by_side() {
    let directory = TempDir::new().unwrap();
    let engines = ["--engines", "memory,raw-append"];
    let first = json_of(insert(directory.path(), &engines));
    let mut second = slowed(&first, 3.0);
    second.machine.cpu = "Another processor".into();
    let path = |name: &str| directory.path().join(name);
    json::replace_file(&path("a"), &json::render(&first).unwrap()).unwrap();
    json::replace_file(&path("b"), &json::render(&second).unwrap()).unwrap();
    let mut command = enginelab(&["merge"]);
    command.args([path("a"), path("b")]).arg("--out").arg(path("both"));
    let assert = command.assert().success();
    let printed = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    assert!(printed.contains("Another processor"), "{printed}");
    assert!(printed.contains("load: seconds on each machine"), "{printed}");
    let both: serde_json::Value = serde_json::from_slice(&fs::read(path("both")).unwrap()).unwrap();
    assert_eq!(both["schema"], "enginelab.merged/1");
    assert_eq!(both["results"].as_array().unwrap().len(), 2);
    second.workload.client.seed = 7;
    json::replace_file(&path("b"), &json::render(&second).unwrap()).unwrap();
    let mut command = enginelab(&["merge"]);
    command.args([path("a"), path("b")]);
    assert!(refused(command).contains("is of other work than"));
}
