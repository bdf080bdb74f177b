//! RocksDB, whichever way it comes: as the crate that compiles the newest one (feature `rocksdb`),
//! else as the system's library. What both ways share.

use std::fs;
use std::path::Path;

#[cfg(feature = "rocksdb")]
pub(super) use super::adapter::built_in as available;
#[cfg(not(feature = "rocksdb"))]
pub(super) use super::capi::{rocksdb_available as available, rocksdb_open as open};
#[cfg(feature = "rocksdb")]
pub(super) use super::rocksdb_crate::open;
use crate::Durability;
use crate::fs::{FileSystem, RealFs};

/// - `buffered`: the option `manual_wal_flush`: the log waits in the process until `sync` or
///   `close`. Writing without a log would be cheaper still, but would make every `sync` a flush of
///   the memtable.
/// - `process`: the default: each write goes to the log by a write call.
/// - `power`: the write option `sync`, one fdatasync for several writers at once.
pub(super) fn durability(level: Durability) -> Option<&'static str> {
    Some(match level {
        Durability::Buffered => "manual_wal_flush: the log waits in the process",
        Durability::Process => "default: each write goes to the log, not synced",
        Durability::Power => "WriteOptions sync: fdatasync of the log at each write",
    })
}

/// The version of the library that opened the directory last. Its C interface does not tell, but
/// every open writes it into a new `OPTIONS-` file.
pub(super) fn version(directory: &Path) -> Option<String> {
    let files = RealFs.list(directory).ok()?;
    let newest = files
        .iter()
        .filter_map(|entry| {
            let number: u64 = entry.name()?.strip_prefix("OPTIONS-")?.parse().ok()?;
            Some((number, &entry.path))
        })
        .max()?;
    let text = fs::read_to_string(newest.1).ok()?;
    text.lines().find_map(|line| line.trim().strip_prefix("rocksdb_version=")).map(str::to_owned)
}

/// Neither RocksDB nor LevelDB has a code for it.
pub(super) fn is_lock_message(message: &str) -> bool {
    ["IO error: lock ", "While lock file", "lock hold by current process"]
        .iter()
        .any(|part| message.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_newest_options() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert_eq!(version(path), None);
        for (file, version) in [("OPTIONS-000012", "8.9.1"), ("OPTIONS-000007", "7.8.3")] {
            let text = format!("# comment\n[Version]\n  rocksdb_version={version}\n");
            fs::write(path.join(file), text).unwrap();
        }
        fs::write(path.join("OPTIONS-000099.dbtmp"), "rocksdb_version=0\n").unwrap();
        assert_eq!(version(path).unwrap(), "8.9.1");
    }
}
