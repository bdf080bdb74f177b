//! Whole databases of the original programs, read through the formats alone: manifest, tables and
//! logs together must give what the original program read back.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::edit::{COMPARATOR, TableInfo, VersionEdit};
use super::filename::{FileKind, FileNumber, parse_current};
use super::iterator::InternalIterator;
use super::key::{EntryKind, ParsedKey, Sequence};
use super::log::{LogReader, OnCorruption, Tail};
use super::table::{ReadOptions, Table};
use super::table_cache::TableCache;
use super::testing::{golden, golden_databases, golden_files};
use super::write_batch::WriteBatch;
use crate::Operation;
use crate::fs::{Access, FileSystem, RealFs};

/// The newest of each user key: its sequence, and its value unless it was deleted.
type Newest = BTreeMap<Vec<u8>, (Sequence, Option<Vec<u8>>)>;

#[derive(Default)]
struct Manifest {
    comparator: String,
    log_number: FileNumber,
    last_sequence: Sequence,
    tables: BTreeMap<(usize, FileNumber), TableInfo>,
}

fn records(path: &Path) -> Vec<Vec<u8>> {
    let file = RealFs.open(path, Access::Positioned).unwrap();
    let mut reader = LogReader::new(file, path, OnCorruption::Fail).unwrap();
    let mut records = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        records.push(record.bytes.to_vec());
    }
    assert_eq!(reader.tail(), Some(&Tail::Clean));
    records
}

fn read_manifest(directory: &Path) -> Manifest {
    let current = fs::read(FileKind::Current.path(directory)).unwrap();
    let number = parse_current(&current).unwrap();
    let mut manifest = Manifest::default();
    for record in records(&FileKind::Manifest(number).path(directory)) {
        let edit = VersionEdit::decode(&record).unwrap();
        if let Some(name) = edit.comparator {
            manifest.comparator = name;
        }
        manifest.log_number = edit.log_number.unwrap_or(manifest.log_number);
        manifest.last_sequence = edit.last_sequence.unwrap_or(manifest.last_sequence);
        for file in edit.deleted_files {
            manifest.tables.remove(&file).expect("a deleted file was there");
        }
        for (level, table) in edit.new_files {
            manifest.tables.insert((level, table.number), table);
        }
    }
    manifest
}

fn note(newest: &mut Newest, user_key: &[u8], sequence: Sequence, value: Option<&[u8]>) {
    let entry = (sequence, value.map(<[u8]>::to_vec));
    let known = newest.entry(user_key.to_vec()).or_insert_with(|| entry.clone());
    if known.0 < sequence {
        *known = entry;
    }
}

fn read_table(newest: &mut Newest, table: &Arc<Table>, info: &TableInfo) {
    let mut iter = table.iter(ReadOptions::default());
    iter.seek_to_last().unwrap();
    assert_eq!(iter.key(), info.largest);
    iter.seek_to_first().unwrap();
    assert_eq!(iter.key(), info.smallest);
    while iter.valid() {
        let key = ParsedKey::parse(iter.key()).unwrap();
        let value = (key.kind == EntryKind::Value).then(|| iter.value());
        note(newest, key.user_key, key.sequence, value);
        iter.next().unwrap();
    }
}

fn read_log(newest: &mut Newest, path: &Path) {
    for record in records(path) {
        for (sequence, operation) in WriteBatch::decode(&record).unwrap().operations() {
            match operation {
                Operation::Put { key, value } => note(newest, key, sequence, Some(value)),
                Operation::Delete { key } => note(newest, key, sequence, None),
            }
        }
    }
}

#[test]
fn manifests_tables_and_logs_give_what_the_original_program_read() {
    let mut database_count = 0;
    for directory in golden_databases() {
        let expected = directory.with_extension("expected.tsv");
        if !expected.exists() {
            // The one that must be refused.
            assert!(directory.ends_with("foreign-comparator"));
            continue;
        }
        database_count += 1;
        let manifest = read_manifest(&directory);
        assert_eq!(manifest.comparator, COMPARATOR);
        let cache =
            TableCache::new(Arc::new(RealFs), directory.clone(), 2, Access::Mapped, None, true);
        let mut newest = Newest::new();
        for table in manifest.tables.values() {
            read_table(&mut newest, &cache.get(table.number, table.size).unwrap(), table);
        }
        for number in logs(&directory).range(manifest.log_number..) {
            read_log(&mut newest, &FileKind::Log(*number).path(&directory));
        }
        let mut lines = String::new();
        for (key, (_, value)) in &newest {
            let Some(value) = value else { continue };
            let (key, sum) = (hex(key), hex(&Sha256::digest(value)));
            lines += &format!("{key}\t{}\t{sum}\n", value.len());
        }
        assert!(lines == fs::read_to_string(&expected).unwrap(), "{directory:?}");
    }
    assert!(database_count >= 9, "{database_count}");
}

fn logs(directory: &Path) -> BTreeSet<FileNumber> {
    let entries = RealFs.list(directory).unwrap().into_iter();
    entries
        .filter_map(|entry| match FileKind::parse(entry.name()?)? {
            FileKind::Log(number) => Some(number),
            _ => None,
        })
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn another_comparator_is_told_by_name() {
    let manifest = read_manifest(&golden().join("foreign-comparator"));
    assert_eq!(manifest.comparator, "idb_cmp1");
}

#[test]
fn manifests_are_encoded_again_to_the_byte() {
    for path in golden_files(|name| name.starts_with("MANIFEST-")) {
        for record in records(&path) {
            assert_eq!(VersionEdit::decode(&record).unwrap().encode(), record, "{path:?}");
        }
    }
}
