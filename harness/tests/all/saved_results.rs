//! Results as files: what is written, and what is done with it later.

use std::fs;

use harness::files::output;
use harness::report::json;
use harness::results::Comparison;
use tempfile::TempDir;

use crate::support::{enginelab, insert, is_empty, json_of, refused};

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
    output::replace(&out, &json::render(&cut).unwrap()).unwrap();

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
        output::replace(&path(name), &json::render(&slowed(&first, factor)).unwrap()).unwrap();
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
    output::replace(&path("other"), &json::render(&other).unwrap()).unwrap();
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
    output::replace(&path("a"), &json::render(&first).unwrap()).unwrap();
    output::replace(&path("b"), &json::render(&second).unwrap()).unwrap();
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
    output::replace(&path("b"), &json::render(&second).unwrap()).unwrap();
    let mut command = enginelab(&["merge"]);
    command.args([path("a"), path("b")]);
    assert!(refused(command).contains("is of other work than"));
}
