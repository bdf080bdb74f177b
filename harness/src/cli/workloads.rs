//! The workloads: as commands of `compare` and `record`, and as the list of `enginelab workloads`.

use clap::{Args, Subcommand};

use super::EXAMPLES;
use crate::Result;
use crate::report::json;
use crate::workload::custom::{self, CustomArgs};
use crate::workload::dbbench::{self, DbbenchArgs};
use crate::workload::insert::{self, InsertArgs};
use crate::workload::riak::{self, RiakArgs};
use crate::workload::settee::{self, SetteeArgs};
use crate::workload::trace::{self, TraceArgs};
use crate::workload::vpork::{self, VporkArgs};
use crate::workload::ycsb::{self, YcsbArgs};
use crate::workload::{ALL, About, WorkloadArgs};

/// The flags of a workload, and those that a command has for all workloads.
#[derive(Debug, Clone, Args)]
pub struct Flags<W: Args, C: Args> {
    /// What the workload does.
    #[command(flatten)]
    pub workload: W,

    /// Everything else.
    #[command(flatten)]
    pub common: C,
}

/// A workload by its name, in a command that has the flags `C` for all of them.
#[derive(Debug, Subcommand)]
pub(super) enum WorkloadCommand<C: Args> {
    #[command(about = insert::ABOUT.summary, after_help = EXAMPLES)]
    Insert(Box<Flags<InsertArgs, C>>),
    #[command(about = riak::ABOUT.summary, after_help = EXAMPLES)]
    Riak(Box<Flags<RiakArgs, C>>),
    #[command(about = settee::ABOUT.summary, after_help = EXAMPLES)]
    Settee(Box<Flags<SetteeArgs, C>>),
    #[command(about = vpork::ABOUT.summary, after_help = EXAMPLES)]
    Vpork(Box<Flags<VporkArgs, C>>),
    #[command(about = ycsb::ABOUT.summary, after_help = EXAMPLES)]
    Ycsb(Box<Flags<YcsbArgs, C>>),
    #[command(about = dbbench::ABOUT.summary, after_help = EXAMPLES)]
    Dbbench(Box<Flags<DbbenchArgs, C>>),
    #[command(about = custom::ABOUT.summary, after_help = EXAMPLES)]
    Custom(Box<Flags<CustomArgs, C>>),
    #[command(about = trace::ABOUT.summary, after_help = EXAMPLES)]
    Trace(Box<Flags<TraceArgs, C>>),
}

impl<C: Args> WorkloadCommand<C> {
    /// Its flags, and those of all.
    pub(super) fn flags(&self) -> (&dyn WorkloadArgs, &C) {
        match self {
            Self::Insert(flags) => (&flags.workload, &flags.common),
            Self::Riak(flags) => (&flags.workload, &flags.common),
            Self::Settee(flags) => (&flags.workload, &flags.common),
            Self::Vpork(flags) => (&flags.workload, &flags.common),
            Self::Ycsb(flags) => (&flags.workload, &flags.common),
            Self::Dbbench(flags) => (&flags.workload, &flags.common),
            Self::Custom(flags) => (&flags.workload, &flags.common),
            Self::Trace(flags) => (&flags.workload, &flags.common),
        }
    }
}

/// What can be chosen.
#[derive(Debug, Clone, Args)]
pub struct WorkloadsArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Lists the workloads, a line each.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if it cannot be written.
pub(super) fn list(args: &WorkloadsArgs) -> Result<()> {
    let text = if args.json {
        json::render(&ALL)?
    } else {
        let width = ALL.iter().map(|about| about.name.len()).max().unwrap_or(0);
        let line = |about: &About| format!("{:width$}  {}\n", about.name, about.summary);
        ALL.iter().map(line).collect()
    };
    super::print(&text)
}
