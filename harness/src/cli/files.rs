//! The files that a report is written to.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::report::{csv, html, json, markdown};
use crate::results::Comparison;
use crate::{Error, Result};

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
    fn named(&self) -> impl Iterator<Item = (&str, &Path)> {
        let files = [("--markdown", &self.markdown), ("--csv", &self.csv), ("--html", &self.html)];
        files.into_iter().filter_map(|(flag, file)| Some((flag, file.as_deref()?)))
    }

    /// Whether no file is named.
    pub fn is_empty(&self) -> bool {
        self.named().next().is_none()
    }

    /// Tells before any work is done whether every file can be written, and is another one than
    /// the others and `besides`, the result itself with what names it.
    ///
    /// # Errors
    /// [`Error::Usage`] or [`Error::Io`] if not.
    pub fn check<'a>(&'a self, besides: Option<(&'a str, &'a Path)>) -> Result<()> {
        let all: Vec<(&str, &Path)> = besides.into_iter().chain(self.named()).collect();
        for (at, (flag, file)) in all.iter().enumerate() {
            json::check_writable(file)?;
            for (other, before) in &all[..at] {
                if json::is_same_file(before, file)? {
                    let file = before.display();
                    return Err(Error::Usage(format!("{other} and {flag} both name {file}")));
                }
            }
        }
        Ok(())
    }

    /// Writes the reports; `pairs` are the ratios asked for.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be written.
    pub fn write(&self, comparison: &Comparison, pairs: &[(String, String)]) -> Result<()> {
        if let Some(file) = &self.markdown {
            json::replace_file(file, &markdown::render(comparison, pairs))?;
        }
        if let Some(file) = &self.csv {
            json::replace_file(file, &csv::render(comparison)?)?;
        }
        if let Some(file) = &self.html {
            json::replace_file(file, &html::render(comparison, pairs)?)?;
        }
        Ok(())
    }
}
