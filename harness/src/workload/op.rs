//! Operations as a workload names them: what to do with which record. The executor turns them into
//! keys and values, with the clock stopped.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What is done. The names stand in results, the numbers in recorded traces: never change one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Kind {
    /// Put a record that was not there.
    Insert,
    /// Put a record that may be there, without reading it.
    Update,
    /// Remove a record.
    Delete,
    /// Get a record.
    Read,
    /// Visit records in key order, from a key on.
    Scan,
    /// The same, backward.
    ScanBack,
    /// Visit every record once, in whatever order is cheapest.
    ScanAll,
    /// Get a record, change a part of it and put it back: how a store of whole values updates
    /// one field.
    UpdateField,
    /// Get a record and put another value in its place.
    ReadModifyWrite,
    /// Several puts and deletions in one call.
    BatchWrite,
    /// Several gets that are timed together.
    BatchRead,
    /// Make everything acknowledged so far survive power loss.
    Sync,
    /// Visit the first record from a key on, in key order; it is found if it has that key.
    Seek,
}

impl Kind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 13] = [
        Self::Insert,
        Self::Update,
        Self::Delete,
        Self::Read,
        Self::Scan,
        Self::ScanBack,
        Self::ScanAll,
        Self::UpdateField,
        Self::ReadModifyWrite,
        Self::BatchWrite,
        Self::BatchRead,
        Self::Sync,
        Self::Seek,
    ];

    /// Whether the record has another value afterwards.
    pub fn puts(self) -> bool {
        matches!(self, Self::Insert | Self::Update | Self::UpdateField | Self::ReadModifyWrite)
    }

    /// Whether it changes what is there.
    pub fn writes(self) -> bool {
        self.puts() || matches!(self, Self::Delete | Self::BatchWrite)
    }

    /// Whether it is about a record, or begins at one; else about all that is there.
    pub fn has_record(self) -> bool {
        !matches!(self, Self::Sync | Self::ScanAll)
    }

    /// Whether the engine must be able to scan in key order.
    pub fn needs_order(self) -> bool {
        matches!(self, Self::Scan | Self::ScanBack | Self::Seek)
    }

    /// In a few words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Read => "read",
            Self::Scan => "scan",
            Self::ScanBack => "scan back",
            Self::ScanAll => "scan all",
            Self::UpdateField => "update field",
            Self::ReadModifyWrite => "read-modify-write",
            Self::BatchWrite => "batch write",
            Self::BatchRead => "batch read",
            Self::Sync => "sync",
            Self::Seek => "seek",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.words())
    }
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// What is done.
    pub kind: Kind,
    /// With which record.
    pub record: u64,
    /// Which of the record's values is put; a number that means something to the workload alone.
    pub version: u64,
    /// How many records a scan visits at most.
    pub length: u64,
}

impl Op {
    /// An operation that puts version `version` of `record`.
    pub fn put(kind: Kind, record: u64, version: u64) -> Self {
        debug_assert!(kind.puts());
        Self { kind, record, version, length: 0 }
    }

    /// A get of `record`.
    pub fn read(record: u64) -> Self {
        Self { kind: Kind::Read, record, version: 0, length: 0 }
    }

    /// A deletion of `record`.
    pub fn delete(record: u64) -> Self {
        Self { kind: Kind::Delete, record, version: 0, length: 0 }
    }

    /// A scan of at most `length` records from the key of `record` on.
    pub fn scan(kind: Kind, record: u64, length: u64) -> Self {
        debug_assert!(kind.needs_order());
        Self { kind, record, version: 0, length }
    }

    /// A visit to every record.
    pub fn scan_all() -> Self {
        Self { kind: Kind::ScanAll, record: 0, version: 0, length: u64::MAX }
    }

    /// A sync.
    pub fn sync() -> Self {
        Self { kind: Kind::Sync, record: 0, version: 0, length: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_listed_by_their_numbers() {
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number, "{kind}");
        }
    }
}
