//! What is cut off a data file is kept under another name, unless it surely is nothing.
//!
//! A crash leaves a file that ends in a part of a record, in filler, in zeros. Opening cuts that
//! off, or the next load would stumble over it again. But the same may be seen where a disk has
//! decayed: a size that lost a bit claims all that follows, and a page that reads as zeros was
//! perhaps written once. Whole records may lie behind it. So what is cut off is copied first, to
//!
//! ```text
//! <id>.bitcask.data.<offset>.cut    what lay in the data file from that offset on
//! ```
//!
//! Nobody loads such a file, neither we nor Basho's Bitcask, and nobody removes it: whoever does
//! not want it may.

use std::path::{Path, PathBuf};

use super::data_file::DataFile;
use super::names;
use crate::Result;
use crate::fs::{Create, FileSystem};

const COPY_BYTES: u64 = 1 << 20;

/// Copies what `data` holds from `offset` on; returns to where, or `None` if that is only filler or
/// zeros. The copy is durable then.
pub(super) fn keep(
    fs: &dyn FileSystem,
    directory: &Path,
    data: &DataFile,
    offset: u64,
) -> Result<Option<PathBuf>> {
    let mut is_nothing = true;
    in_pieces(data, offset, |_, piece| {
        is_nothing &= piece.iter().all(|byte| *byte == 0 || *byte == 0xff);
        Ok(())
    })?;
    if is_nothing {
        return Ok(None);
    }
    let path = names::set_aside(directory, data.id, offset);
    // What an opening left that did not come to its end is written anew.
    let file = fs.create(&path, Create::Replace)?;
    in_pieces(data, offset, |at, piece| file.write_at(at - offset, piece))?;
    file.sync()?;
    fs.sync_directory(directory)?;
    Ok(Some(path))
}

fn in_pieces(
    data: &DataFile,
    mut offset: u64,
    mut visit: impl FnMut(u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let (length, mut scratch) = (data.usage.length(), Vec::new());
    while offset < length {
        let size = COPY_BYTES.min(length - offset);
        let piece =
            data.reader.read_at(offset, usize::try_from(size).unwrap_or(0), &mut scratch)?;
        visit(offset, piece)?;
        offset += size;
    }
    Ok(())
}
