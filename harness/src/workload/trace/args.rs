//! The flags of the workload, and the way from the files to a trace that can be replayed.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use clap::Args;
use tempfile::TempPath;

use super::compile::{Compiler, Refusal};
use super::facts::Format;
use super::format::TraceFile;
use super::lines::{Lines, MOST_LINE_BYTES, is_recorded};
use super::{parameters_of, requests};
use crate::cli::size;
use crate::files::Inputs;
use crate::workload::sized::Content;
use crate::workload::{Chosen, Input, Workload, WorkloadArgs};
use crate::{Error, Result};

/// The flags of the workload.
#[derive(Debug, Clone, Args)]
pub struct TraceArgs {
    /// The files of the trace, in order, plain or compressed by zstd: cache traces of Twitter's, or
    /// lists of operations as YCSB prints them; or one file that enginelab recorded. Lines have up
    /// to 1 MiB, keys up to 65,535 bytes, values up to 16 MiB; there may be 2,097,152 different
    /// seconds
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Replay so many times as fast as the trace was recorded, each operation due at its time
    /// [default: as fast as the engine can]
    #[arg(long, value_name = "S", value_parser = size::factor, allow_negative_numbers = true)]
    pub speed: Option<f64>,

    /// What values are made of: the trace has only their sizes [default: text]
    #[arg(long, value_name = "CONTENT", value_enum)]
    pub content: Option<Content>,

    /// Bytes of a value where the trace tells no size [default: 1,000]
    #[arg(long, value_name = "BYTES", value_parser = size::value_bytes)]
    pub value_bytes: Option<NonZeroU32>,

    /// Skip lines that are no requests, or too long, and report how many there were
    #[arg(long)]
    pub skip_bad_lines: bool,

    /// Where the trace is compiled: it takes some 100 bytes a request there [default: the system's
    /// directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub temp_dir: Option<PathBuf>,
}

/// Bytes of a value unless others are asked for.
const VALUE_BYTES: u32 = 1_000;

impl WorkloadArgs for TraceArgs {
    fn workload(&self, inputs: &Inputs) -> Result<Chosen> {
        let (trace, temporary) = self.trace(inputs)?;
        if self.speed.is_some() && trace.times.is_empty() {
            return Err(Error::Usage("--speed: the trace tells no times".into()));
        }
        if self.content.is_some() && trace.description.facts.recorded.is_some() {
            let said = "--content: the values are those of the workload that was recorded";
            return Err(Error::Usage(said.into()));
        }
        let parameters = parameters_of(
            &trace.description,
            trace.checksum,
            &self.files,
            self.speed,
            self.content.unwrap_or_default(),
        )?;
        let path = std::path::absolute(trace.path()).map_err(Error::io("find", trace.path()))?;
        let input = Some(Input { path, temporary });
        Ok(Chosen { input, ..Workload::Trace(parameters).into() })
    }
}

impl TraceArgs {
    /// The trace as a file that can be replayed, and what removes it if it was made for that.
    fn trace(&self, inputs: &Inputs) -> Result<(TraceFile, Option<TempPath>)> {
        for path in &self.files {
            if !is_recorded(&inputs.open(path)?, path)? {
                continue;
            }
            if self.files.len() > 1 {
                let path = path.display();
                return Err(Error::Usage(format!(
                    "{path} was recorded by enginelab, and is replayed alone"
                )));
            }
            for (flag, is_given) in [
                ("--value-bytes", self.value_bytes.is_some()),
                ("--skip-bad-lines", self.skip_bad_lines),
                ("--temp-dir", self.temp_dir.is_some()),
            ] {
                if is_given {
                    let path = path.display();
                    return Err(Error::Usage(format!(
                        "{flag}: {path} was recorded by enginelab, and is replayed as it is"
                    )));
                }
            }
            let trace = TraceFile::open(path)?;
            trace.verify()?;
            return Ok((trace, None));
        }
        let directory = self.temp_dir.clone().unwrap_or_else(std::env::temp_dir);
        let made = self.compile(&directory, inputs)?;
        Ok((TraceFile::open(&made)?, Some(made)))
    }

    fn compile(&self, directory: &Path, inputs: &Inputs) -> Result<TempPath> {
        let mut compiler =
            Compiler::new(directory, self.value_bytes.map_or(VALUE_BYTES, NonZeroU32::get))?;
        for path in &self.files {
            let mut lines = Lines::new(inputs.open(path)?, path)?;
            let mut format: Option<Format> = None;
            while let Some(line) = lines.next()? {
                if line.starts_with(b"timestamp,") {
                    continue;
                }
                match take(line, &mut format, &mut compiler) {
                    Ok(()) => {}
                    Err(Refusal::Line(_)) if self.skip_bad_lines => compiler.skip_line(),
                    Err(Refusal::Line(said) | Refusal::Trace(said)) => {
                        return Err(lines.wrong(&said));
                    }
                    Err(Refusal::Failed(error)) => return Err(error),
                }
            }
        }
        compiler.finish()
    }
}

/// Takes a line of a file; its first one tells the format of all.
fn take(
    line: &[u8],
    format: &mut Option<Format>,
    compiler: &mut Compiler<'_>,
) -> std::result::Result<(), Refusal> {
    if line.len() > MOST_LINE_BYTES {
        return Err(Refusal::Line("expected lines of at most 1 MiB".into()));
    }
    let known = format.map_or_else(|| requests::format_of(line), Ok).map_err(Refusal::Line)?;
    let request = requests::parse(known, line).map_err(Refusal::Line)?;
    *format = Some(known);
    compiler.add(known, &request)
}
