//! Files that go in and out: whatever is named, nothing is lost, and nothing hangs.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use tempfile::TempDir;

use crate::support::{enginelab, insert, refused, stdout};

/// Files of every kind that a command reads.
struct Place {
    directory: TempDir,
}

const TRACE: &str = "1,a,1,5,1,set,0\n2,a,1,5,1,get,0\n";
const PROPERTIES: &str =
    "recordcount=10\noperationcount=10\nreadproportion=1\nupdateproportion=0\n";

impl Place {
    fn new() -> Self {
        let place = Self { directory: TempDir::new().unwrap() };
        fs::create_dir(place.path("data")).unwrap();
        fs::write(place.path("trace"), TRACE).unwrap();
        fs::write(place.path("properties"), PROPERTIES).unwrap();
        fs::write(place.path("toml"), stdout(enginelab(&["compare", "custom", "--example"])))
            .unwrap();
        let mut command = insert(&place.path("data"), &["--engines", "memory", "--out"]);
        command.arg(place.path("result")).assert().success();
        fs::copy(place.path("result"), place.path("other result")).unwrap();
        let mut command = enginelab(&["record", "insert", "--items", "20", "--out"]);
        command.arg(place.path("recorded")).assert().success();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, words: &str, input: &Path) -> Command {
        let mut command = enginelab(&[]);
        for word in words.split(' ') {
            match word {
                "INPUT" => command.arg(input),
                "OTHER" => command.arg(self.path("other result")),
                "OUT" => command.arg(self.path("out")),
                "DATA" => command.arg(self.path("data")),
                _ => command.arg(word),
            };
        }
        command
    }

    fn names(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.directory.path()).unwrap();
        let mut names: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        names.sort();
        names
    }
}

const REPORTS: &[&str] = &["--out", "--markdown", "--csv", "--html"];

/// Every command that reads a file: the kind of file, the command, and the flags by which it
/// writes files.
const READERS: [(&str, &str, &[&str]); 12] = [
    ("trace", "compare trace INPUT --engines memory --dir DATA", REPORTS),
    ("recorded", "compare trace INPUT --engines memory --dir DATA", REPORTS),
    ("toml", "compare custom INPUT --engines memory --dir DATA", REPORTS),
    ("properties", "compare ycsb -P INPUT --engines memory --dir DATA", REPORTS),
    (
        "result",
        "compare insert --items 50 --engines memory --dir DATA --resume INPUT --out OUT",
        &["--markdown", "--csv", "--html"],
    ),
    ("trace", "record trace INPUT", &["--out"]),
    ("recorded", "record trace INPUT", &["--out"]),
    ("toml", "record custom INPUT", &["--out"]),
    ("properties", "record ycsb -P INPUT", &["--out"]),
    ("result", "report INPUT", &["--markdown", "--csv", "--html"]),
    ("result", "merge OTHER INPUT", &["--out"]),
    ("result", "diff OTHER INPUT", &[]),
];

#[test]
fn nothing_is_written_over_its_own_input() {
    let place = Place::new();
    let mut ways = vec![PathBuf::from("same")];
    #[cfg(unix)]
    ways.extend(
        ["./around", "symbolic link", "hard link", "symbolic link to a directory"]
            .map(PathBuf::from),
    );
    for (input, words, flags) in READERS {
        let path = place.path(input);
        let content = fs::read(&path).unwrap();
        for way in &ways {
            let link = place.path("link");
            let output = match way.to_str().unwrap() {
                "same" => path.clone(),
                "./around" => place.path("data/../.").join(input),
                way => {
                    #[cfg(unix)]
                    match way {
                        "symbolic link" => std::os::unix::fs::symlink(input, &link).unwrap(),
                        "hard link" => fs::hard_link(&path, &link).unwrap(),
                        _ => std::os::unix::fs::symlink(".", &link).unwrap(),
                    }
                    if way.ends_with("directory") { link.join(input) } else { link.clone() }
                }
            };
            for (flag, input, output) in
                flags.iter().flat_map(|flag| [(flag, &path, &output), (flag, &output, &path)])
            {
                let mut command = place.command(words, input);
                command.arg(flag).arg(output);
                let said = refused(command);
                let expected = format!("{flag} {} would write over what is read", output.display());
                assert!(said.contains(&expected), "{words}, {flag}, {way:?}: {said}");
                assert_eq!(fs::read(&path).unwrap(), content, "{words}, {flag}, {way:?}");
            }
            fs::remove_file(&link).ok();
        }
    }
    assert_eq!(place.names().len(), 7, "{:?}", place.names());
}

/// What goes on may be written where it was read.
#[test]
fn a_comparison_that_goes_on_is_written_where_it_was() {
    let place = Place::new();
    let result = place.path("result");
    for words in ["", " --out INPUT"] {
        let words = format!(
            "compare insert --items 50 --engines memory --dir DATA --quiet --resume INPUT{words}"
        );
        place.command(&words, &result).assert().success();
    }
}

