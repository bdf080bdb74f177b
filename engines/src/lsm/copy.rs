//! Giving a file a place in another directory.

use std::path::Path;

use crate::fs::{Access, Create, FileSystem, ReadFile};
use crate::{Error, Result};

const CHUNK_BYTES: u64 = 1 << 20;

/// Gives the file at `from`, which nobody changes any more, the name `to` as well; copies it where
/// the system cannot (another file system, one without links). The bytes survive power loss then
/// if those of `from` do, the name does not yet.
///
/// # Errors
/// Those of the system; `to` must be free.
pub(crate) fn link_or_copy(fs: &dyn FileSystem, from: &Path, to: &Path) -> Result<()> {
    use std::io::ErrorKind::{AlreadyExists, NotFound, StorageFull};
    match fs.hard_link(from, to) {
        Err(Error::Io { source, .. })
            if !matches!(source.kind(), AlreadyExists | NotFound | StorageFull) =>
        {
            let from = fs.open(from, Access::Positioned)?;
            copy(fs, &*from, to, from.length()?)
        }
        linked => linked,
    }
}

/// Copies the first `length` bytes of a file to a new one and syncs it.
pub(crate) fn copy(fs: &dyn FileSystem, from: &dyn ReadFile, to: &Path, length: u64) -> Result<()> {
    let target = fs.create(to, Create::New)?;
    let mut scratch = Vec::new();
    let mut at = 0;
    while at < length {
        let chunk = usize::try_from((length - at).min(CHUNK_BYTES)).unwrap_or_default();
        target.write_at(at, from.read_at(at, chunk, &mut scratch)?)?;
        at += chunk as u64;
    }
    target.sync()
}
