//! The real LevelDB beyond what the lab asks of it, for the tests of our own engine.

use std::ffi::CString;
use std::path::Path;

use super::ffi::{Db, Settings};
use super::library::Family;

/// An open database of the real LevelDB.
pub(crate) struct Original(Db);

/// Whether the library is there; says so if not.
pub(crate) fn is_available() -> bool {
    match Family::LevelDb.library() {
        Ok(_) => true,
        Err(reason) => {
            println!("skipped: {reason}");
            false
        }
    }
}

const SETTINGS: Settings = Settings {
    create: false,
    write_buffer_bytes: 4 << 20,
    cache_bytes: 8 << 20,
    bloom_bits: 10,
    compression: 1,
    compression_level: None,
    threads: 1,
    manual_log_flush: false,
    sync: false,
};

impl Original {
    pub(crate) fn open(directory: &Path) -> Self {
        let library = Family::LevelDb.library().expect("asked before");
        Self(Db::open(library, directory, SETTINGS).expect("LevelDB opens it"))
    }

    pub(crate) fn property(&self, name: &str) -> Option<String> {
        self.0.property(&CString::new(name).expect("no zero byte"))
    }

    pub(crate) fn approximate_sizes(&self, ranges: &[(Vec<u8>, Vec<u8>)]) -> Vec<u64> {
        self.0.approximate_sizes(ranges)
    }

    /// Every record, in order.
    pub(crate) fn records(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut records = Vec::new();
        let mut iter = self.0.iter();
        iter.seek_to_first();
        while let Some((key, value)) = iter.record() {
            records.push((key.to_vec(), value.to_vec()));
            iter.next();
        }
        iter.status().expect("LevelDB reads it");
        records
    }
}

/// LevelDB's own repair.
pub(crate) fn repair(directory: &Path) {
    let library = Family::LevelDb.library().expect("asked before");
    Db::repair(library, directory, SETTINGS);
}
