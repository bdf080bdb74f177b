//! The command line.

pub mod compare;
mod completions;
pub mod diff;
pub mod engines;
pub mod files;
pub mod merge;
pub mod report;
pub mod suite;

mod progress;
pub mod record;
pub(crate) mod size;
pub mod workloads;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use self::compare::CommonArgs;
use self::workloads::WorkloadCommand;
use crate::results::Comparison;
use crate::{Error, Result, plain};

const EXAMPLES: &str = "\
Examples:
  enginelab engines                                        what there is
  enginelab compare insert --items 100000                  all engines side by side
  enginelab compare insert --engines bitcask,lsm --corpus fixed --repeats 5 --items 5000
                                                           the published comparison
  enginelab compare riak --items 5000 --repeats 5 --engines bitcask,lsm
                                                           the same in Riak's layout, explained
  enginelab compare dbbench --benchmarks fillrandom,readrandom,readwhilewriting --num 100000
  enginelab compare settee --long 20000000                 small JSON objects, published beside
  enginelab compare vpork --threads 100                    VPork's report beside the published one
  enginelab compare ycsb --core b --threads 2 --rate 50000 --ycsb-output
  enginelab compare custom --example > mine.toml; enginelab compare custom mine.toml
  enginelab compare trace cluster52.zst --speed 10       ten times as fast as it was recorded
  enginelab suite results/mine                             everything, with a page over all of it
  enginelab compare insert --durability power --threads 8 --out result.json

Exit status:
  0  everything ran, and nothing was lost
  1  an engine failed, lost or changed records; diff: something is worse
  2  what was asked for makes no sense or cannot be had here
  130  stopped by Ctrl-C; what had finished was kept";

/// Which embedded storage engine should hold my data, and what will it cost me?
#[derive(Debug, Parser)]
#[command(name = "enginelab", version, after_help = EXAMPLES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run engines side by side
    #[command(subcommand, after_help = EXAMPLES)]
    Compare(WorkloadCommand<CommonArgs>),
    /// Run the comparisons that answer most questions, and make a page over all of them
    Suite(suite::SuiteArgs),
    /// Write what a workload does to a file, without running an engine, for `compare trace`
    #[command(subcommand)]
    Record(WorkloadCommand<record::RecordArgs>),
    /// Tell what changed from one result to another, beyond noise
    #[command(
        after_help = "Compare results of five repeats or more: with three, only large changes \
                            stand out among so many figures.

Exit status: 0 nothing is worse; 1 something is; 2 they cannot be compared"
    )]
    Diff(diff::DiffArgs),
    /// Make reports of a saved result; without a file to write to, print the tables
    Report(report::ReportArgs),
    /// Show the results of several machines side by side
    Merge(merge::MergeArgs),
    /// List the workloads
    Workloads(workloads::WorkloadsArgs),
    /// List the engines: which are here, how to get the others, what each does for durability
    Engines(engines::EnginesArgs),
    /// Print what a shell needs to complete commands and flags
    #[command(after_help = completions::HELP)]
    Completions(completions::CompletionsArgs),
}

/// How a program ended that was able to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Everything ran, and nothing was lost.
    Well,
    /// An engine failed, lost or changed something.
    Badly,
    /// The user stopped it.
    Interrupted,
}

impl Ending {
    fn of(comparison: &Comparison) -> Self {
        match (comparison.interrupted, comparison.problems().is_empty()) {
            (true, _) => Self::Interrupted,
            (false, true) => Self::Well,
            (false, false) => Self::Badly,
        }
    }
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> Self {
        Self::from(match ending {
            Ending::Well => 0,
            Ending::Badly => 1,
            Ending::Interrupted => 130,
        })
    }
}

/// The program `enginelab`.
pub fn main() -> ExitCode {
    let cli: Cli = match parse() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    exit(match cli.command {
        Command::Compare(what) => compare::run(&what),
        Command::Suite(args) => suite::suite(&args),
        Command::Record(what) => record::run(&what).map(|()| Ending::Well),
        Command::Diff(args) => diff::diff(&args),
        Command::Report(args) => report::report(&args).map(|()| Ending::Well),
        Command::Merge(args) => merge::merge(&args).map(|()| Ending::Well),
        Command::Workloads(args) => workloads::list(&args).map(|()| Ending::Well),
        Command::Engines(args) => engines::list(&args).map(|()| Ending::Well),
        Command::Completions(args) => {
            print(&completions::script(args.shell, Cli::command())).map(|()| Ending::Well)
        }
    })
}

/// Reads the command line. Help goes to standard output; what is wrong with the command line goes
/// to standard error, in one line.
///
/// # Errors
/// The exit code to end with.
pub fn parse<T: Parser>() -> std::result::Result<T, ExitCode> {
    T::try_parse().map_err(|error| {
        if !error.use_stderr() {
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            let _ = error.print();
            return ExitCode::from(2);
        }
        let text = error.render().to_string();
        let said: Vec<&str> = text
            .lines()
            .map(str::trim)
            .take_while(|line| !line.starts_with("Usage:"))
            .filter(|line| !line.is_empty() && !line.starts_with("For more information"))
            .collect();
        let said = said.join(" ");
        complain(&format!("{} (see --help)", said.strip_prefix("error: ").unwrap_or(&said)));
        ExitCode::from(2)
    })
}

/// Says on standard error what went wrong, in one line, of which a long text in it is no part.
fn complain(error: &str) {
    say(&format!("enginelab: {}", plain::shortened(error, MOST_ERROR)));
}

/// The characters of an error: a screen of them.
const MOST_ERROR: usize = 1_500;

/// Says something on standard error, in one line.
pub(crate) fn say(line: &str) {
    eprintln!("{}", plain::line(line));
}

/// Prints what was asked for, such that nothing in it commands the terminal.
///
/// # Errors
/// As [`print_as_is`].
fn print(text: &str) -> Result<()> {
    print_as_is(&plain::lines(text))
}

/// Prints what has colours. A reader that has seen enough closes the pipe: no reason to fail.
///
/// # Errors
/// [`Error::Io`] if it cannot be written.
fn print_as_is(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::io("write", "standard output")(error))
        }
        _ => Ok(()),
    }
}

/// Whether what is printed may be coloured.
fn colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// The exit code of an outcome; an error is printed, in one line.
pub fn exit(outcome: Result<Ending>) -> ExitCode {
    match outcome {
        Ok(ending) => ending.into(),
        Err(Error::Interrupted) => Ending::Interrupted.into(),
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(2)
        }
    }
}
