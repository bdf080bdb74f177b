//! Directories that the original programs wrote (see `tests/golden/README.md`), and what those
//! programs read back from them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use engines::Engine;
use sha2::{Digest, Sha256};

/// A copy of a golden directory, to open for writing.
pub(crate) struct Golden {
    temporary: tempfile::TempDir,
    pub expected: Expected,
}

/// Key -> (value length, SHA-256 of the value).
pub(crate) type Expected = BTreeMap<Vec<u8>, (usize, [u8; 32])>;

impl Golden {
    /// `family` is `bitcask` or `leveldb`.
    pub(crate) fn copy(family: &str, name: &str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(family);
        let temporary = copied(&root.join(name));
        let expected = match fs::read_to_string(root.join(format!("{name}.expected.tsv"))) {
            Ok(text) => text.lines().map(parse_line).collect(),
            Err(_) => Expected::new(),
        };
        Self { temporary, expected }
    }

    /// The copy.
    pub(crate) fn directory(&self) -> &Path {
        self.temporary.path()
    }

    /// A file of the copy.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory().join(name)
    }
}

/// A copy of the files of a directory as they are at this moment.
pub(crate) fn copied(directory: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    copy_files(directory, copy.path());
    copy
}

/// Copies the files of a directory into another one, over those of the same name.
pub(crate) fn copy_files(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Removes all hint files of a Bitcask.
pub(crate) fn remove_hints(directory: &Path) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "hint") {
            fs::remove_file(path).unwrap();
        }
    }
}

/// What an engine holds, in the form of the expected files.
pub(crate) fn contents(engine: &dyn Engine) -> Expected {
    let mut found = Expected::new();
    engine
        .fold(&mut |key, value| {
            let previous = found.insert(key.to_vec(), fingerprint(value));
            assert!(previous.is_none(), "the fold visited {key:?} twice");
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    found
}

/// Length and hash of a value.
pub(crate) fn fingerprint(value: &[u8]) -> (usize, [u8; 32]) {
    (value.len(), Sha256::digest(value).into())
}

fn parse_line(line: &str) -> (Vec<u8>, (usize, [u8; 32])) {
    let fields: Vec<&str> = line.split('\t').collect();
    let [key, length, hash] = fields[..] else { panic!("three fields in {line:?}") };
    (unhex(key), (length.parse().unwrap(), unhex(hash).try_into().unwrap()))
}

fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "{text:?}");
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

#[test]
fn the_expected_files_are_read() {
    let golden = Golden::copy("bitcask", "basic");
    assert_eq!(golden.expected.len(), 900);
    assert!(golden.directory().join("1.bitcask.data").exists());
}
