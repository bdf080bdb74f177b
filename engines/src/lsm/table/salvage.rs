//! Reading what is left of a damaged table.
//!
//! 1. While the index can be read, it leads to the blocks. A bad block is left out, and nothing
//!    else.
//! 2. Without it, the blocks are looked for from the start of the file on, where the first one
//!    begins: one ends where the checksum of all its bytes follows. The first bytes that no
//!    checksum follows end the search, for nothing tells where the next block begins.
//!
//! A block counts if its checksum is right, and if its keys are internal keys that ascend and come
//! after those before it.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

use super::reader::TableFile;
use super::{BlockHandle, FOOTER_BYTES, TRAILER_BYTES};
use crate::fs::ReadFile;
use crate::lsm::block::{Block, EntryCursor, KeyFormat};
use crate::lsm::coding::{Cursor, checksummed_length};
use crate::lsm::key::{ParsedKey, compare};
use crate::{Error, Result};

/// What takes entries: internal key and value.
pub(crate) type VisitEntry<'a> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'a;

/// A block ends within so many bytes as a rule.
const SEARCH_BYTES: u64 = 1 << 20;
/// What a checksum covers at least: a restart point, their count, and the type of the block.
const SMALLEST_BYTES: usize = 9;

/// Lends every entry that can be read, in order, to `visit`. Returns what is wrong with the table:
/// nothing, if it is whole.
///
/// # Errors
/// Those of `visit`, and of the system for anything but reading: what cannot be read is damage.
pub(crate) fn salvage<'a>(
    file: Arc<dyn ReadFile>,
    path: &Path,
    visit: &'a mut VisitEntry<'a>,
) -> Result<Vec<String>> {
    let size = file.length()?;
    let mut salvage = Salvage {
        file: TableFile::new(Arc::clone(&file), path, size),
        visit,
        last_key: Vec::new(),
        problems: Vec::new(),
    };
    match salvage.noting(|file| read_index(file, size))? {
        Some(index) => salvage.by_index(&index)?,
        None => {
            // Blocks may reach up to the end: nobody knows whether the footer is still there.
            salvage.file = TableFile::new(file, path, size.saturating_add(FOOTER_BYTES as u64));
            salvage.by_search(size)?;
        }
    }
    Ok(salvage.problems)
}

fn read_index(file: &TableFile, size: u64) -> Result<Block> {
    if size < FOOTER_BYTES as u64 {
        return Err(Error::corruption(file.path(), 0, format!("{size} bytes are no table")));
    }
    let (_, index) = file.read_footer()?;
    file.read_block(index, KeyFormat::Internal, true)
}

/// Reads all that the metaindex leads to.
fn read_filters(file: &TableFile) -> Result<()> {
    let (metaindex, _) = file.read_footer()?;
    let block = file.read_block(metaindex, KeyFormat::Plain, true)?;
    let mut cursor = EntryCursor::default();
    cursor.seek_to_first(block.view())?;
    while cursor.valid() {
        let handle = BlockHandle::read(&mut Cursor::new(cursor.value(block.view())))
            .map_err(|malformed| malformed.in_file(file.path(), metaindex.offset))?;
        file.read_content(handle, true)?;
        cursor.next(block.view())?;
    }
    Ok(())
}

struct Salvage<'a> {
    file: TableFile,
    visit: &'a mut VisitEntry<'a>,
    /// Of the last entry that was lent; empty at first.
    last_key: Vec<u8>,
    problems: Vec<String>,
}

