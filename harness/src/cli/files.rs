//! The files that a report is written to.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::Result;
use crate::files::output;
use crate::report::{csv, html, markdown};
use crate::results::Comparison;

/// Where reports go.
#[derive(Debug, Clone, Default, Args)]
pub struct Files {
    /// Write the report as Markdown to this file
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,

    /// Write every figure as CSV to this file: a row for each phase of each run
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,

    /// Write the report as one page of HTML, with pictures, to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

impl Files {
    /// Each file with the flag that names it.
    pub fn named(&self) -> impl Iterator<Item = (&str, &Path)> {
        let files = [("--markdown", &self.markdown), ("--csv", &self.csv), ("--html", &self.html)];
        files.into_iter().filter_map(|(flag, file)| Some((flag, file.as_deref()?)))
    }

    /// Whether no file is named.
    pub fn is_empty(&self) -> bool {
        self.named().next().is_none()
    }

    /// Writes the reports; `pairs` are the ratios asked for.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if a file cannot be written.
    pub fn write(&self, comparison: &Comparison, pairs: &[(String, String)]) -> Result<()> {
        if let Some(file) = &self.markdown {
            output::replace(file, &markdown::render(comparison, pairs))?;
        }
        if let Some(file) = &self.csv {
            output::replace(file, &csv::render(comparison)?)?;
        }
        if let Some(file) = &self.html {
            output::replace(file, &html::render(comparison, pairs)?)?;
        }
        Ok(())
    }
}
