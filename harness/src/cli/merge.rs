//! `enginelab merge`: the results of several machines side by side.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::files::{Inputs, output};
use crate::report::{json, machines};
use crate::results::difference::Difference;
use crate::results::{Comparison, Parameters};
use crate::{Error, Result, interrupt};

/// What can be chosen.
#[derive(Debug, Clone, Args)]
pub struct MergeArgs {
    /// The results, two or more, of the same work, each of at most 1 GiB
    #[arg(required = true, num_args = 2.., value_name = "FILE")]
    pub results: Vec<PathBuf>,

    /// Write them together as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Print that JSON instead of the tables
    #[arg(long)]
    pub json: bool,
}

/// Several results in one file.
#[derive(Debug, Serialize)]
struct Merged<'a> {
    schema: &'static str,
    results: &'a [Comparison],
}

/// Prints the results side by side.
///
/// # Errors
/// [`Error::Usage`] for what is no result, or of other work than the first.
pub fn merge(args: &MergeArgs) -> Result<()> {
    interrupt::listen()?;
    let inputs = Inputs::beside(args.out.as_deref().map(|out| ("--out", out)))?;
    let results = args.results.iter().map(|path| json::read_beside(&inputs, path));
    let results: Vec<Comparison> = results.collect::<Result<_>>()?;
    let Some((first, others)) = results.split_first() else {
        return Err(Error::Usage("there is nothing to merge".into()));
    };
    for (other, path) in others.iter().zip(&args.results[1..]) {
        let repeats = first.workload.repeats;
        let of_other = Parameters { repeats, ..other.workload.clone() };
        if let Some(found) = Difference::first(&first.workload, &of_other) {
            let (path, first) = (path.display(), args.results[0].display());
            let Difference { place, then, now } = found;
            return Err(Error::Usage(format!(
                "{path} is of other work than {first}: {place} is {now}, and {then} there"
            )));
        }
    }
    let merged = Merged { schema: "enginelab.merged/1", results: &results };
    let text = json::render(&merged)?;
    interrupt::check()?;
    if let Some(out) = &args.out {
        output::replace(out, &text)?;
    }
    super::print(&if args.json { text } else { machines::render(&results) })
}