/// A pipe that nobody writes to would be waited for, and a device has no end.
#[test]
#[cfg(unix)]
fn only_ordinary_files_are_read() {
    let place = Place::new();
    let pipe = place.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let link = place.path("link");
    std::os::unix::fs::symlink("pipe", &link).unwrap();
    let directory = place.path("data");
    for (_, words, flags) in READERS {
        for input in [&pipe, &link, &directory, Path::new("/dev/zero"), Path::new("/dev/null")] {
            let mut command = place.command(words, input);
            if words.starts_with("record") {
                command.arg(flags[0]).arg(place.path("out"));
            }
            // A hang ends as a failure.
            let said = refused({
                command.timeout(std::time::Duration::from_secs(60));
                command
            });
            let expected = format!("{} is not an ordinary file", input.display());
            assert!(said.contains(&expected), "{words}: {said}");
        }
    }
    assert!(!place.path("out").exists());
}

/// Files with a hole are large without taking space.
#[test]
fn what_is_read_as_a_whole_is_bounded() {
    let place = Place::new();
    for (input, words, flags) in READERS {
        let (bytes, expected) = match input {
            "toml" | "properties" => ((1 << 20) + 1, "at most 1 MiB"),
            "result" => ((1 << 30) + 1, "at most 1 GiB"),
            _ => continue,
        };
        let large = place.path("large");
        fs::File::create(&large).unwrap().set_len(bytes).unwrap();
        let mut command = place.command(words, &large);
        if words.starts_with("record") {
            command.arg(flags[0]).arg(place.path("out"));
        }
        let said = refused(command);
        let expected = format!("{}: expected a file of {expected}", large.display());
        assert!(said.contains(&expected), "{words}: {said}");
    }
}

/// Editors of Windows put a mark there; it is no part of the text.
#[test]
fn a_byte_order_mark_is_no_text() {
    let place = Place::new();
    let packed = |text: &[u8]| zstd::encode_all(text, 3).unwrap();
    for (input, words, flags) in READERS {
        let content = fs::read(place.path(input)).unwrap();
        if input == "recorded" {
            continue;
        }
        let marked = [b"\xef\xbb\xbf", &content[..]].concat();
        let mut texts = vec![marked.clone()];
        if input == "trace" {
            texts.push(packed(&marked));
            texts.push([b"\xef\xbb\xbftimestamp,key\n", &content[..]].concat());
        }
        for text in texts {
            let file = place.path("marked");
            fs::write(&file, text).unwrap();
            let mut command = place.command(words, &file);
            if words.starts_with("record") {
                command.arg(flags[0]).arg(place.path("out"));
            }
            command.assert().success();
        }
    }
}

/// What is wrong is told with what was expected, and not with all that was found.
#[test]
fn an_error_is_no_longer_than_a_screen() {
    const MOST: usize = 2_000;
    let place = Place::new();
    let long = "x".repeat(500_000);
    let example = fs::read_to_string(place.path("toml")).unwrap();
    let result = fs::read_to_string(place.path("result")).unwrap();
    let phases: String =
        (0..1_000).map(|n| format!("[[phases]]\nname = 'p{n}'\nkind = 'sync'\n")).collect();
    let many = format!("keys = {{ count = 9, bytes = 9 }}\nvalues = {{ bytes = 1 }}\n{phases}");
    fs::write(place.path("many"), &many).unwrap();
    for (result, phases) in [("of many", many.clone()), ("of others", many.replace("p999", "q"))] {
        fs::write(place.path("phases"), phases).unwrap();
        let words = "compare custom INPUT --engines memory --dir DATA --quiet --out OUT";
        place.command(words, &place.path("phases")).assert().success();
        fs::rename(place.path("out"), place.path(result)).unwrap();
    }
    let read = |name: &str| fs::read_to_string(place.path(name)).unwrap();
    for (input, content, expected) in [
        ("properties", long.clone(), "expected name=value"),
        ("properties", format!("recordcount={long}"), "expected a whole number from 1"),
        ("properties", format!("={long}"), "a name is missing"),
        ("toml", example.replacen("[keys]", &format!("{long} = 1\n[keys]"), 1), "unknown field"),
        ("toml", format!("x = '{long}' '{long}'"), "line 1: "),
        ("toml", example.replacen("\"load\"", &format!("\"{long}\""), 1), "1 to 40 characters"),
        ("trace", long.clone(), "expected a trace of Twitter's"),
        ("trace", format!("1,{long},1,2,3,get,0\n"), "expected a key of 1 to 65535 bytes"),
        ("result", long.clone(), "expected value"),
        ("result", result.replace("enginelab.compare", &long), "this program reads"),
        ("result", result.replace("\"process\"", &format!("\"{long}\"")), "durability level"),
        ("result", result.replace("\"memory\"", &format!("\"{long}\"")), ""),
        ("result", read("of many"), ""),
    ] {
        let readers = READERS.iter().filter(|(kind, ..)| *kind == input);
        for (_, words, flags) in readers {
            let file = place.path("long");
            fs::write(&file, &content).unwrap();
            let mut command = place.command(words, &file);
            if words.starts_with("record") {
                command.arg(flags[0]).arg(place.path("out"));
            }
            let output = command.output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(said.chars().count() < MOST, "{words}: {} characters", said.chars().count());
            assert!(output.status.code() != Some(2) || said.contains(expected), "{words}: {said}");
        }
    }
    // Results of very different work, and of almost the same.
    for (words, expected) in [
        ("diff OTHER INPUT", "not the same work: "),
        ("merge OTHER INPUT", "is of other work than"),
        ("compare insert --items 50 --engines memory --dir DATA --resume INPUT", "cannot resume: "),
    ] {
        let said = refused(place.command(words, &place.path("of many")));
        assert!(said.contains(expected) && said.chars().count() < MOST, "{words}: {said}");
    }
    let mut command = enginelab(&["diff"]);
    let said = refused({
        command.args([place.path("of many"), place.path("of others")]);
        command
    });
    let expected = "phases[999].name was \"p999\" in the first, and is \"q\" in the second";
    assert!(said.contains(expected), "{said}");
    for flag in ["--engines", "--items", "--durability", "--out", "--pair"] {
        let said = refused(insert(&place.path("data"), &[flag, &long[..100_000]]));
        assert!(said.chars().count() < MOST, "{flag}: {} characters", said.chars().count());
    }
}

