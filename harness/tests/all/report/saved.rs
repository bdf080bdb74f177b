//! Results in files: what is read is what was written, and reports are made of it later.

use std::fs;

use harness::files::output;
use harness::report::{csv, json, markdown, terminal};
use harness::results::SCHEMA;

use super::comparison;

#[test]
fn results_come_back_from_json_as_they_were() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("result.json");
    let comparison = comparison();
    output::replace(&path, &json::render(&comparison).unwrap()).unwrap();
    assert!(json::read(&path).unwrap() == comparison);
}

#[test]
fn fields_of_later_versions_are_passed_over_and_other_schemas_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("result.json");
    let text = json::render(&comparison()).unwrap();
    let later = text.replace("\"interrupted\"", "\"later\": {\"field\": 1},\n  \"interrupted\"");
    fs::write(&path, later).unwrap();
    assert!(json::read(&path).unwrap() == comparison());
    for (wrong, expected) in [
        (text.replace(SCHEMA, "enginelab.compare/1"), "\"enginelab.compare/1\""),
        ("{}".into(), "no field \"schema\""),
        ("{".into(), "EOF"),
        (text.replace("\"process\"", "\"fsync\""), "fsync"),
        (text.replace("500000", "0"), "nonzero"),
    ] {
        fs::write(&path, wrong).unwrap();
        let error = json::read(&path).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("result.json"), "{error}");
    }
}

#[test]
fn a_saved_result_is_reported_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let saved = json::render(&comparison()).unwrap();
    fs::write(path("r.json"), &saved).unwrap();
    let report = |flags: &[&str]| {
        let mut command = assert_cmd::Command::cargo_bin("enginelab").unwrap();
        command.current_dir(directory.path()).arg("report").arg("r.json").args(flags);
        command.assert()
    };
    report(&["--csv", "r.csv", "--markdown", "r.md"]).success().stdout("");
    assert_eq!(fs::read_to_string(path("r.csv")).unwrap(), csv::render(&comparison()).unwrap());
    let markdown = markdown::render(&comparison(), &[]);
    assert_eq!(fs::read_to_string(path("r.md")).unwrap(), markdown);
    report(&[]).success().stdout(terminal::render(&comparison(), &[], false));
    let said = |flags: &[&str]| {
        let output = report(flags).code(2).get_output().stderr.clone();
        String::from_utf8(output).unwrap()
    };
    assert!(said(&["--csv", "r.json"]).contains("--csv r.json would write over what is read"));
    assert!(said(&["--csv", "a", "--markdown", "a"]).contains("--markdown and --csv both name a"));
    assert!(said(&["--pair", "lsm,lmdb"]).contains("lmdb, which did not run"));
    assert!(!path("a").exists());
    assert_eq!(fs::read_to_string(path("r.json")).unwrap(), saved);
}
