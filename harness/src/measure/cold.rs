//! Dropping the page cache, so that a run begins with a cold one.

use std::fs;

use crate::{Error, Result};

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Whether the page cache can be dropped by this process.
///
/// # Errors
/// [`Error::Usage`] with the reason.
pub fn check_can_drop() -> Result<()> {
    let opened = fs::File::options().write(true).open(DROP_CACHES);
    opened.map(drop).map_err(|error| {
        let needs = "Linux, and the rights of root outside a container";
        Error::Usage(format!("--cold cannot be had here: {DROP_CACHES}: {error}; it needs {needs}"))
    })
}

/// Drops pages, directory entries and inodes that are not in use and not dirty: write those first.
///
/// # Errors
/// [`Error::Io`] if the kernel refuses.
pub fn drop_page_cache() -> Result<()> {
    fs::write(DROP_CACHES, "3").map_err(Error::io("write", DROP_CACHES))
}