/// A full disk is told by the name that the user knows.
#[test]
#[cfg(target_os = "linux")]
fn what_cannot_be_written_is_told_by_its_own_name() {
    let place = Place::new();
    let trace = place.path("trace");
    let lines: String = (0..200_000).map(|n| format!("{n},key{n},9,9,1,set,0\n")).collect();
    fs::write(&trace, lines).unwrap();
    let temporary = place.path("data");
    for (words, name) in [
        ("compare trace INPUT --engines memory --dir DATA --temp-dir DATA", &temporary),
        ("record trace INPUT --out OUT --temp-dir DATA", &temporary),
        ("record insert --items 300000 --out OUT", &place.path("out")),
        ("report result --html OUT", &place.path("out")),
    ] {
        // No file grows over 64 KiB: the call fails, as on a full disk.
        let mut command = Command::new("sh");
        let words: Vec<_> = words
            .split(' ')
            .map(|word| match word {
                "INPUT" => trace.clone(),
                "OUT" => place.path("out"),
                "DATA" => temporary.clone(),
                "result" => place.path("result"),
                word => word.into(),
            })
            .collect();
        let limited = "trap '' XFSZ; ulimit -f 32; exec \"$@\"";
        command.args(["-c", limited, "sh", env!("CARGO_BIN_EXE_enginelab")]).args(words);
        let said = refused(command);
        let expected = [
            format!("cannot write {}: File too large", name.display()),
            format!("cannot write a temporary file in {}: File too large", name.display()),
        ];
        assert!(expected.iter().any(|expected| said.contains(expected)), "{said}");
    }
}

/// Hours of measuring are not lost to one file.
#[test]
#[cfg(target_os = "linux")]
fn what_was_measured_is_told_whatever_cannot_be_written() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (out, page, markdown) = (path("out"), path("page"), path("markdown"));
    let compare = |more: &[&str]| {
        // Files may grow to 8 or 16 KiB, which the shells do not agree on.
        let limited = "trap '' XFSZ; ulimit -f 16; exec \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", limited, "sh", env!("CARGO_BIN_EXE_enginelab"), "compare", "insert"]);
        command.args(["--items", "50", "--repeats", "5", "--engines", "memory,null"]);
        command.arg("--dir").arg(directory.path()).args(more);
        command.arg("--html").arg(&page).arg("--markdown").arg(&markdown);
        let output = command.output().unwrap();
        let [said, printed] = [output.stderr, output.stdout].map(String::from_utf8);
        (output.status.code(), said.unwrap(), printed.unwrap())
    };
    for (more, file) in [(vec!["--out", out.to_str().unwrap()], &out), (vec![], &page)] {
        let (code, said, printed) = compare(&more);
        assert_eq!(code, Some(2), "{said}");
        let expected = format!("enginelab: cannot write {}: File too large", file.display());
        assert!(said.trim_end().lines().last().unwrap().starts_with(&expected), "{said}");
        assert!(said.contains("[10/10]") && printed.contains("Time in seconds"), "{said}{printed}");
        let mut names = fs::read_dir(directory.path()).unwrap();
        assert_eq!(names.next().unwrap().unwrap().path(), markdown, "whole, and nothing else");
        assert!(names.next().is_none());
        fs::remove_file(&markdown).unwrap();
    }
}
