//! The integration tests of the harness.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod browser;
mod command_line;
mod compare;
mod custom;
mod dbbench;
mod failing_engines;
mod files;
mod report;
mod saved_results;
#[cfg(target_os = "linux")]
mod signals;
mod suite;
mod support;
mod trace;
mod workloads;
mod ycsb;
