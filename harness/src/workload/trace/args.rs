//! The flags of the workload, and the way from the files to a trace that can be replayed.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use clap::Args;
use tempfile::TempPath;

use super::compile::Compiler;
use super::facts::Format;
use super::format::TraceFile;
use super::lines::{Lines, is_recorded};
use super::{parameters_of, requests, versions};
use crate::cli::size;
use crate::report::figures::grouped;
use crate::workload::sized::Content;
use crate::workload::{Chosen, Input, Workload, WorkloadArgs};
use crate::{Error, Result};

/// The flags of the workload.
#[derive(Debug, Clone, Args)]
pub struct TraceArgs {
    /// The files of the trace, in order, plain or compressed by zstd: cache traces of Twitter's, or
    /// lists of operations as YCSB prints them; or one file that enginelab recorded
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Replay so many times as fast as the trace was recorded, each operation due at its time;
    /// --rate does not apply then [default: as fast as the engine can]
    #[arg(long, value_name = "S", value_parser = size::factor, allow_negative_numbers = true)]
    pub speed: Option<f64>,

    /// What values are made of: the trace has only their sizes
    #[arg(long, value_name = "CONTENT", value_enum, default_value_t)]
    pub content: Content,

    /// Bytes of a value where the trace tells no size
    #[arg(long, value_name = "BYTES", default_value = "1,000", value_parser = size::value_bytes)]
    pub value_bytes: NonZeroU32,

    /// Skip lines that are no requests, and report how many there were
    #[arg(long)]
    pub skip_bad_lines: bool,

    /// Where the trace is compiled: it takes some 100 bytes a request there [default: the system's
    /// directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub temp_dir: Option<PathBuf>,
}

impl WorkloadArgs for TraceArgs {
    fn workload(&self) -> Result<Chosen> {
        let (trace, temporary) = self.trace()?;
        if self.speed.is_some() && trace.times.is_empty() {
            return Err(Error::Usage("--speed: the trace tells no times".into()));
        }
        let parameters = parameters_of(
            &trace.description,
            trace.checksum,
            &self.files,
            self.speed,
            self.content,
        )?;
        let path = std::path::absolute(trace.path()).map_err(Error::io("find", trace.path()))?;
        let input = Some(Input { path, temporary });
        Ok(Chosen { input, ..Workload::Trace(parameters).into() })
    }
}

impl TraceArgs {
    /// The trace as a file that can be replayed, and what removes it if it was made for that.
    fn trace(&self) -> Result<(TraceFile, Option<TempPath>)> {
        for path in &self.files {
            if !is_recorded(path)? {
                continue;
            }
            if self.files.len() > 1 {
                let path = path.display();
                return Err(Error::Usage(format!(
                    "{path} was recorded by enginelab, and is replayed alone"
                )));
            }
            let trace = TraceFile::open(path)?;
            trace.verify()?;
            return Ok((trace, None));
        }
        let directory = self.temp_dir.clone().unwrap_or_else(std::env::temp_dir);
        let made = self.compile(&directory)?;
        Ok((TraceFile::open(&made)?, Some(made)))
    }

    fn compile(&self, directory: &Path) -> Result<TempPath> {
        let mut compiler = Compiler::new(directory, self.value_bytes.get())?;
        let mut count = 0u64;
        for path in &self.files {
            let mut lines = Lines::open(path)?;
            let mut format: Option<Format> = None;
            while let Some(line) = lines.next()? {
                if line.starts_with(b"timestamp,") {
                    continue;
                }
                let known = format.map_or_else(|| requests::format_of(line), Ok);
                let parsed = known.and_then(|known| Ok((known, requests::parse(known, line)?)));
                let taken = match parsed {
                    Ok((known, request)) => {
                        format = Some(known);
                        compiler.add(known, &request)?
                    }
                    Err(said) => Err(said),
                };
                match taken {
                    Ok(()) => count += 1,
                    Err(_) if self.skip_bad_lines => compiler.skip_line(),
                    Err(said) => return Err(lines.wrong(&said)),
                }
                if count > versions::MOST_OPERATIONS {
                    let most = grouped(versions::MOST_OPERATIONS);
                    return Err(Error::Usage(format!("a trace of over {most} requests")));
                }
            }
        }
        if count == 0 {
            return Err(Error::Usage("there is no request in the trace".into()));
        }
        compiler.finish()
    }
}
