//! What the tests of the formats share.

use std::fs;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::block::{Block, EntryCursor};
use super::iterator::InternalIterator;
use crate::Result;
use crate::fs::{ReadFile, WriteFile};

/// A file in memory that counts its calls.
#[derive(Debug, Default)]
pub(crate) struct MemoryFile {
    bytes: Mutex<Vec<u8>>,
    calls: Mutex<Calls>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Calls {
    pub(crate) write_count: usize,
    pub(crate) sync_count: usize,
    /// Offset, length.
    pub(crate) reserved: Vec<(u64, u64)>,
    pub(crate) truncated_to: Option<u64>,
    /// The next writes or syncs fail.
    pub(crate) failing: bool,
}

impl MemoryFile {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.bytes.lock().clone()
    }

    pub(crate) fn calls(&self) -> Calls {
        self.calls.lock().clone()
    }

    pub(crate) fn set_failing(&self, failing: bool) {
        self.calls.lock().failing = failing;
    }

    fn check(&self) -> Result<()> {
        if self.calls.lock().failing {
            let error = std::io::Error::other("injected");
            return Err(crate::Error::io("write", "memory")(error));
        }
        Ok(())
    }
}

impl WriteFile for MemoryFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.check()?;
        self.calls.lock().write_count += 1;
        let mut file = self.bytes.lock();
        let start = usize::try_from(offset).unwrap();
        if file.len() < start + bytes.len() {
            file.resize(start + bytes.len(), 0);
        }
        file[start..start + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn write_parts_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> Result<()> {
        self.write_at(offset, &parts.iter().flat_map(|part| part.to_vec()).collect::<Vec<_>>())
    }

    fn reserve(&self, offset: u64, length: u64) {
        self.calls.lock().reserved.push((offset, length));
    }

    fn truncate(&self, length: u64) -> Result<()> {
        self.check()?;
        self.calls.lock().truncated_to = Some(length);
        self.bytes.lock().resize(usize::try_from(length).unwrap(), 0);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.check()?;
        self.calls.lock().sync_count += 1;
        Ok(())
    }
}

/// Bytes to read as a file; lent as a mapping would, or copied as a positioned read would.
#[derive(Debug)]
pub(crate) struct BytesFile {
    bytes: Vec<u8>,
    mapped: bool,
}

impl BytesFile {
    pub(crate) fn mapped(bytes: impl Into<Vec<u8>>) -> Arc<dyn ReadFile> {
        Arc::new(Self { bytes: bytes.into(), mapped: true })
    }

    pub(crate) fn positioned(bytes: impl Into<Vec<u8>>) -> Arc<dyn ReadFile> {
        Arc::new(Self { bytes: bytes.into(), mapped: false })
    }
}

impl ReadFile for BytesFile {
    fn length(&self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_at<'a>(
        &'a self,
        offset: u64,
        length: usize,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]> {
        let bytes = usize::try_from(offset)
            .ok()
            .and_then(|start| self.bytes.get(start..start.checked_add(length)?))
            .ok_or_else(|| crate::Error::corruption("memory", offset, "ends early"))?;
        if self.mapped {
            return Ok(bytes);
        }
        scratch.clear();
        scratch.extend_from_slice(bytes);
        Ok(scratch)
    }
}

/// Walks a block of internal keys.
#[derive(Debug)]
pub(crate) struct BlockIter {
    block: Arc<Block>,
    cursor: EntryCursor,
}

impl BlockIter {
    pub(crate) fn new(block: Arc<Block>) -> Self {
        Self { block, cursor: EntryCursor::default() }
    }
}

impl InternalIterator for BlockIter {
    fn valid(&self) -> bool {
        self.cursor.valid()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.cursor.seek_to_first(self.block.view())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.cursor.seek_to_last(self.block.view())
    }

    fn seek(&mut self, internal_key: &[u8]) -> Result<()> {
        self.cursor.seek(self.block.view(), internal_key)
    }

    fn next(&mut self) -> Result<()> {
        self.cursor.next(self.block.view())
    }

    fn prev(&mut self) -> Result<()> {
        self.cursor.prev(self.block.view())
    }

    fn key(&self) -> &[u8] {
        self.cursor.key()
    }

    fn value(&self) -> &[u8] {
        self.cursor.value(self.block.view())
    }
}

/// The directory of databases that the original programs wrote.
pub(crate) fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/leveldb")
}

/// The golden databases whose compression this build has, in order.
pub(crate) fn golden_databases() -> Vec<PathBuf> {
    let mut databases: Vec<_> = fs::read_dir(golden())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .filter(|path| cfg!(feature = "zstd") || !path.ends_with("zstd"))
        .filter(|path| cfg!(feature = "zlib") || !path.ends_with("minecraft-zlib"))
        .collect();
    databases.sort();
    databases
}

/// The files of those databases whose names match.
pub(crate) fn golden_files(matches: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for database in golden_databases() {
        let entries = fs::read_dir(&database).unwrap();
        files.extend(entries.map(|entry| entry.unwrap().path()));
    }
    files.retain(|path| matches(path.file_name().unwrap().to_str().unwrap()));
    files.sort();
    assert!(!files.is_empty());
    files
}
