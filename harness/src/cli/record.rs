//! `enginelab record WORKLOAD`: what a workload does, as a trace.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::size;
use crate::files::{Inputs, output};
use crate::report::figures::grouped;
use crate::results::Client;
use crate::workload::custom::CustomArgs;
use crate::workload::dbbench::DbbenchArgs;
use crate::workload::insert::InsertArgs;
use crate::workload::riak::RiakArgs;
use crate::workload::settee::SetteeArgs;
use crate::workload::trace::{TraceArgs, record};
use crate::workload::vpork::VporkArgs;
use crate::workload::ycsb::YcsbArgs;
use crate::workload::{Workload, WorkloadArgs};
use crate::{Result, interrupt};

/// The workloads that can be recorded.
#[derive(Debug, Subcommand)]
pub enum Record {
    /// New records under random keys
    Insert(Box<RecordArgs<InsertArgs>>),
    /// db_bench's benchmarks, without those that begin anew, reopen, or have a thread beside
    Dbbench(Box<RecordArgs<DbbenchArgs>>),
    /// Riak's published comparison
    Riak(Box<RecordArgs<RiakArgs>>),
    /// Small JSON objects
    Settee(Box<RecordArgs<SetteeArgs>>),
    /// Many threads that write new records and read recent ones
    Vpork(Box<RecordArgs<VporkArgs>>),
    /// YCSB's core workloads
    Ycsb(Box<RecordArgs<YcsbArgs>>),
    /// What a TOML file describes
    Custom(Box<RecordArgs<CustomArgs>>),
    /// A trace of another kind, which is compiled once then, and replayed without that
    Trace(Box<RecordArgs<TraceArgs>>),
}

/// The flags of a workload, and those of all.
#[derive(Debug, Clone, Args)]
pub struct RecordArgs<W: WorkloadArgs> {
    /// What the workload does.
    #[command(flatten)]
    pub workload: W,

    /// The file to write the trace to
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,

    /// What keys, values and operations are derived from
    #[arg(long, value_name = "S", default_value = "42")]
    pub seed: u64,

    /// The threads of a workload in which each has work of its own; they are recorded as if one
    /// thread did what they do, in turn [default: 1, or what the workload says]
    #[arg(long, value_name = "T", value_parser = size::threads)]
    pub threads: Option<NonZeroU32>,
}

/// Records a workload.
///
/// # Errors
/// [`Error`](crate::Error) for whatever keeps the trace from being written.
pub(super) fn run(what: &Record) -> Result<()> {
    match what {
        Record::Insert(args) => args.write(),
        Record::Dbbench(args) => args.write(),
        Record::Riak(args) => args.write(),
        Record::Settee(args) => args.write(),
        Record::Vpork(args) => args.write(),
        Record::Ycsb(args) => args.write(),
        Record::Custom(args) => args.write(),
        Record::Trace(args) => args.write(),
    }
}

impl<W: WorkloadArgs> RecordArgs<W> {
    fn write(&self) -> Result<()> {
        interrupt::listen()?;
        let inputs = Inputs::beside([("--out", self.out.as_path())])?;
        let chosen = self.workload.workload(&inputs)?;
        let client = Client {
            threads: self.threads.or(chosen.threads).unwrap_or(NonZeroU32::MIN),
            seed: self.seed,
            rate: None,
        };
        let mut operations = 0;
        output::replace_with(&self.out, |file| {
            operations = match (&chosen.workload, &chosen.input) {
                (Workload::Trace(trace), Some(input)) => {
                    output::copy(&input.path, file, &self.out)?;
                    trace.operations
                }
                (workload, _) => record::record(workload, &client, file, &self.out)?,
            };
            Ok(())
        })?;
        let text = format!("{}: {} operations\n", self.out.display(), grouped(operations));
        super::print(&text)
    }
}
