//! A log-structured merge tree in LevelDB's on-disk format.

#![allow(dead_code, unused_imports, reason = "the engine that uses the formats comes on top")]

mod coding;
mod filename;
mod key;

mod edit;
mod log;
mod write_batch;

mod block;
mod compress;
mod filter;
mod table;

mod cache;
mod table_cache;

mod iterator;

#[cfg(test)]
mod testing;
