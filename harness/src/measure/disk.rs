//! The size of a directory.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// What a directory takes, folder entries included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskUsage {
    /// The lengths of the files and folders: what the published comparison measured.
    pub apparent_bytes: u64,
    /// The blocks that the file system gave them: more where space is allocated ahead, less where
    /// files have holes.
    pub allocated_bytes: u64,
}

/// Measures `directory` and everything in it. A file with several names counts once; files that
/// vanish meanwhile do not count, since an engine may be at work.
///
/// # Errors
/// [`Error::Io`] for what cannot be looked at.
pub fn usage(directory: &Path) -> Result<DiskUsage> {
    let mut walk = Walk::default();
    walk.visit(directory)?;
    Ok(walk.total)
}

#[derive(Default)]
struct Walk {
    total: DiskUsage,
    /// Files with several names that have been counted.
    seen: HashSet<(u64, u64)>,
}

impl Walk {
    fn visit(&mut self, path: &Path) -> Result<()> {
        let Some(metadata) = unless_gone(fs::symlink_metadata(path), path)? else { return Ok(()) };
        if !self.count(&metadata) || !metadata.is_dir() {
            return Ok(());
        }
        let Some(entries) = unless_gone(fs::read_dir(path), path)? else { return Ok(()) };
        for entry in entries {
            if let Some(entry) = unless_gone(entry, path)? {
                self.visit(&entry.path())?;
            }
        }
        Ok(())
    }

    /// Whether the file was counted now, not before.
    fn count(&mut self, metadata: &Metadata) -> bool {
        if let Some(identity) = identity_if_shared(metadata)
            && !self.seen.insert(identity)
        {
            return false;
        }
        self.total.apparent_bytes += metadata.len();
        self.total.allocated_bytes += allocated_bytes(metadata);
        true
    }
}

fn unless_gone<T>(outcome: io::Result<T>, path: &Path) -> Result<Option<T>> {
    match outcome {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("measure", path)(error)),
    }
}

#[cfg(unix)]
fn allocated_bytes(metadata: &Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    // Always in units of 512 bytes, whatever the file system's block size.
    metadata.blocks() * 512
}

#[cfg(not(unix))]
fn allocated_bytes(metadata: &Metadata) -> u64 {
    metadata.len()
}

#[cfg(unix)]
fn identity_if_shared(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    (metadata.is_file() && metadata.nlink() > 1).then(|| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity_if_shared(_: &Metadata) -> Option<(u64, u64)> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn files_folders_holes_and_second_names_are_counted_right() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("folder");
        fs::create_dir(&folder).unwrap();
        fs::write(root.path().join("a"), vec![1; 10_000]).unwrap();
        fs::write(folder.join("b"), b"xyz").unwrap();
        fs::hard_link(folder.join("b"), root.path().join("second name of b")).unwrap();
        let hole = fs::File::create(folder.join("hole")).unwrap();
        hole.set_len(5_000_000).unwrap();

        let folders = [root.path(), folder.as_path()].map(|path| path.metadata().unwrap().len());
        let usage = usage(root.path()).unwrap();
        assert_eq!(usage.apparent_bytes, 10_000 + 3 + 5_000_000 + folders[0] + folders[1]);
        assert!(usage.allocated_bytes < 1_000_000, "the hole takes no blocks: {usage:?}");
        let blocks = fs::metadata(root.path().join("a")).unwrap().blocks();
        assert!(usage.allocated_bytes >= blocks * 512);
    }

    #[test]
    fn a_directory_that_is_not_there_is_empty() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(usage(&root.path().join("none")).unwrap(), DiskUsage::default());
    }
}
