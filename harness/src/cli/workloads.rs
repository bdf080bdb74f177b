//! `enginelab workloads`: what can be compared.

use clap::Args;

use crate::workload::{ALL, About};
use crate::{Error, Result};

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
/// [`Error::Io`] if it cannot be written.
pub(super) fn list(args: &WorkloadsArgs) -> Result<()> {
    let text = if args.json {
        let json =
            serde_json::to_string_pretty(&ALL).map_err(|error| Error::Usage(error.to_string()))?;
        json + "\n"
    } else {
        let width = ALL.iter().map(|about| about.name.len()).max().unwrap_or(0);
        let line = |about: &About| format!("{:width$}  {}\n", about.name, about.summary);
        ALL.iter().map(line).collect()
    };
    super::print(&text)
}
