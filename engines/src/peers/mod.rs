//! The engines that people would pick instead, one file each, each behind its own feature.
//!
//! # The rules that every adapter keeps
//! - Durability: an engine reaches a level by the cheapest of its modes that fulfils the promise,
//!   and by its own means. Where that mode promises more than was asked, the description says so.
//!   An engine without any mode that fulfils a level has no such level.
//! - Memory: one budget for all. Engines with write buffers and a cache split it as
//!   `MemorySplit` says; engines with a cache alone get all of it; what an engine takes beside
//!   its budget is not hidden, the harness measures the process.
//! - Settings: otherwise the engine's own defaults and its own documentation's advice, so that no
//!   peer is slower than its users would have it. What was set is in the description.
//! - A version in a description comes from the code that runs; for pure Rust crates it is a
//!   constant that a test holds against `Cargo.lock`.

mod adapter;
mod footprint;

#[cfg(feature = "system")]
mod capi;
#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "lmdb")]
mod lmdb;
#[cfg(feature = "redb")]
mod redb;
#[cfg(any(feature = "system", feature = "rocksdb"))]
mod rocksdb;
#[cfg(feature = "rocksdb")]
mod rocksdb_crate;
#[cfg(feature = "sled")]
mod sled;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "system")]
use capi::leveldb;
#[cfg(all(test, feature = "system"))]
pub(crate) use capi::original;

use crate::registry::{Kind, Registration};

/// A registration that is complete whether or not the engine is built in: without it the engine is
/// listed, its directories are recognized, and opening it says how to get it.
macro_rules! peer {
    (
        $name:literal, $built:meta, $module:ident, $summary:literal, $recognizes:expr,
        $most_key_bytes:expr
    ) => {
        Registration {
            name: $name,
            kind: Kind::Peer,
            summary: $summary,
            most_key_bytes: $most_key_bytes,
            recognizes: $recognizes,
            #[cfg($built)]
            available: $module::available,
            persistent: true,
            #[cfg($built)]
            durability: $module::durability,
            #[cfg($built)]
            open: $module::open,
            #[cfg(not($built))]
            available: || Err(not_built($name, stringify!($built))),
            #[cfg(not($built))]
            durability: |_| None,
            #[cfg(not($built))]
            open: |_, _| Err(not_built($name, stringify!($built))),
        }
    };
}

pub(crate) const SLED: Registration = peer!(
    "sled",
    feature = "sled",
    sled,
    "a log-structured B+ tree, Rust, latch-free in memory",
    footprint::sled,
    None
);

pub(crate) const FJALL: Registration = peer!(
    "fjall",
    feature = "fjall",
    fjall,
    "a log-structured merge tree, Rust",
    footprint::fjall,
    Some(65_535)
);

pub(crate) const REDB: Registration = peer!(
    "redb",
    feature = "redb",
    redb,
    "a copy-on-write B+ tree in one file, Rust",
    footprint::redb,
    None
);

pub(crate) const LMDB: Registration = peer!(
    "lmdb",
    feature = "lmdb",
    lmdb,
    "a copy-on-write B+ tree in one memory-mapped file, C",
    footprint::lmdb,
    Some(511)
);

pub(crate) const SQLITE: Registration = peer!(
    "sqlite",
    feature = "sqlite",
    sqlite,
    "a B-tree with a write-ahead log behind SQL, C",
    footprint::sqlite,
    None
);

pub(crate) const LEVELDB: Registration = peer!(
    "leveldb",
    feature = "system",
    leveldb,
    "the log-structured merge tree whose format `lsm` writes, C++, the system's library",
    footprint::leveldb,
    None
);

pub(crate) const ROCKSDB: Registration = peer!(
    "rocksdb",
    any(feature = "system", feature = "rocksdb"),
    rocksdb,
    "a log-structured merge tree grown out of LevelDB, C++",
    footprint::rocksdb,
    None
);

#[cfg_attr(feature = "peers", expect(dead_code, reason = "every peer is built in"))]
fn not_built(engine: &'static str, features: &'static str) -> crate::Error {
    crate::Error::Unavailable {
        engine,
        reason: "this program was built without it".to_owned(),
        remedy: format!("build the crate `engines` with {features}"),
    }
}

#[cfg(test)]
#[cfg(any(feature = "sled", feature = "fjall", feature = "redb"))]
mod tests {
    use super::*;

    /// The version of a package in the workspace's lock file.
    fn locked_version(package: &str) -> String {
        let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock");
        let lock = std::fs::read_to_string(lock).unwrap();
        let (_, entry) = lock.split_once(&format!("name = \"{package}\"\nversion = \"")).unwrap();
        entry.split('"').next().unwrap().to_owned()
    }

    #[test]
    fn the_versions_told_are_the_versions_built() {
        #[cfg(feature = "sled")]
        assert_eq!(sled::VERSION, locked_version("sled"));
        #[cfg(feature = "fjall")]
        assert_eq!(fjall::VERSION, locked_version("fjall"));
        #[cfg(feature = "redb")]
        assert_eq!(redb::VERSION, locked_version("redb"));
    }
}
