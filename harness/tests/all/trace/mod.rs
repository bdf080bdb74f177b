//! The replay of traces, from outside.

mod bad_lines;
mod recorded;
mod requests;
mod synthetic;

use std::fs;
use std::path::{Path, PathBuf};

use harness::results::Comparison;
use harness::workload::Workload;
use harness::workload::trace::Trace;
use tempfile::TempDir;

use crate::support::{self, sound};

/// Files of traces, and a place for the data beside them.
pub(super) struct Place {
    pub(super) directory: TempDir,
    pub(super) data: PathBuf,
}

impl Place {
    pub(super) fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let data = directory.path().join("data");
        fs::create_dir(&data).unwrap();
        Self { directory, data }
    }

    /// A file, and its path.
    pub(super) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        support::file(self.directory.path(), name, bytes)
    }

    pub(super) fn replay(&self, files: &[&str], more: &[&str]) -> Comparison {
        sound(&self.data, &[&["trace"], files, more].concat())
    }

    pub(super) fn is_clean(&self) -> bool {
        fs::read_dir(&self.data).unwrap().next().is_none()
    }
}

pub(super) fn trace_of(comparison: &Comparison) -> &Trace {
    match &comparison.workload.workload {
        Workload::Trace(trace) => trace,
        other => panic!("another workload: {}", other.title()),
    }
}

pub(super) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
