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

    /// Writes the reports, each that can be written; `pairs` are the ratios asked for.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) for the first file that cannot be written.
    pub fn write(&self, comparison: &Comparison, pairs: &[(String, String)]) -> Result<()> {
        let markdown = write(&self.markdown, || Ok(markdown::render(comparison, pairs)));
        let csv = write(&self.csv, || csv::render(comparison));
        let html = write(&self.html, || html::render(comparison, pairs));
        markdown.and(csv).and(html)
    }
}

fn write(file: &Option<PathBuf>, render: impl FnOnce() -> Result<String>) -> Result<()> {
    file.as_ref().map_or(Ok(()), |file| output::replace(file, &render()?))
}
