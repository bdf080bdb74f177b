//! The benches: see `benches/benches/`. Here is only what several of them share.
//!
//! - `insert_500k`: the main job, `enginelab compare insert` with 500,000 items.
//! - `insert_5k`: 5,000 items into each engine, measured by criterion.
//! - `recording`: what the laboratory itself costs an operation.
//! - `bitcask`: what the Bitcask engine promises, figure by figure.
//! - `lsm`: what the LSM engine promises beside reads, figure by figure.
//! - `lsm_reads`: reads of the LSM engine beside LevelDB and RocksDB.

pub mod dataset;
pub mod figure;
pub mod program;
