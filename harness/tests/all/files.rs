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
