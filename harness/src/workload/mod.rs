//! What the engines are given to do.
//!
//! # To add a workload
//! 1. Write `workload/NAME.rs` with
//!    - a struct of its parameters, `Serialize + Deserialize`: it stands in results as it is;
//!    - a `clap::Args` struct of its flags, with [`WorkloadArgs`] for the way from flags to
//!      parameters. What all workloads have (engines, threads, rate, seed, …) is in
//!      [`cli::compare`](crate::cli::compare) already;
//!    - a [`job::Job`]: its [`job::Records`] (key and value by number) and its [`job::Phase`]s,
//!      each with a [`job::Stream`] that derives the operations of step N.
//! 2. Add a variant to [`Workload`], a line to each of its methods, and one to `Compare` in
//!    `cli/mod.rs`. The compiler names the places.
//!
//! Everything else is there: child processes, threads, clocks, latencies, resources, disk space,
//! verification by replaying the streams, results, resuming, tables. `insert.rs` is the example to
//! follow.
//!
//! Randomness comes from [`rng::SplitMix64::for_index`], so that step and record N need nothing of
//! those before. A workload that must count what came before (the inserts of a mix) keeps the count
//! in its stream, where steps ascend.

pub mod insert;

pub mod job;
pub mod op;

pub mod bacon;
pub mod keys;
pub mod rng;
pub mod texts;
pub mod values;

use serde::{Deserialize, Serialize};

use self::job::Job;
use crate::Result;

/// A workload with its parameters. In JSON, `name` tells which.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Workload {
    /// New records under random keys.
    Insert(insert::Insert),
}

/// The flags of a workload.
pub trait WorkloadArgs: clap::Args {
    /// The workload that they ask for.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) for what cannot be.
    fn workload(&self) -> Result<Workload>;
}

/// What is said of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct About {
    /// Its name: what `compare` takes.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
}

/// Every workload, as `enginelab workloads` lists them.
pub const ALL: [About; 1] = [insert::ABOUT];

impl Workload {
    /// Makes it ready to run: everything is derived from `seed`.
    pub fn job(&self, seed: u64) -> Box<dyn Job> {
        match self {
            Self::Insert(insert) => Box::new(insert::InsertJob::new(insert, seed)),
        }
    }

    /// Its name and its line.
    pub fn about(&self) -> About {
        match self {
            Self::Insert(_) => insert::ABOUT,
        }
    }

    /// One line that says how much of it there is: `Insert of 500,000 records`.
    pub fn title(&self) -> String {
        match self {
            Self::Insert(insert) => insert.title(),
        }
    }

    /// Its parameters in words, for people.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Insert(insert) => insert.parameters(),
        }
    }

    /// The bytes of all keys and values that may be there at once.
    pub fn data_bytes(&self) -> u64 {
        match self {
            Self::Insert(insert) => insert.data_bytes(),
        }
    }

    /// The client threads unless others are asked for.
    pub fn default_threads(&self) -> u32 {
        match self {
            Self::Insert(_) => 1,
        }
    }
}
