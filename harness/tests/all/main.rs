//! The integration tests of the harness.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod command_line;
mod failing_engines;
mod report;
#[cfg(target_os = "linux")]
mod signals;
mod workloads;
mod ycsb;
