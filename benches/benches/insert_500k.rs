//! The main job: 500,000 records into every engine that is here, and into `raw-append`, read back
//! and compared. Takes the options of `enginelab compare insert`:
//!
//! ```text
//! cargo bench --bench insert_500k
//! cargo bench --bench insert_500k -- --items 20000 --engines bitcask,lsm
//! ```
//! A full run writes its result to `results/`, named by date and processor, beside earlier ones.
//! Under `cargo test` a few records show that it works.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use harness::cli::compare::{CompareArgs, compare};
use harness::cli::{exit, parse};
use harness::measure::machine::Machine;
use harness::run::child::serve_if_asked;
use harness::workload::insert::InsertArgs;

const FULL_ITEMS: NonZeroU64 = NonZeroU64::new(500_000).unwrap();
const TINY_ITEMS: NonZeroU64 = NonZeroU64::new(200).unwrap();

/// The main job: 500,000 records into every engine, side by side
#[derive(Debug, Parser)]
#[command(
    name = "insert_500k",
    bin_name = "cargo bench --bench insert_500k --",
    max_term_width = 100
)]
struct Cli {
    #[command(flatten)]
    args: CompareArgs<InsertArgs>,

    /// Given by cargo bench
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    serve_if_asked();
    // Cargo tells a bench run from a test run by this argument; what a test run is given besides
    // is for the test harness that this is not.
    if !std::env::args().any(|argument| argument == "--bench") {
        let mut args = CompareArgs::<InsertArgs>::parse_nothing();
        args.workload.items = Some(TINY_ITEMS);
        return exit(compare(&args, &["raw-append", "memory"]));
    }
    let Cli { mut args, .. } = match parse::<Cli>() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let items = *args.workload.items.get_or_insert(FULL_ITEMS);
    let common = &mut args.common;
    let has_place =
        common.out.is_some() || common.files.markdown.is_some() || common.resume.is_some();
    if items < FULL_ITEMS || has_place {
        return exit(compare(&args, &["raw-append"]));
    }
    let stem = match result_stem(items) {
        Ok(stem) => stem,
        Err(error) => return exit(Err(error)),
    };
    let report = stem.with_added_extension("md");
    common.out = Some(stem.with_added_extension("json"));
    common.files.markdown = Some(report.clone());
    let ending = compare(&args, &["raw-append"]);
    if ending.is_ok() {
        eprintln!("report: {}", report.display());
    }
    exit(ending)
}

/// The path of a full run's files, without their extensions.
fn result_stem(items: NonZeroU64) -> harness::Result<PathBuf> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let workspace = package.as_deref().and_then(Path::parent).unwrap_or(Path::new("."));
    let machine = Machine::describe(workspace)?;
    let name = format!("{}-insert-{items}", machine.slug());
    let results = workspace.join("results");
    let is_taken = |stem: &Path| {
        ["json", "md"].iter().any(|extension| stem.with_added_extension(extension).exists())
    };
    // An earlier result stays as it is.
    let (mut stem, mut number) = (results.join(&name), 2);
    while is_taken(&stem) {
        stem = results.join(format!("{name}-{number}"));
        number += 1;
    }
    Ok(stem)
}
