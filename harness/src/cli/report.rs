//! `enginelab report`: reports of a result that was saved.

use std::path::PathBuf;

use clap::Args;

use super::files::Files;
use super::{colour, size};
use crate::error::Error;
use crate::files::Inputs;
use crate::report::{json, terminal};
use crate::{Result, interrupt};

/// What can be chosen.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// The result, as --out wrote it, of at most 1 GiB
    #[arg(value_name = "RESULT.json")]
    pub result: PathBuf,

    /// Where the reports go.
    #[command(flatten)]
    pub files: Files,

    /// Show the ratios of these two engines; may be given more than once [default: bitcask,lsm]
    #[arg(long, value_name = "A,B", value_parser = size::pair)]
    pub pair: Vec<(String, String)>,

    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// Writes the reports that were asked for; without any, prints the one for a terminal, or JSON.
///
/// # Errors
/// [`Error::Usage`] for what is no result, and files that cannot be written or are the result.
pub fn report(args: &ReportArgs) -> Result<()> {
    interrupt::listen()?;
    let inputs = Inputs::beside(args.files.named())?;
    let comparison = json::read_beside(&inputs, &args.result)?;
    let ran = comparison.engines();
    for name in args.pair.iter().flat_map(|(a, b)| [a, b]) {
        if !ran.contains(&name.as_str()) {
            return Err(Error::Usage(format!("--pair names {name}, which did not run")));
        }
    }
    if args.files.is_empty() && !args.json {
        return super::print_as_is(&terminal::render(&comparison, &args.pair, colour()));
    }
    interrupt::check()?;
    args.files.write(&comparison, &args.pair)?;
    if args.json { super::print(&json::render(&comparison)?) } else { Ok(()) }
}
