//! The command line from outside: what it lists, explains and refuses, and how it ends.

use std::fs;

use tempfile::TempDir;

use crate::support::{enginelab, refused, stdout};

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

/// 266 TB of records need no room where nobody keeps them: the run begins, and its time is up.
#[test]
fn no_room_is_asked_for_what_keeps_nothing() {
    let mut command = enginelab(&["compare", "insert", "--engines", "null"]);
    command.args(["--items", "99999999999", "--time-limit", "0.1"]);
    let assert = command.assert().code(1);
    let said = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    assert!(said.contains("ended after 100ms, as --time-limit says"), "{said}");
}

/// Nobody, root included, can make a directory in `/proc`.
#[cfg(target_os = "linux")]
#[test]
fn a_directory_that_takes_nothing_is_refused() {
    let command = enginelab(&["compare", "insert", "--engines", "memory", "--dir", "/proc"]);
    let said = refused(command);
    assert!(said.contains("cannot make a directory in /proc: "), "{said}");
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
fn workloads_are_listed_a_line_each() {
    let assert = enginelab(&["workloads"]).assert().success();
    let printed = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    assert!(printed.starts_with("insert"), "{printed}");
    assert!(printed.lines().all(|line| line.chars().count() <= 100), "{printed}");
    let assert = enginelab(&["workloads", "--json"]).assert().success();
    let list: serde_json::Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    assert_eq!(list.as_array().unwrap().len(), printed.lines().count());
}

/// Every subcommand, and a flag and a value of one of them.
/// What a command tells is there for programs too.
#[test]
fn reports_recordings_and_suites_are_told_as_json() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let json = |arguments: &[&str]| -> serde_json::Value {
        let told = stdout(enginelab(&[arguments, &["--json"]].concat()));
        serde_json::from_str(&told).unwrap()
    };
    let trace = path("trace");
    let recorded = json(&["record", "insert", "--items", "7", "--out", &trace]);
    assert_eq!(recorded, serde_json::json!({ "trace": trace, "operations": 7 }));

    let list = json(&["suite", "--list", "--only", "settee"]);
    assert_eq!(list, serde_json::json!([{ "name": "settee", "command": "settee" }]));
    let into = path("results");
    let suite = ["suite", &into, "--quick", "--only", "insert", "--json", "--"];
    let flags = ["--engines", "memory", "--items", "9", "--dir", &path("")];
    let told = stdout(enginelab(&[&suite[..], &flags].concat()));
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let result = path("results/insert.json");
    assert_eq!(told["page"], path("results/index.html"));
    assert_eq!(told["finished"].as_array().unwrap().len(), 1);
    assert_eq!(told["finished"][0]["name"], "insert");
    assert_eq!(told["finished"][0]["result"], result);
    assert_eq!(told["not_run"][0]["reason"], "not among --only");

    let saved: serde_json::Value = serde_json::from_slice(&fs::read(&result).unwrap()).unwrap();
    assert_eq!(json(&["report", &result]), saved);
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(enginelab(&["completions", shell]));
        for expected in [
            "compare",
            "record",
            "diff",
            "report",
            "merge",
            "workloads",
            "engines",
            "insert",
            "ycsb",
            "custom",
            "trace",
            "write-odds",
            "durability",
        ] {
            assert!(script.contains(expected), "{expected} is not in what {shell} gets");
        }
    }
    let said = refused(enginelab(&["completions", "csh"]));
    assert!(said.contains("bash") && said.contains("zsh"), "{said}");
}

/// The script is one that the shell takes, and completes what has been begun.
#[test]
#[cfg(unix)]
fn bash_completes_with_the_script() {
    let directory = TempDir::new().unwrap();
    let script = directory.path().join("script");
    fs::write(&script, stdout(enginelab(&["completions", "bash"]))).unwrap();
    let complete = "source \"$1\"; COMP_WORDS=(enginelab compare cu); COMP_CWORD=2; \
                    _enginelab enginelab cu compare; echo \"${COMPREPLY[@]}\"";
    let output =
        std::process::Command::new("bash").args(["-c", complete, "bash"]).arg(&script).output();
    // Where there is no bash, nothing is completed by it.
    let Ok(output) = output else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "custom", "{said}");
}

/// What would fill the disk is refused before it does.
#[test]
fn a_recording_without_room_is_refused() {
    let directory = TempDir::new().unwrap();
    let out = directory.path().join("out");
    let mut command = enginelab(&["record", "insert", "--items", "999,999,999,999", "--out"]);
    command.arg(&out);
    let said = refused(command);
    let expected = format!("{} takes 23,999,999 MB at least, but ", out.display());
    assert!(said.contains(&expected), "{said}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
