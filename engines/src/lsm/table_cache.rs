//! The tables that are open: a bounded number, so that descriptors and mappings do not run out.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use quick_cache::sync::Cache;

use super::cache::BlockCache;
use super::filename::{FileKind, FileNumber};
use super::table::Table;
use crate::Result;
use crate::fs::{Access, FileSystem};

/// Opens tables of one database on demand and keeps a number of them open. A table that was let go
/// stays open until its last user drops it.
#[derive(Debug)]
pub(crate) struct TableCache {
    fs: Arc<dyn FileSystem>,
    directory: PathBuf,
    access: Access,
    verify_checksums: bool,
    blocks: Option<Arc<BlockCache>>,
    tables: Cache<FileNumber, Arc<Table>>,
    /// Kept open whatever else is asked for.
    pinned: OnceLock<HashMap<FileNumber, Arc<Table>>>,
}

impl TableCache {
    /// Keeps up to `capacity` tables of the database in `directory` open. `blocks` is the cache
    /// their decompressed blocks go to.
    pub(crate) fn new(
        fs: Arc<dyn FileSystem>,
        directory: PathBuf,
        capacity: usize,
        access: Access,
        blocks: Option<Arc<BlockCache>>,
        verify_checksums: bool,
    ) -> Self {
        let tables = Cache::new(capacity.max(1));
        Self { fs, directory, access, verify_checksums, blocks, tables, pinned: OnceLock::new() }
    }

    /// The table with this number; `size` is what the manifest says of it.
    ///
    /// # Errors
    /// Those of opening the file, under its newer name or its older one, and of
    /// [`Table::open`]. A table that could not be opened is tried again the next time.
    pub(crate) fn get(&self, number: FileNumber, size: u64) -> Result<Arc<Table>> {
        if let Some(table) = self.pinned.get().and_then(|pinned| pinned.get(&number)) {
            return Ok(Arc::clone(table));
        }
        let mut is_new = false;
        // Others who want the same table wait for this one to open it.
        let table = self.tables.get_or_insert_with(&number, || {
            is_new = true;
            self.open(number, size)
        })?;
        if is_new && let Some(blocks) = &self.blocks {
            blocks.reserve(self.memory_bytes());
        }
        Ok(table)
    }

    /// Opens tables, each given by number and size, and keeps them open for good: their files may
    /// be removed then. May be called once.
    pub(crate) fn pin(&self, tables: impl Iterator<Item = (FileNumber, u64)>) -> Result<()> {
        let opened = tables.map(|(number, size)| Ok((number, self.get(number, size)?)));
        let opened = opened.collect::<Result<_>>()?;
        let is_first = self.pinned.set(opened).is_ok();
        debug_assert!(is_first, "pinned twice");
        Ok(())
    }

    /// Forgets a table whose file goes away.
    pub(crate) fn evict(&self, number: FileNumber) {
        self.tables.remove(&number);
    }

    /// How many tables are open here.
    pub(crate) fn open_count(&self) -> usize {
        self.tables.len()
    }

    /// The memory that the open tables hold for their indexes and filters, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let memory_bytes = |table: &Arc<Table>| table.memory_bytes() as u64;
        match self.pinned.get() {
            Some(pinned) => pinned.values().map(memory_bytes).sum(),
            None => self.tables.iter().map(|(_, table)| memory_bytes(&table)).sum(),
        }
    }

    fn open(&self, number: FileNumber, size: u64) -> Result<Arc<Table>> {
        let mut path = FileKind::Table(number).path(&self.directory);
        if self.fs.entry(&path)?.is_none() {
            let old_path = FileKind::OldTable(number).path(&self.directory);
            if self.fs.entry(&old_path)?.is_some() {
                path = old_path;
            }
        }
        let file = self.fs.open(&path, self.access)?;
        let table =
            Table::open(file, &path, size, number, self.blocks.clone(), self.verify_checksums)?;
        Ok(Arc::new(table))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::fs::RealFs;
    use crate::lsm::testing::golden;

    /// Tables 1 to `count`, copies of one.
    fn tables(count: u64) -> (tempfile::TempDir, u64) {
        let directory = tempfile::tempdir().unwrap();
        let source = golden().join("compacted/000005.ldb");
        for number in 1..=count {
            let path = FileKind::Table(FileNumber(number)).path(directory.path());
            fs::copy(&source, path).unwrap();
        }
        (directory, fs::metadata(source).unwrap().len())
    }

    fn cache(directory: &tempfile::TempDir, capacity: usize) -> TableCache {
        let path = directory.path().to_path_buf();
        TableCache::new(Arc::new(RealFs), path, capacity, Access::Mapped, None, true)
    }

    #[test]
    fn a_bounded_number_of_tables_stays_open() {
        let (directory, size) = tables(20);
        let cache = cache(&directory, 4);
        let first = cache.get(FileNumber(1), size).unwrap();
        assert!(Arc::ptr_eq(&first, &cache.get(FileNumber(1), size).unwrap()));
        for number in 1..=20 {
            assert_eq!(cache.get(FileNumber(number), size).unwrap().number(), FileNumber(number));
            assert!(cache.open_count() <= 4);
        }
        assert!(cache.memory_bytes() > 0);
    }

    #[test]
    fn an_evicted_table_is_opened_again() {
        let (directory, size) = tables(1);
        let cache = cache(&directory, 4);
        let before = cache.get(FileNumber(1), size).unwrap();
        cache.evict(FileNumber(1));
        assert!(!Arc::ptr_eq(&before, &cache.get(FileNumber(1), size).unwrap()));
    }

    #[test]
    fn the_older_suffix_is_found_and_a_failure_is_not_remembered() {
        let (directory, size) = tables(1);
        let cache = cache(&directory, 4);
        let (two, old) = (FileNumber(2), FileKind::OldTable(FileNumber(2)).path(directory.path()));
        let error = cache.get(two, size).unwrap_err().to_string();
        assert!(error.contains("000002.ldb"), "{error}");
        fs::copy(FileKind::Table(FileNumber(1)).path(directory.path()), &old).unwrap();
        assert!(cache.get(two, size + 1).unwrap_err().is_corruption());
        assert_eq!(cache.get(two, size).unwrap().path(), old);
    }
}
