//! What the Bitcask engine promises, measured beside the engines it is compared with:
//!
//! ```text
//! cargo bench --bench bitcask
//! cargo bench --bench bitcask -- --only reads --rounds 5
//! ```
//! Every figure is the median of some rounds, in which the engines take turns; ratios are of the
//! medians of one run. Under `cargo test` every part runs once, with a few records.

mod insert;
mod open;
mod reads;
mod reclaim;
mod records;
mod small;
mod tails;

use std::path::PathBuf;
use std::process::ExitCode;

use benches::figure::{Figure, print_figures};
use benches::program::{Output, arguments, exit};
use clap::{Parser, ValueEnum};
use tempfile::TempDir;

/// The figures of the Bitcask engine, measured beside other engines
#[derive(Debug, Clone, Parser)]
#[command(name = "bitcask", max_term_width = 100)]
struct Cli {
    /// The parts to run [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART")]
    only: Vec<Part>,

    /// Records of 2,656-byte values; ten times as many of 250 bytes in the large run of `small`
    #[arg(long, default_value_t = 500_000, value_name = "COUNT")]
    items: u64,

    /// Rounds of each measurement; the median counts
    #[arg(long, default_value_t = 3, value_name = "COUNT")]
    rounds: usize,

    /// Peers that insert too; empty for none
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "ENGINES",
        default_value = "fjall,lmdb,rocksdb"
    )]
    peers: Vec<String>,

    /// Where data lies, and how figures are printed.
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Inserts at level `process` against plain writes and the peers
    Insert,
    /// Random reads against LMDB, with one thread and two
    Reads,
    /// Reads beside a writer and merges: the 99.9th percentile against that of an idle store
    Tails,
    /// Small records in batches: many against few, memory a key, the longest growth of the keydir
    Small,
    /// Opening from hint files
    Open,
    /// Overwriting everything four times, then reclaiming the space
    Reclaim,
}

/// What the parts have in common.
struct Bench {
    items: u64,
    rounds: usize,
    peers: Vec<String>,
    directory: PathBuf,
}

impl Bench {
    /// A directory that goes when it is dropped.
    fn scratch(&self) -> engines::Result<TempDir> {
        tempfile::tempdir_in(&self.directory)
            .map_err(engines::Error::io("make a directory in", &self.directory))
    }
}

fn main() -> ExitCode {
    match arguments("bitcask", |cli| Cli { items: 300, rounds: 1, ..cli }) {
        Ok(cli) => exit("bitcask", run(cli)),
        Err(code) => code,
    }
}

fn run(cli: Cli) -> engines::Result<()> {
    let bench = Bench {
        items: cli.items.max(100),
        rounds: cli.rounds.max(1),
        peers: cli.peers.into_iter().filter(|name| !name.is_empty()).collect(),
        directory: cli
            .output
            .directory
            .clone()
            .unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into()),
    };
    cli.output.print_head(&bench.directory);
    let parts = if cli.only.is_empty() { Part::value_variants().to_vec() } else { cli.only };
    for part in parts {
        let figures: Vec<Figure> = match part {
            Part::Insert => insert::run(&bench)?,
            Part::Reads => reads::run(&bench)?,
            Part::Tails => tails::run(&bench)?,
            Part::Small => small::run(&bench)?,
            Part::Open => open::run(&bench)?,
            Part::Reclaim => reclaim::run(&bench)?,
        };
        print_figures(&figures, cli.output.json);
    }
    Ok(())
}
