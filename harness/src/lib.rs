//! The laboratory.

pub mod workload;

pub mod run;

pub mod measure;
pub mod verify;

pub mod results;

pub mod stats;

pub mod report;

pub mod files;

pub mod interrupt;

mod plain;

pub mod cli;

pub mod error;

pub use error::{Error, Result};
