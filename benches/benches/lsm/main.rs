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

use std::path::PathBuf;
use std::process::ExitCode;

use benches::figure::{Figure, print_figures};
use clap::{Parser, ValueEnum};
use harness::cli::parse;
use harness::measure::machine::Machine;
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

    /// Where the databases lie while they are measured [default: below target/]
    #[arg(long, value_name = "DIRECTORY")]
    directory: Option<PathBuf>,

    /// Prints one JSON object a figure
    #[arg(long)]
    json: bool,

    /// Given by cargo bench
    #[arg(long, hide = true)]
    bench: bool,
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
    // Cargo tells a bench run from a test run by this argument.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let cli = if is_bench {
        match parse::<Cli>() {
            Ok(cli) => cli,
            Err(code) => return code,
        }
    } else {
        Cli { items: 300, rounds: 1, seconds: 1, ..Cli::parse_from(["lsm"]) }
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lsm: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> harness::Result<()> {
    let lab = Lab {
        items: cli.items.max(100),
        rounds: cli.rounds.max(1),
        seconds: cli.seconds.max(1),
        directory: cli.directory.unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into()),
    };
    if !cli.json {
        let machine = Machine::describe(&lab.directory)?;
        println!("{}", machine.summary());
        println!(
            "Measured {} by enginelab {} ({} build)\n",
            machine.date, machine.enginelab, machine.build
        );
    }
    let parts = if cli.only.is_empty() { Part::value_variants().to_vec() } else { cli.only };
    for part in parts {
        let figures: Vec<Figure> = match part {
            Part::Inserts => inserts::run(&lab)?,
            Part::Mixed => mixed::run(&lab)?,
            Part::Group => group::run(&lab)?,
            Part::Many => many::run(&lab)?,
            Part::Memory => memory::run(&lab)?,
        };
        print_figures(&figures, cli.json);
    }
    Ok(())
}
