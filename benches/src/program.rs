//! What the programs have in common that print figures with their targets.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser};
use harness::measure::machine::Machine;

/// Where data lies, and how figures are printed.
#[derive(Debug, Clone, Args)]
pub struct Output {
    /// Where the databases lie while they are measured [default: below target/]
    #[arg(long, value_name = "DIRECTORY")]
    pub directory: Option<PathBuf>,

    /// Prints one JSON object a figure
    #[arg(long)]
    pub json: bool,

    /// Given by cargo bench
    #[arg(long, hide = true)]
    pub bench: bool,
}

impl Output {
    /// Tells on which machine and when `directory` was measured, unless figures are for machines.
    pub fn print_head(&self, directory: &Path) {
        if !self.json
            && let Ok(machine) = Machine::describe(directory)
        {
            println!("{}", machine.summary());
            println!(
                "Measured {} by enginelab {} ({} build)\n",
                machine.date, machine.enginelab, machine.build
            );
        }
    }
}

/// The arguments of `cargo bench`; under `cargo test`, whose arguments are for a test harness,
/// those of the program `name` without any, made small by `tiny`.
///
/// # Errors
/// The exit code to end with, after help or a wrong argument.
pub fn arguments<C: Parser>(name: &str, tiny: impl FnOnce(C) -> C) -> Result<C, ExitCode> {
    // Cargo tells a bench run from a test run by this argument.
    match std::env::args().any(|argument| argument == "--bench") {
        true => harness::cli::parse(),
        false => Ok(tiny(C::parse_from([name]))),
    }
}

/// The exit code of an outcome; an error is printed.
pub fn exit<E: Display>(name: &str, outcome: Result<(), E>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}
