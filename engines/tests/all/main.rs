//! The integration tests of the crate, in one binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod bitcask_basho;
mod bitcask_bytes;
mod bitcask_expiry;
mod bitcask_golden;
mod bitcask_model;
#[cfg(unix)]
mod bitcask_read_only;
mod bitcask_refusals;
mod bitcask_stats;
mod bitcask_strange;
mod clock;
mod conformance;
mod crash;
mod golden;
mod lsm_by_hand;
mod lsm_checkpoint;
mod lsm_destroy;
mod lsm_golden;
#[cfg(feature = "system")]
mod lsm_leveldb;
mod lsm_model;
mod lsm_read_only;
mod lsm_reads;
mod lsm_repair;
mod lsm_sections;
mod lsm_threads;
mod records;
