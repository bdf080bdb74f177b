//! `enginelab record WORKLOAD`: what a workload does, as a trace.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::size;
use super::workloads::WorkloadCommand;
use crate::files::{Inputs, output};
use crate::report::figures::grouped;
use crate::report::json;
use crate::results::Client;
use crate::workload::Workload;
use crate::workload::trace::{TraceArgs, record};
use crate::{Error, Result, interrupt};

/// What can be chosen for every workload.
#[derive(Debug, Clone, Args)]
pub struct RecordArgs {
    /// The file to write the trace to
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,

    /// What keys, values and operations are derived from [default: 42]
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,

    /// The threads of a workload in which each has work of its own; they are recorded as if one
    /// thread did what they do, in turn [default: 1, or what the workload says]
    #[arg(long, value_name = "T", value_parser = size::threads)]
    pub threads: Option<NonZeroU32>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What was recorded.
#[derive(Serialize)]
struct Recorded<'a> {
    trace: &'a Path,
    operations: u64,
}

/// What keys, values and operations are derived from unless something else is asked for.
const SEED: u64 = 42;

/// Records a workload.
///
/// # Errors
/// [`Error`] for whatever keeps the trace from being written.
pub(super) fn run(what: &WorkloadCommand<RecordArgs>) -> Result<()> {
    let (workload, args) = what.flags();
    if workload.example().is_some() {
        let said = "--example: it is printed by enginelab compare custom --example";
        return Err(Error::Usage(said.into()));
    }
    if let Some(flag) = workload.report_flag() {
        return Err(Error::Usage(format!("{flag}: nothing is measured that could be reported")));
    }
    if let WorkloadCommand::Trace(flags) = what {
        check_trace(&flags.workload, args)?;
    }
    interrupt::listen()?;
    let inputs = Inputs::beside([("--out", args.out.as_path())])?;
    let chosen = workload.workload(&inputs)?;
    let client = Client {
        threads: args.threads.or(chosen.threads).unwrap_or(NonZeroU32::MIN),
        seed: args.seed.unwrap_or(SEED),
        rate: None,
    };
    let mut operations = 0;
    output::replace_with(&args.out, |file| {
        operations = match (&chosen.workload, &chosen.input) {
            (Workload::Trace(trace), Some(input)) => {
                output::copy(&input.path, file, &args.out)?;
                trace.operations
            }
            (workload, _) => record::record(workload, &client, file, &args.out)?,
        };
        Ok(())
    })?;
    super::print(&match args.json {
        true => json::render(&Recorded { trace: &args.out, operations })?,
        false => format!("{}: {} operations\n", args.out.display(), grouped(operations)),
    })
}

/// Refuses flags that mean something when a trace is replayed, or where operations are made.
fn check_trace(trace: &TraceArgs, args: &RecordArgs) -> Result<()> {
    for (flag, is_given) in [
        ("--speed", trace.speed.is_some()),
        ("--content", trace.content.is_some()),
        ("--seed", args.seed.is_some()),
        ("--threads", args.threads.is_some()),
    ] {
        if is_given {
            return Err(Error::Usage(format!(
                "{flag}: a trace is recorded as it is, and may be replayed with another {flag}"
            )));
        }
    }
    Ok(())
}
