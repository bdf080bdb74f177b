//! Tables against those that the original programs wrote, and against damage.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::fs::ReadFile;
use crate::lsm::cache::BlockCache;
use crate::lsm::filename::FileNumber;
use crate::lsm::iterator::InternalIterator;
use crate::lsm::key::{
    EntryKind, ParsedKey, SEEK_KIND, Sequence, compare, push_internal_key, user_key,
};
use crate::lsm::testing::{BytesFile, MemoryFile, golden_files};
use crate::{Compression, Result};

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn open_file(file: Arc<dyn ReadFile>, cache: Option<Arc<BlockCache>>) -> Result<Arc<Table>> {
    let size = file.length()?;
    Table::open(file, "000005.ldb".as_ref(), size, FileNumber(5), cache, true).map(Arc::new)
}

fn open(bytes: &[u8]) -> Result<Arc<Table>> {
    open_file(BytesFile::mapped(bytes), None)
}

/// Everything a table holds, forwards; checked to be the same backwards.
fn read_all(table: &Arc<Table>, options: ReadOptions) -> Result<Entries> {
    let mut iter = table.iter(options);
    let mut forwards = Entries::new();
    iter.seek_to_first()?;
    while iter.valid() {
        forwards.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.next()?;
    }
    let mut backwards = Entries::new();
    iter.seek_to_last()?;
    while iter.valid() {
        backwards.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.prev()?;
    }
    backwards.reverse();
    assert!(forwards == backwards, "the directions differ");
    Ok(forwards)
}

fn get(table: &Table, key: &[u8]) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut found = None;
    let told = table.get(key, &mut |key, value| found = Some((key.to_vec(), value.to_vec())))?;
    assert_eq!(told, found.is_some());
    Ok(found)
}

fn internal(user_key: &[u8], sequence: u64, kind: EntryKind) -> Vec<u8> {
    let mut key = Vec::new();
    push_internal_key(&mut key, user_key, Sequence(sequence), kind);
    key
}

fn build(entries: &Entries, options: TableOptions) -> (Vec<u8>, TableSummary) {
    let file = MemoryFile::new();
    let mut builder = TableBuilder::new(file.clone(), options).unwrap();
    for (key, value) in entries {
        builder.add(key, value).unwrap();
    }
    let summary = builder.finish().unwrap();
    assert_eq!(summary.file_size, file.bytes().len() as u64);
    (file.bytes(), summary)
}

#[test]
fn tables_of_the_original_programs_are_read_whole_and_by_key() {
    for path in golden_files(|name| name.ends_with(".ldb")) {
        let bytes = fs::read(&path).unwrap();
        let cache = Arc::new(BlockCache::new(1 << 20));
        let ways = [
            open_file(BytesFile::mapped(&bytes[..]), None).unwrap(),
            open_file(BytesFile::positioned(&bytes[..]), None).unwrap(),
            open_file(BytesFile::positioned(&bytes[..]), Some(cache)).unwrap(),
        ];
        let expected = read_all(&ways[0], ReadOptions::default()).unwrap();
        assert!(!expected.is_empty(), "{path:?}");
        assert!(expected.is_sorted_by(|a, b| compare(&a.0, &b.0) == Ordering::Less));
        for table in &ways {
            let ahead = ReadOptions { readahead_bytes: 10_000, ..ReadOptions::default() };
            for options in [ReadOptions::default(), ahead] {
                assert!(read_all(table, options).unwrap() == expected, "{path:?}");
            }
            for (key, value) in &expected {
                let found = get(table, key).unwrap().expect("there");
                assert!(found == (key.clone(), value.clone()), "{path:?}");
            }
        }
        let is_filtered = ["bloom/", "minecraft-zlib/"]
            .iter()
            .any(|database| path.to_str().unwrap().contains(database));
        assert_eq!(ways[0].has_filter(), is_filtered, "{path:?}");
    }
}
