//! Scans and folds: a snapshot of locations, and the files they lead to held open.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::clock::Timestamp;
use super::data_file::FileSet;
use super::keydir::Location;
use super::keys::Place;
use super::shared::Shared;
use crate::engine::Visitor;
use crate::{Direction, Error, KeyRange, Result};

/// The keys in `range` at one moment, and where they lie.
///
/// Nobody waits while the keydir is walked through: a part of it that is changed meanwhile is copied
/// before. Each key in the range takes its own length and 32 bytes for as long as the scan runs.
pub(super) struct Snapshot {
    files: Arc<FileSet>,
    /// Older records have expired.
    hidden_before: Timestamp,
    /// The keys one after the other.
    keys: Vec<u8>,
    entries: Vec<Entry>,
}

struct Entry {
    key: Place,
    location: Location,
}

impl Snapshot {
    pub(super) fn take(source: &impl Source, range: KeyRange<'_>) -> Self {
        let (mut keys, mut entries) = (Vec::new(), Vec::new());
        let files = source.pin(|key, location| {
            if range.contains(key) {
                entries.push(Entry { key: Place::push(&mut keys, key), location });
            }
        });
        Self { files, hidden_before: source.hidden_before(), keys, entries }
    }

    /// Visits the records in the order of their keys.
    pub(super) fn visit(mut self, direction: Direction, visit: &mut Visitor<'_>) -> Result<()> {
        let key = |entry: &Entry| entry.key.key(&self.keys);
        match direction {
            Direction::Forward => self.entries.sort_unstable_by(|a, b| key(a).cmp(key(b))),
            Direction::Backward => self.entries.sort_unstable_by(|a, b| key(b).cmp(key(a))),
        }
        let mut scratch = Vec::new();
        for entry in &self.entries {
            let file = self.files.get(entry.location.file).ok_or_else(file_is_gone)?;
            let record = file.read(entry.location, key(entry), &mut scratch)?;
            if record.timestamp < self.hidden_before {
                continue;
            }
            if visit(record.key, record.value) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }
}

/// Visits every live record in the order of the files, which reads them from front to back. Each
/// key takes 16 bytes.
pub(super) fn fold(source: &impl Source, visit: &mut Visitor<'_>) -> Result<()> {
    let mut locations = Vec::new();
    let files = source.pin(|_, location| locations.push(location));
    let hidden_before = source.hidden_before();
    locations.sort_unstable();
    let mut scratch = Vec::new();
    for location in locations {
        let file = files.get(location.file).ok_or_else(file_is_gone)?;
        let record = file.read_any(location, &mut scratch)?;
        if record.timestamp < hidden_before {
            continue;
        }
        if visit(record.key, record.value) == ControlFlow::Break(()) {
            break;
        }
    }
    Ok(())
}

/// What can be scanned.
pub(super) trait Source {
    /// Walks through the keydir as it is at one moment, and returns the files of that moment.
    fn pin(&self, visit: impl FnMut(&[u8], Location)) -> Arc<FileSet>;

    /// Records with a smaller timestamp have expired.
    fn hidden_before(&self) -> Timestamp;
}

impl Source for Shared {
    /// Merges may move records meanwhile, from one of these files to another: neither leaves the
    /// set before `pinning` is released.
    fn pin(&self, visit: impl FnMut(&[u8], Location)) -> Arc<FileSet> {
        let (keydir, files) = {
            let _nothing_leaves = self.pinning.read();
            let _nothing_is_written = self.writer.lock();
            (self.keydir.snapshot(), self.files.load_full())
        };
        keydir.for_each(visit);
        files
    }

    fn hidden_before(&self) -> Timestamp {
        Self::hidden_before(self)
    }
}

/// Cannot happen while `pin` is right.
pub(super) fn file_is_gone() -> Error {
    Error::InvalidArgument("a data file left the set during a scan".to_owned())
}