impl Salvage<'_> {
    /// `None` if there is damage, which is noted.
    fn noting<T>(&mut self, read: impl FnOnce(&TableFile) -> Result<T>) -> Result<Option<T>> {
        match read(&self.file) {
            Ok(found) => Ok(Some(found)),
            Err(error) if is_damage(&error) => {
                self.problems.push(error.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn by_index(&mut self, index: &Block) -> Result<()> {
        // A lookup that asks a bad filter may miss what is there; the entries do not depend on it.
        self.noting(read_filters)?;
        let view = index.view();
        let mut cursor = EntryCursor::default();
        let mut place = self.noting(|_| cursor.seek_to_first(view))?;
        while place.is_some() && cursor.valid() {
            let handle = self.noting(|file| {
                BlockHandle::read(&mut Cursor::new(cursor.value(view)))
                    .map_err(|malformed| malformed.in_file(file.path(), 0))
            })?;
            if let Some(handle) = handle
                && let Some(block) =
                    self.noting(|file| file.read_block(handle, KeyFormat::Internal, true))?
                && let Some(keys) = self.noting(|file| ascending(&block, file.path(), handle))?
            {
                self.lend(&block, &keys, handle)?;
            }
            place = self.noting(|_| cursor.next(view))?;
        }
        Ok(())
    }

    fn by_search(&mut self, size: u64) -> Result<()> {
        let mut found: Vec<BlockHandle> = Vec::new();
        let mut at = 0;
        while at < size {
            let Some(handle) = self.noting(|file| find_block(file, at, size))? else { break };
            let block = self.noting(|file| file.read_block(handle, KeyFormat::Internal, true))?;
            let Some(block) = block else { break };
            // What follows the data blocks is no data: a filter, and two blocks of handles. Without
            // a filter the first of these is empty, as no data block is.
            let Ok(keys) = ascending(&block, self.file.path(), handle) else { break };
            let is_data = !keys.is_empty() && !leads_to(&block, &found);
            if !is_data || !self.lend(&block, &keys, handle)? {
                break;
            }
            at = handle.offset + handle.size + TRAILER_BYTES as u64;
            found.push(handle);
        }
        Ok(())
    }

    /// Lends the entries of a block, unless they do not come after those before.
    fn lend(&mut self, block: &Block, keys: &[Vec<u8>], handle: BlockHandle) -> Result<bool> {
        let (Some(first), Some(last)) = (keys.first(), keys.last()) else { return Ok(true) };
        if !self.last_key.is_empty() && compare(&self.last_key, first) != Ordering::Less {
            let problem = "its keys do not come after those of the block before";
            let error = Error::corruption(self.file.path(), handle.offset, problem);
            self.problems.push(error.to_string());
            return Ok(false);
        }
        self.last_key.clone_from(last);
        let mut cursor = EntryCursor::default();
        cursor.seek_to_first(block.view())?;
        while cursor.valid() {
            (self.visit)(cursor.key(), cursor.value(block.view()))?;
            cursor.next(block.view())?;
        }
        Ok(true)
    }
}

/// The keys of a block, which must be internal keys that ascend.
fn ascending(block: &Block, path: &Path, handle: BlockHandle) -> Result<Vec<Vec<u8>>> {
    let fail = |problem: &str| Err(Error::corruption(path, handle.offset, problem));
    let mut keys: Vec<Vec<u8>> = Vec::new();
    let mut cursor = EntryCursor::default();
    cursor.seek_to_first(block.view())?;
    while cursor.valid() {
        if ParsedKey::parse(cursor.key()).is_none() {
            return fail("a key is not an internal key");
        }
        if keys.last().is_some_and(|last| compare(last, cursor.key()) != Ordering::Less) {
            return fail("its keys do not ascend");
        }
        keys.push(cursor.key().to_vec());
        cursor.next(block.view())?;
    }
    Ok(keys)
}

/// Whether the block is the index of exactly the blocks in `found`.
fn leads_to(block: &Block, found: &[BlockHandle]) -> bool {
    let mut cursor = EntryCursor::default();
    let mut place = cursor.seek_to_first(block.view());
    for expected in found {
        let handle = (place.is_ok() && cursor.valid()).then(|| {
            let mut value = Cursor::new(cursor.value(block.view()));
            BlockHandle::read(&mut value).ok().filter(|_| value.is_empty())
        });
        if handle.flatten() != Some(*expected) {
            return false;
        }
        place = cursor.next(block.view());
    }
    !found.is_empty() && !cursor.valid()
}

/// The block that begins at `at`.
fn find_block(file: &TableFile, at: u64, size: u64) -> Result<BlockHandle> {
    let mut scratch = Vec::new();
    let mut window = SEARCH_BYTES;
    loop {
        let looked_at = window.min(size - at);
        let bytes = file.read(at, looked_at, &mut scratch)?;
        if let Some(length) = checksummed_length(bytes, SMALLEST_BYTES) {
            return Ok(BlockHandle { offset: at, size: length as u64 - 1 });
        }
        if looked_at == size - at {
            let problem = format!("no checksum follows: {looked_at} bytes cannot be read");
            return Err(Error::corruption(file.path(), at, problem));
        }
        window = window.saturating_mul(8);
    }
}

/// Whether bytes are damaged or cannot be read.
fn is_damage(error: &Error) -> bool {
    error.is_corruption() || matches!(error, Error::Io { action: "read", .. })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::lsm::testing::{BytesFile, golden_files};

    type Entries = Vec<(Vec<u8>, Vec<u8>)>;

    fn salvaged(bytes: &[u8]) -> (Entries, Vec<String>) {
        let mut entries = Entries::new();
        let problems = salvage(BytesFile::mapped(bytes), "table".as_ref(), &mut |key, value| {
            entries.push((key.to_vec(), value.to_vec()));
            Ok(())
        });
        (entries, problems.unwrap())
    }

    /// The offsets and sizes of the data blocks, and the first key behind each.
    fn blocks(bytes: &[u8]) -> Vec<BlockHandle> {
        let size = bytes.len() as u64;
        let file = TableFile::new(BytesFile::mapped(bytes), "table".as_ref(), size);
        let index = read_index(&file, size).unwrap();
        let mut cursor = EntryCursor::default();
        cursor.seek_to_first(index.view()).unwrap();
        let mut found = Vec::new();
        while cursor.valid() {
            found.push(BlockHandle::read(&mut Cursor::new(cursor.value(index.view()))).unwrap());
            cursor.next(index.view()).unwrap();
        }
        found
    }

    /// The entries by block: found by damaging one block after the other.
    fn of_block(whole: &Entries, bytes: &[u8], handle: BlockHandle) -> Entries {
        let mut damaged = bytes.to_vec();
        damaged[usize::try_from(handle.offset).unwrap()] ^= 0x55;
        let (rest, problems) = salvaged(&damaged);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("checksum"), "{problems:?}");
        whole.iter().filter(|entry| !rest.contains(entry)).cloned().collect()
    }

    #[test]
    fn of_a_damaged_table_everything_outside_the_damage_is_read() {
        for path in golden_files(|name| name.ends_with(".ldb")) {
            let bytes = fs::read(&path).unwrap();
            let (whole, problems) = salvaged(&bytes);
            assert!(problems.is_empty() && !whole.is_empty(), "{}", path.display());
            let handles = blocks(&bytes);
            let few = handles.iter().step_by(handles.len().div_ceil(6));
            let mut sum = 0;
            for handle in few.clone() {
                let lost = of_block(&whole, &bytes, *handle);
                assert!(!lost.is_empty());
                sum += lost.len();
                // Cut behind this block, all up to it is there and nothing more.
                let end = usize::try_from(handle.offset + handle.size).unwrap() + TRAILER_BYTES;
                let (left, problems) = salvaged(&bytes[..end]);
                assert!(!problems.is_empty());
                assert_eq!(left[..], whole[..left.len()]);
                assert_eq!(left.last(), lost.last(), "{} {handle:?}", path.display());
                let (before, _) = salvaged(&bytes[..end - 1]);
                assert_eq!(before.len() + lost.len(), left.len());
            }
            if few.len() == handles.len() {
                assert_eq!(sum, whole.len());
            }
        }
    }

    #[test]
    fn without_the_index_or_the_footer_all_blocks_are_found_and_nothing_else_is_taken_for_one() {
        for path in golden_files(|name| name.ends_with(".ldb")) {
            let bytes = fs::read(&path).unwrap();
            let (whole, _) = salvaged(&bytes);
            for from_end in [1, 48, 60] {
                let mut damaged = bytes.clone();
                let at = bytes.len() - from_end;
                damaged[at] ^= 0xff;
                let (left, problems) = salvaged(&damaged);
                assert!(left == whole, "{} -{from_end}: {}", path.display(), left.len());
                assert!(!problems.is_empty(), "{from_end}");
            }
        }
    }

    #[test]
    fn no_flipped_byte_brings_forth_what_was_not_there() {
        let path = golden_files(|name| name.ends_with(".ldb"))
            .into_iter()
            .min_by_key(|path| fs::metadata(path).unwrap().len());
        let bytes = fs::read(path.unwrap()).unwrap();
        let (whole, _) = salvaged(&bytes);
        let step = bytes.len().div_ceil(3000);
        for at in (0..bytes.len()).step_by(step) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            let (left, _) = salvaged(&damaged);
            assert!(left.iter().all(|entry| whole.contains(entry)), "byte {at}");
        }
        assert_eq!(salvaged(b"").0, []);
        assert_eq!(salvaged(&[0; 5000]).0, []);
    }
}
