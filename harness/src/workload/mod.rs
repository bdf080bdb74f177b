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
//!    - a [`Spec`] of the parameters: what is said of them, and the way to the job.
//! 2. Add a variant to [`Workload`], a line to `Workload::spec` and to [`ALL`], and one to
//!    `WorkloadCommand` in `cli/workloads.rs`.
//!
//! Everything else is there: child processes, threads, clocks, latencies, resources, disk space,
//! verification by replaying the streams, results, resuming, tables. `insert.rs` is the example to
//! follow.
//!
//! Randomness comes from [`rng::SplitMix64::for_index`], so that step and record N need nothing of
//! those before. A workload that must count what came before (the inserts of a mix) keeps the count
//! in its stream, where steps ascend.

pub mod custom;
pub mod dbbench;
pub mod insert;
pub mod riak;
pub mod settee;
pub mod trace;
pub mod vpork;
pub mod ycsb;

pub mod job;
pub mod op;

pub mod bacon;
pub mod choose;
pub mod keys;
pub mod rng;
mod shares;
pub mod sized;
pub mod texts;
pub mod values;
mod zipf;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::TempPath;

use self::job::Job;
use crate::Result;
use crate::files::Inputs;
use crate::report::summary::Summary;
use crate::report::tables::Table;
use crate::results::{Client, Comparison};

/// A workload with its parameters. In JSON, `name` tells which.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Workload {
    /// The benchmarks of db_bench.
    Dbbench(dbbench::Dbbench),
    /// New records under random keys.
    Insert(insert::Insert),
    /// New items on a hash ring of many instances, with copies.
    Riak(riak::Riak),
    /// Small JSON objects, one by one and in bulk.
    Settee(settee::Settee),
    /// Many threads that write new records and read recent ones.
    Vpork(vpork::Vpork),
    /// YCSB's core workloads.
    Ycsb(ycsb::Ycsb),
    /// What a file of the user says.
    Custom(custom::Custom),
    /// Requests of a trace.
    Trace(trace::Trace),
}

/// The flags of a workload.
pub trait WorkloadArgs {
    /// The workload that they ask for; what it reads, it opens among `inputs`.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) for what cannot be.
    fn workload(&self, inputs: &Inputs) -> Result<Chosen>;

    /// What is printed in place of all else, where that is asked for.
    fn example(&self) -> Option<&'static str> {
        None
    }

    /// The flag that asks for more than the report of every workload, if it is given.
    fn report_flag(&self) -> Option<&'static str> {
        None
    }

    /// What is printed below the report of every workload; empty in most.
    ///
    /// # Errors
    /// Whatever keeps it from being made.
    fn more_report(&self, _comparison: &Comparison) -> Result<String> {
        Ok(String::new())
    }
}

/// A workload, and who it wants for clients where the flags of all workloads do not say.
#[derive(Debug)]
pub struct Chosen {
    /// The workload.
    pub workload: Workload,
    /// Client threads; absent: 1.
    pub threads: Option<NonZeroU32>,
    /// Operations a second; absent: as fast as the engine can.
    pub rate: Option<f64>,
    /// What the runs read, beside their parameters.
    pub input: Option<Input>,
}

/// A file that the runs read. A temporary one is removed with this.
#[derive(Debug)]
pub struct Input {
    /// Where it is.
    pub path: PathBuf,
    /// What removes it.
    pub temporary: Option<TempPath>,
}

impl From<Workload> for Chosen {
    fn from(workload: Workload) -> Self {
        Self { workload, threads: None, rate: None, input: None }
    }
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
pub const ALL: [About; 8] = [
    insert::ABOUT,
    riak::ABOUT,
    settee::ABOUT,
    vpork::ABOUT,
    ycsb::ABOUT,
    dbbench::ABOUT,
    custom::ABOUT,
    trace::ABOUT,
];

/// What the parameters of every workload can tell.
pub trait Spec {
    /// Makes it ready to run: everything is derived from the client's seed.
    ///
    /// # Errors
    /// Whatever keeps a file from being read, in a workload that reads one.
    fn job(&self, client: &Client) -> Result<Box<dyn Job>>;

    /// One line that says how much of it there is: `Insert of 500,000 records`.
    fn title(&self) -> String;

    /// Its parameters in words, for people.
    fn parameters(&self) -> Vec<(&'static str, String)>;

    /// The bytes of all keys and values that may be there at once.
    fn data_bytes(&self, client: &Client) -> u64;

    /// The bytes of its longest key.
    fn key_bytes(&self) -> u64;

    /// Tables of its own, which stand before those that all workloads have; none in most.
    fn tables(&self, _comparison: &Comparison, _summaries: &[Summary<'_>]) -> Vec<Table> {
        Vec::new()
    }

    /// Which growth of the directory the ratios of the published kind are of.
    fn size_change(&self) -> SizeChange {
        SizeChange {
            from: None,
            to: "reopen".to_owned(),
            note: "Disk space is the growth of the directory until the engine, compacted and \
                   closed, is open again. The published runs were closed without compaction.",
        }
    }

    /// Whether it repeats the published comparison of Bitcask and LevelDB, so that the ratios of
    /// this pair are shown without being asked for.
    fn is_published_comparison(&self) -> bool {
        false
    }
}

/// A growth of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeChange {
    /// The phase after which it begins; absent: before the engine was opened.
    pub from: Option<&'static str>,
    /// The phase after which it ends.
    pub to: String,
    /// The same in words.
    pub note: &'static str,
}

impl Workload {
    /// Its parameters.
    pub fn spec(&self) -> &dyn Spec {
        match self {
            Self::Dbbench(dbbench) => dbbench,
            Self::Insert(insert) => insert,
            Self::Riak(riak) => riak,
            Self::Settee(settee) => settee,
            Self::Vpork(vpork) => vpork,
            Self::Ycsb(ycsb) => ycsb,
            Self::Custom(custom) => custom,
            Self::Trace(trace) => trace,
        }
    }

    /// The same workload, which reads its operations from `input` if it is one that does.
    #[must_use]
    pub fn with_input(self, input: Option<&Path>) -> Self {
        match self {
            Self::Trace(trace) => Self::Trace(trace.with_input(input)),
            other => other,
        }
    }

    /// [`Spec::title`].
    pub fn title(&self) -> String {
        self.spec().title()
    }

    /// [`Spec::parameters`].
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        self.spec().parameters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::compare::CompareArgs;

    fn check_keys<W: WorkloadArgs + clap::Args>() {
        let args = CompareArgs::<W>::parse_nothing();
        let workload = args.workload.workload(&Inputs::default()).unwrap().workload;
        let client = Client { threads: NonZeroU32::MIN, seed: 42, rate: None };
        let job = workload.spec().job(&client).unwrap();
        let (count, most) = (job.record_count(), workload.spec().key_bytes());
        assert!(count > 1_000);
        for record in (0..1_000).chain(count - 1_000..count) {
            let mut key = Vec::new();
            job.records().write_key(record, &mut key);
            assert!(key.len() as u64 <= most, "{}, record {record}", workload.title());
        }
    }

    #[test]
    fn no_key_is_longer_than_the_workload_tells() {
        check_keys::<dbbench::DbbenchArgs>();
        check_keys::<insert::InsertArgs>();
        check_keys::<riak::RiakArgs>();
        check_keys::<settee::SetteeArgs>();
        check_keys::<vpork::VporkArgs>();
        check_keys::<ycsb::YcsbArgs>();
    }
}
