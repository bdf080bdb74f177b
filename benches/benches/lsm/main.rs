//! What the LSM engine promises, measured beside the engines it is compared with:
//!
//! ```text
//! cargo bench --bench lsm
//! cargo bench --bench lsm -- --only mixed --rounds 1 --seconds 20
//! ```
//! Every part is a comparison of the laboratory: a process for each run, the engines in turns, the
//! same memory and compression for all, everything read back. Figures are medians of the rounds.
//! Reads have a bench of their own, `lsm_reads`. Under `cargo test` every part runs once, with a
//! few records.

mod group;
mod inserts;
mod lab;
mod many;
mod memory;
mod mixed;

use std::process::ExitCode;

use benches::figure::{Figure, print_figures};
use benches::program::{Output, arguments, exit};
use clap::{Parser, ValueEnum};
use harness::run::child::serve_if_asked;

use lab::Lab;

/// The figures of the LSM engine, measured beside other engines
#[derive(Debug, Clone, Parser)]
#[command(name = "lsm", max_term_width = 100)]
struct Cli {
    /// The parts to run [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART")]
    only: Vec<Part>,

    /// Records of 2,656-byte values; four times as many of 100 bytes, and ten times in `many`
    #[arg(long, default_value_t = 500_000, value_name = "COUNT")]
    items: u64,

    /// Seconds of mixed traffic
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    seconds: u64,

    /// Rounds of each measurement; the median counts
    #[arg(long, default_value_t = 3, value_name = "COUNT")]
    rounds: u32,

    /// Where data lies, and how figures are printed.
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Load, quiesce and compact, of large values and small ones, beside RocksDB and fjall
    Inserts,
    /// Updates and reads of zipfian keys, two threads, beside RocksDB
    Mixed,
    /// Level `power`: eight threads against one
    Group,
    /// Ten times as many small records must not be slower
    Many,
    /// Memory against the budget, phase by phase
    Memory,
}

fn main() -> ExitCode {
    serve_if_asked();
    match arguments("lsm", |cli| Cli { items: 300, rounds: 1, seconds: 1, ..cli }) {
        Ok(cli) => exit("lsm", run(cli)),
        Err(code) => code,
    }
}

fn run(cli: Cli) -> harness::Result<()> {
    let lab = Lab {
        items: cli.items.max(100),
        rounds: cli.rounds.max(1),
        seconds: cli.seconds.max(1),
        directory: cli
            .output
            .directory
            .clone()
            .unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into()),
    };
    cli.output.print_head(&lab.directory);
    let parts = if cli.only.is_empty() { Part::value_variants().to_vec() } else { cli.only };
    for part in parts {
        let figures: Vec<Figure> = match part {
            Part::Inserts => inserts::run(&lab)?,
            Part::Mixed => mixed::run(&lab)?,
            Part::Group => group::run(&lab)?,
            Part::Many => many::run(&lab)?,
            Part::Memory => memory::run(&lab)?,
        };
        print_figures(&figures, cli.output.json);
    }
    Ok(())
}
