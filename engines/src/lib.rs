//! Two storage engines worth using on their own, and the engines people would pick instead, all
//! behind one [`Engine`] trait.
//!
//! - [`bitcask::Bitcask`]: an append-only log with a key directory in memory, in Basho's on-disk
//!   format.
//! - [`lsm::Lsm`]: a log-structured merge tree in LevelDB's on-disk format.
//! - [`registry`]: every engine by name, peers included where their feature is on.
//!
//! Without features the crate holds our two engines only.

pub mod batch;
pub mod engine;
pub mod error;
pub mod options;
pub mod prefix;
pub mod stats;

pub mod bitcask;
pub mod lsm;

pub mod limits;
pub mod peers;
pub mod registry;

pub mod fs;

pub use batch::{Batch, Operation};
pub use engine::{Capabilities, Description, Direction, Engine, KeyRange};
pub use error::{Error, Result};
pub use options::{Compression, Durability, OpenOptions};
pub use prefix::Prefix;
pub use stats::Stats;

/// The README's example, compiled and run with the other documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
