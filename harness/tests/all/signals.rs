//! What happens when a comparison is stopped from outside.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use harness::report::json;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A comparison that would run for hours, stopped by the tests.
fn start(data: &Path, out: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_enginelab"))
        .args(["compare", "insert", "--engines", "raw-append", "--items", "2000"])
        .args(["--repeats", "1000000", "--dir"])
        .arg(data)
        .arg("--out")
        .arg(out)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits until `condition` holds. The limit is only there for a failure to end.
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(120), "waited in vain: {what}");
        sleep(Duration::from_millis(1));
    }
}

fn send(process: &Child, signal: Signal) {
    kill_process(Pid::from_child(process), signal).unwrap();
}

#[test]
fn ctrl_c_removes_the_data_and_keeps_what_had_finished() {
    for signal in [Signal::INT, Signal::TERM] {
        let (data, results) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let out = results.path().join("out.json");
        let mut process = start(data.path(), &out);
        until("a run has finished", || out.is_file());
        send(&process, signal);
        let status = process.wait().unwrap();
        assert_eq!(status.code(), Some(130), "{signal:?}");
        assert!(fs::read_dir(data.path()).unwrap().next().is_none(), "data was left behind");
        let kept = json::read(&out).unwrap();
        assert!(kept.interrupted);
        assert!(!kept.runs.is_empty() && kept.problems().is_empty(), "{:?}", kept.problems());
        assert_eq!(fs::read_dir(results.path()).unwrap().count(), 1, "a temporary file was left");
    }
}

#[test]
fn a_child_does_not_outlive_a_killed_parent() {
    let (data, results) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut process = start(data.path(), &results.path().join("out.json"));
    let children = format!("/proc/{0}/task/{0}/children", process.id());
    let mut child = String::new();
    until("a child runs", || {
        child = fs::read_to_string(&children).unwrap_or_default().trim().to_owned();
        !child.is_empty()
    });
    send(&process, Signal::KILL);
    process.wait().unwrap();
    until("the child is gone", || {
        let status = fs::read_to_string(format!("/proc/{child}/stat"));
        status.map_or(true, |stat| stat.contains(") Z ") || !stat.contains("enginelab"))
    });
}

/// What makes a file of its own before any run, or instead of one, leaves none behind.
#[test]
fn ctrl_c_removes_what_is_half_written() {
    let place = TempDir::new().unwrap();
    let [trace, temporary, out] = ["trace", "temporary", "out"].map(|name| place.path().join(name));
    // Few keys, so that most of the time goes into what is written last.
    let lines: String =
        (0..2_000_000).map(|n| format!("{},k{},2,9,1,set,0\n", n >> 10, n & 7)).collect();
    fs::write(&trace, lines).unwrap();
    fs::create_dir(&temporary).unwrap();
    fs::create_dir(&out).unwrap();
    let compare = ["compare", "trace", "--engines", "raw-append", "--repeats", "1000000"];
    let recording = ["record", "insert", "--items", "30000000"];
    let recording_trace = ["record", "trace"];
    let cases: [(&[&str], bool, &Path, &str); 3] = [
        (&compare, true, &temporary, "enginelab-trace-"),
        (&recording, false, &out, ".enginelab-"),
        (&recording_trace, true, &temporary, "enginelab-trace-"),
    ];
    for (arguments, reads, directory, prefix) in cases {
        for signal in [Signal::INT, Signal::TERM] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_enginelab"));
            command.args(arguments).args(reads.then_some(&trace)).env("TMPDIR", &temporary);
            match arguments[0] {
                "record" => command.arg("--out").arg(out.join("recorded")),
                _ => command.arg("--dir").arg(&out),
            };
            let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            until("a file is made", || {
                fs::read_dir(directory)
                    .unwrap()
                    .any(|entry| entry.unwrap().file_name().to_string_lossy().starts_with(prefix))
            });
            send(&process, signal);
            let status = process.wait().unwrap();
            let left: Vec<_> = [&temporary, &out]
                .into_iter()
                .flat_map(|directory| fs::read_dir(directory).unwrap())
                .map(|entry| entry.unwrap().path())
                .collect();
            // Whoever is late finds a trace that is finished.
            let is_whole = status.success() && left == [out.join("recorded")];
            assert!(
                is_whole || (status.code() == Some(130) && left.is_empty()),
                "{arguments:?}, {signal:?}: {status}, {left:?}"
            );
            fs::remove_file(out.join("recorded")).ok();
        }
    }
}
