//! How the directories of the peers are told apart: by content, not by name alone.
//!
//! Compiled whatever features are on: a directory of RocksDB is refused by the others even by a
//! program that cannot open it.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// sled keeps its settings as text in `conf`, beside the log `db`.
pub(super) fn sled(directory: &Path) -> bool {
    directory.join("db").is_file() && starts_with(&directory.join("conf"), b"segment_size:")
}

/// fjall names its format in the file `version`.
pub(super) fn fjall(directory: &Path) -> bool {
    starts_with(&directory.join("version"), b"FJL")
}

/// redb opens its file with a magic number.
pub(super) fn redb(directory: &Path) -> bool {
    any_file(directory, &["redb", "db"], b"redb\x1a\x0a\xa9\x0d\x0a")
}

/// LMDB's data file has a name of its own; its first meta page holds the magic number behind the
/// page header, in the byte order of the machine that wrote it.
pub(super) fn lmdb(directory: &Path) -> bool {
    const PAGE_HEADER_BYTES: usize = 16;
    let magic = 0xbeef_c0de_u32;
    head(&directory.join("data.mdb")).is_some_and(|head| {
        [magic.to_le_bytes(), magic.to_be_bytes()]
            .iter()
            .any(|magic| head.get(PAGE_HEADER_BYTES..).is_some_and(|rest| rest.starts_with(magic)))
    })
}

/// SQLite opens its file with a line of text.
pub(super) fn sqlite(directory: &Path) -> bool {
    any_file(directory, &["sqlite", "sqlite3", "db", "db3"], b"SQLite format 3\0")
}

/// What LevelDB and RocksDB share: `CURRENT` names the manifest; a damaged directory still has
/// the manifest itself.
fn has_manifest(directory: &Path) -> bool {
    starts_with(&directory.join("CURRENT"), b"MANIFEST-") || has_name(directory, "MANIFEST-")
}

/// RocksDB writes its identity and its options beside the manifest, LevelDB does not.
pub(super) fn rocksdb(directory: &Path) -> bool {
    has_manifest(directory)
        && (directory.join("IDENTITY").is_file() || has_name(directory, "OPTIONS-"))
}

/// LevelDB's directories are also those of our LSM engine: they are made to be exchanged.
pub(super) fn leveldb(directory: &Path) -> bool {
    has_manifest(directory) && !rocksdb(directory)
}

fn has_name(directory: &Path, prefix: &str) -> bool {
    names(directory).any(|name| name.starts_with(prefix))
}

fn any_file(directory: &Path, extensions: &[&str], magic: &[u8]) -> bool {
    names(directory).any(|name| {
        let path = directory.join(name);
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| extensions.contains(&extension))
            && starts_with(&path, magic)
    })
}

fn names(directory: &Path) -> impl Iterator<Item = String> {
    fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
}

fn starts_with(path: &Path, magic: &[u8]) -> bool {
    head(path).is_some_and(|head| head.starts_with(magic))
}

/// The first bytes of a regular file.
fn head(path: &Path) -> Option<Vec<u8>> {
    // Opening anything else may block or act.
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut head = Vec::new();
    File::open(path).ok()?.take(32).read_to_end(&mut head).ok()?;
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leveldb_and_rocksdb_are_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert!(!leveldb(path) && !rocksdb(path));
        fs::write(path.join("CURRENT"), "MANIFEST-000002\n").unwrap();
        assert!(leveldb(path) && !rocksdb(path));
        fs::write(path.join("OPTIONS-000007"), "[Version]\n").unwrap();
        assert!(!leveldb(path) && rocksdb(path));
        fs::remove_file(path.join("CURRENT")).unwrap();
        assert!(!rocksdb(path));
        fs::write(path.join("MANIFEST-000002"), "").unwrap();
        assert!(rocksdb(path));
    }

    #[test]
    fn names_alone_are_not_enough() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        for name in ["db", "conf", "version", "data.mdb", "a.db", "b.sqlite", "c.redb", "CURRENT"] {
            fs::write(path.join(name), "not what the name says, and long enough to look at")
                .unwrap();
        }
        for recognizes in [sled, fjall, redb, lmdb, sqlite, leveldb, rocksdb] {
            assert!(!recognizes(path));
        }
        fs::write(path.join("a.db"), b"SQLite format 3\0 and so on").unwrap();
        assert!(sqlite(path) && !redb(path));
    }
}
