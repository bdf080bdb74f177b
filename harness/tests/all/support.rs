//! What the tests of the program share.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use harness::results::{Comparison, Run};
use harness::workload::op::Kind;

pub(crate) fn enginelab(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_enginelab"));
    command.args(arguments);
    command
}

/// `compare insert` of a few records into `directory`.
pub(crate) fn insert(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = enginelab(&["compare", "insert", "--items", "50", "--dir"]);
    command.arg(directory).args(arguments);
    command
}

pub(crate) fn json_of(mut command: Command) -> Comparison {
    let output = command.arg("--json").assert().success().get_output().stdout.clone();
    serde_json::from_slice(&output).unwrap()
}

pub(crate) fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

/// Exit status 2, nothing on standard output, and one line on standard error, which is returned.
pub(crate) fn refused(mut command: Command) -> String {
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

/// Runs a workload with a result in JSON, which must be without a problem.
pub(crate) fn sound(directory: &Path, arguments: &[&str]) -> Comparison {
    let comparison = json_of(compare(directory, arguments));
    assert_eq!(comparison.problems(), Vec::<String>::new());
    comparison
}

/// Runs a workload and returns its report.
pub(crate) fn printed(directory: &Path, arguments: &[&str]) -> String {
    let printed = stdout(compare(directory, arguments));
    assert!(printed.lines().all(|line| line.chars().count() <= 100), "{printed}");
    printed
}

/// What a program prints that ends well.
pub(crate) fn stdout(mut command: Command) -> String {
    let output = command.assert().success().get_output().stdout.clone();
    String::from_utf8(output).unwrap()
}

/// `compare` with its data in `directory`.
pub(crate) fn compare(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = enginelab(&["compare"]);
    command.args(arguments).arg("--dir").arg(directory);
    command
}

/// A file in `directory`, and its path.
pub(crate) fn file(directory: &Path, name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = directory.join(name);
    fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The lines with their columns one space apart.
pub(crate) fn rows(printed: &str) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    printed.lines().map(words).collect()
}

/// Operations of `kind` in the phase called `phase`.
pub(crate) fn operations(run: &Run, phase: &str, kind: Kind) -> u64 {
    let traffic = run.phase(phase).unwrap().traffic.as_ref().unwrap();
    traffic.kinds.get(&kind).map_or(0, |figures| figures.operations)
}

/// Records that were asked for and not there, in all phases.
pub(crate) fn not_found(run: &Run) -> u64 {
    let traffic = run.phases.iter().filter_map(|phase| phase.traffic.as_ref());
    traffic.flat_map(|traffic| traffic.kinds.values()).map(|figures| figures.not_found).sum()
}
