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
        sleep(Duration::from_millis(10));
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
