//! Figures of single data files.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use super::data_file::DataFile;
use super::names;
use crate::Result;
use crate::fs::FileSystem;

/// What a data file holds at one moment. All sizes are in bytes.
///
/// Each byte of the file is counted once: `live_bytes`, `dead_bytes`, `tombstone_bytes` and
/// `damaged_bytes` add up to `length_bytes`. While other threads write, the figures of one file may
/// be a few records apart.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileStats {
    /// The number in the file's name: the larger, the later written.
    pub id: u32,
    /// The file.
    pub path: PathBuf,
    /// What is written to it. The file itself may be up to 64 KiB longer while it is active.
    pub length_bytes: u64,
    /// Records that a read finds, and such as have [expired](super::Options::expiry) and were not
    /// dropped by a merge yet.
    pub live_records: u64,
    /// The size of those records.
    pub live_bytes: u64,
    /// Records that were overwritten or deleted.
    pub dead_records: u64,
    /// The size of those records: what a merge of the file is sure to give back.
    pub dead_bytes: u64,
    /// Records that mark a deletion.
    pub tombstone_records: u64,
    /// The size of those records. A merge gives it back if no older file needs them.
    pub tombstone_bytes: u64,
    /// What is no record; see [`damage`](super::Bitcask::damage).
    pub damaged_bytes: u64,
    /// Whether something in the file could not be read: no merge touches it.
    pub is_damaged: bool,
    /// Whether the file is still appended to.
    pub is_active: bool,
    /// Whether a hint file lies beside it.
    pub has_hint: bool,
}

impl FileStats {
    pub(super) fn of(fs: &dyn FileSystem, file: &DataFile, is_active: bool) -> Result<Self> {
        let usage = &file.usage;
        let length_bytes = usage.length();
        let live_bytes = usage.live_bytes();
        let tombstone_bytes = usage.tombstone_bytes();
        let damaged_bytes = usage.damaged_bytes.load(Ordering::Acquire);
        let hint = file.path.parent().map(|directory| names::hint(directory, file.id));
        Ok(Self {
            id: file.id,
            path: file.path.clone(),
            length_bytes,
            live_records: usage.live_records.load(Ordering::Acquire),
            live_bytes,
            dead_records: usage.dead_records.load(Ordering::Acquire),
            dead_bytes: length_bytes
                .saturating_sub(live_bytes)
                .saturating_sub(tombstone_bytes)
                .saturating_sub(damaged_bytes),
            tombstone_records: usage.tombstone_records.load(Ordering::Acquire),
            tombstone_bytes,
            damaged_bytes,
            is_damaged: usage.is_damaged(),
            is_active,
            has_hint: hint.map(|hint| fs.entry(&hint)).transpose()?.flatten().is_some(),
        })
    }
}
