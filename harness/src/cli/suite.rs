//! `enginelab suite`: the comparisons that answer most questions, one after the other, with their
//! results in one directory and a page over all of them.
//!
//! A suite is a list of command lines of `enginelab compare`: what it does can be had one by one.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Parser};
use serde::Serialize;

use super::Ending;
use super::compare::{self, CommonArgs};
use super::workloads::WorkloadCommand;
use crate::files::output;
use crate::report::html::suite::{self, NotRun, Part};
use crate::report::json;
use crate::{Error, Result};

/// What can be chosen.
#[derive(Debug, Clone, Args)]
pub struct SuiteArgs {
    /// The directory for the results, made if it is not there: NAME.json, .md, .html and .csv of
    /// each comparison, and index.html. What is there already is gone on with
    #[arg(value_name = "DIR", required_unless_present = "list")]
    pub into: Option<PathBuf>,

    /// A hundredth of the operations: a minute or two instead of half an hour
    #[arg(long)]
    pub quick: bool,

    /// Run these comparisons only
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,

    /// List the comparisons and what they are, and run nothing
    #[arg(long)]
    pub list: bool,

    /// Print JSON: the list, or at the end what ran and what did not
    #[arg(long)]
    pub json: bool,

    /// Flags of `enginelab compare` that all of them are given, after --, in place of those that
    /// they have themselves
    #[arg(last = true, value_name = "FLAGS")]
    pub flags: Vec<String>,
}

/// A comparison as `--list --json` tells it.
#[derive(Serialize)]
struct Listed {
    name: &'static str,
    command: String,
}

/// What `--json` tells at the end.
#[derive(Serialize)]
struct Outcome {
    page: PathBuf,
    finished: Vec<Finished>,
    not_run: Vec<NotRun>,
}

/// A comparison that has a result.
#[derive(Serialize)]
struct Finished {
    name: String,
    command: String,
    result: PathBuf,
}

/// A comparison of the suite.
struct Entry {
    name: &'static str,
    command: &'static str,
    /// The flags that say how much there is of it, and how much in a quick suite.
    full: &'static str,
    quick: &'static str,
}

const fn entry(
    name: &'static str,
    command: &'static str,
    full: &'static str,
    quick: &'static str,
) -> Entry {
    Entry { name, command, full, quick }
}

/// A ring holds 64 instances of an engine and three copies of everything: only those that Riak
/// could have had.
const RIAK: &str = "riak --engines bitcask,lsm,leveldb,rocksdb";

/// A hundredth of YCSB's records and operations.
const FEW: &str = "-p recordcount=1000 -p operationcount=1000";

/// Where an engine has to look at every key for each scan, 100,000 of them take a quarter of an hour.
const FEW_SCANS: &str = "-p operationcount=10000";

const ENTRIES: [Entry; 13] = [
    entry("insert", "insert", "--items 500000", "--items 5000"),
    entry("riak-small", RIAK, "--items 5000 --repeats 5", "--items 500"),
    entry("riak-large", RIAK, "--items 500000", "--items 5000"),
    entry("vpork-30", "vpork --threads 30", "", "--iterations 20"),
    entry("vpork-100", "vpork --threads 100", "", "--iterations 20"),
    entry("settee", "settee", "", "--singles 1000 --bulk 1000 --long 10000"),
    entry("ycsb-a", "ycsb --core a", "", FEW),
    entry("ycsb-b", "ycsb --core b", "", FEW),
    entry("ycsb-c", "ycsb --core c", "", FEW),
    entry("ycsb-d", "ycsb --core d", "", FEW),
    entry("ycsb-e", "ycsb --core e", FEW_SCANS, FEW),
    entry("ycsb-f", "ycsb --core f", "", FEW),
    entry("dbbench", "dbbench", "--num 200000", "--num 2000"),
];

impl Entry {
    /// What `enginelab compare` is given: what the entry says itself, but for flags that the user
    /// gives.
    fn words<'a>(&'a self, args: &'a SuiteArgs) -> Vec<&'a str> {
        let amount = if args.quick { self.quick } else { self.full };
        let mut words = Vec::new();
        let own = self.command.split_whitespace().chain(amount.split_whitespace());
        let mut is_replaced = false;
        for word in own {
            if word.starts_with("--") {
                is_replaced = args.flags.iter().any(|given| flag(given) == word);
            } else if word.starts_with('-') {
                // It may be there several times, and a later property wins.
                is_replaced = false;
            }
            if !is_replaced {
                words.push(word);
            }
        }
        words.extend(args.flags.iter().map(String::as_str));
        words
    }

    fn command(&self, args: &SuiteArgs) -> String {
        self.words(args).join(" ")
    }
}

/// The flag of a word, without the value that may be in it.
fn flag(word: &str) -> &str {
    word.split_once('=').map_or(word, |(flag, _)| flag)
}

/// Runs the comparisons of the suite that are not finished, and writes the page over all.
///
/// # Errors
/// [`Error`] for whatever keeps one from running; what finished before stays.
pub fn suite(args: &SuiteArgs) -> Result<Ending> {
    let entries = chosen(args)?;
    if args.list {
        if args.json {
            let listed = |entry: &&Entry| Listed { name: entry.name, command: entry.command(args) };
            super::print(&json::render(&entries.iter().map(listed).collect::<Vec<_>>())?)?;
            return Ok(Ending::Well);
        }
        let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
        let line = |entry: &&Entry| format!("{:width$}  {}\n", entry.name, entry.command(args));
        super::print(&entries.iter().map(line).collect::<String>())?;
        return Ok(Ending::Well);
    }
    let Some(into) = &args.into else {
        return Err(Error::Usage("there is no directory named for the results".into()));
    };
    let lines: Vec<Line> =
        entries.iter().map(|entry| Line::parse(entry, args, into)).collect::<Result<_>>()?;
    let is_new = !into.exists();
    fs::create_dir_all(into).map_err(Error::io("make directory", into))?;
    output::check_writable(&into.join(INDEX))?;
    let _claim = claim(into)?;
    let checked = entries.iter().zip(&lines).try_for_each(|(entry, line)| {
        compare::check(&line.compare)
            .map_err(|error| Error::Usage(format!("{}: {error}", entry.name)))
    });
    if let Err(error) = checked {
        if is_new {
            // It is empty: whoever corrects the command finds everything as it was.
            let _ = fs::remove_dir(into);
        }
        return Err(error);
    }
    Suite::new(args, into, &entries).run(&lines)
}

/// Keeps other suites out of the directory until it is closed, however this process ends: each
/// would write over what the other measured, in a time that both had taken from each other.
#[cfg(unix)]
fn claim(into: &Path) -> Result<fs::File> {
    let directory = fs::File::open(into).map_err(Error::io("open", into))?;
    match directory.try_lock() {
        Err(fs::TryLockError::WouldBlock) => Err(Error::Usage(format!(
            "{}: another suite is at work there: let it end, or choose another directory",
            into.display()
        ))),
        // Some file systems have no locks: then nobody is kept out.
        Ok(()) | Err(fs::TryLockError::Error(_)) => Ok(directory),
    }
}

#[cfg(not(unix))]
fn claim(_: &Path) -> Result<()> {
    Ok(())
}

/// A suite that runs.
struct Suite<'a> {
    args: &'a SuiteArgs,
    into: &'a Path,
    entries: &'a [&'static Entry],
    parts: Vec<Part>,
    /// By name, why an entry was not run.
    reasons: Vec<(&'static str, String)>,
}

impl<'a> Suite<'a> {
    fn new(args: &'a SuiteArgs, into: &'a Path, entries: &'a [&'static Entry]) -> Self {
        Self { args, into, entries, parts: Vec::new(), reasons: Vec::new() }
    }

    /// Runs what is not finished, one after the other. What cannot run after all (a full disk) is
    /// told on the page, and the others go on.
    fn run(mut self, lines: &[Line]) -> Result<Ending> {
        let (mut ending, mut failure) = (Ending::Well, None);
        for (number, (entry, line)) in self.entries.iter().zip(lines).enumerate() {
            let (of, command) = (self.entries.len(), entry.command(self.args));
            super::say(&format!("[{}/{of}] {}: {command}", number + 1, entry.name));
            match compare::run(&line.compare) {
                Ok(Ending::Interrupted) => {
                    self.reasons.push((entry.name, "stopped; the same command goes on".into()));
                    self.write_page()?;
                    return Ok(Ending::Interrupted);
                }
                Ok(Ending::Well) => self.take(entry)?,
                Ok(Ending::Badly) => {
                    ending = Ending::Badly;
                    self.take(entry)?;
                }
                Err(error) => {
                    super::say(&format!("enginelab: {}: {error}", entry.name));
                    self.reasons.push((entry.name, error.to_string()));
                    failure.get_or_insert(error);
                }
            }
            self.write_page()?;
        }
        self.tell()?;
        failure.map_or(Ok(ending), Err)
    }

    /// Prints where the page is, or all that ran.
    fn tell(&self) -> Result<()> {
        let page = self.into.join(INDEX);
        if !self.args.json {
            return super::print(&format!("{}\n", page.display()));
        }
        let finished = self.parts.iter().map(|part| Finished {
            name: part.name.clone(),
            command: part.command.clone(),
            result: file(self.into, &part.name, "json"),
        });
        let finished = finished.collect();
        super::print(&json::render(&Outcome { page, finished, not_run: self.not_run() })?)
    }

    /// The result of `entry`.
    fn take(&mut self, entry: &Entry) -> Result<()> {
        let comparison = json::read(&file(self.into, entry.name, "json"))?;
        let (name, command) = (entry.name.to_owned(), entry.command(self.args));
        self.parts.push(Part { name, command, comparison });
        Ok(())
    }

    /// The page, as far as the suite has come.
    fn write_page(&self) -> Result<()> {
        let page = suite::render(&self.parts, &self.not_run());
        output::replace(&self.into.join(INDEX), &page)
    }

    /// What of the suite has no result, and why.
    fn not_run(&self) -> Vec<NotRun> {
        let not_run = ENTRIES.iter().filter_map(|entry| {
            let (name, command) = (entry.name.to_owned(), entry.command(self.args));
            let told = self.reasons.iter().find(|(name, _)| *name == entry.name);
            let reason = match told {
                Some((_, reason)) => reason.clone(),
                None if self.parts.iter().any(|part| part.name == name) => return None,
                None if self.entries.iter().any(|chosen| chosen.name == name) => {
                    "not yet; the same command goes on".to_owned()
                }
                None => "not among --only".to_owned(),
            };
            Some(NotRun { name, command, reason })
        });
        not_run.collect()
    }
}

const INDEX: &str = "index.html";

fn file(into: &Path, name: &str, extension: &str) -> PathBuf {
    into.join(format!("{name}.{extension}"))
}

fn chosen(args: &SuiteArgs) -> Result<Vec<&'static Entry>> {
    for name in &args.only {
        if !ENTRIES.iter().any(|entry| entry.name == name) {
            let names: Vec<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
            return Err(Error::Usage(format!(
                "--only {name}: there is no such comparison; there are {}",
                names.join(", ")
            )));
        }
    }
    let is_chosen =
        |entry: &&Entry| args.only.is_empty() || args.only.iter().any(|name| name == entry.name);
    Ok(ENTRIES.iter().filter(is_chosen).collect())
}

/// A command line of `enginelab compare`, taken apart.
#[derive(Debug, Parser)]
#[command(name = "enginelab compare")]
struct Line {
    #[command(subcommand)]
    compare: WorkloadCommand<CommonArgs>,
}

impl Line {
    /// The command of `entry`, with the places of its files.
    fn parse(entry: &Entry, args: &SuiteArgs, into: &Path) -> Result<Self> {
        let words = std::iter::once("compare").chain(entry.words(args)).chain(["--quiet"]);
        let mut words: Vec<String> = words.map(str::to_owned).collect();
        let result = file(into, entry.name, "json");
        let goes_on = if result.exists() { "--resume" } else { "--out" };
        let reports = [("--markdown", "md"), ("--html", "html"), ("--csv", "csv")]
            .map(|(flag, extension)| (flag, file(into, entry.name, extension)));
        for (flag, path) in [(goes_on, result)].into_iter().chain(reports) {
            words.extend([flag.to_owned(), path.display().to_string()]);
        }
        Self::try_parse_from(words).map_err(|error| {
            let said = error.render().to_string();
            let said = said.lines().next().unwrap_or_default().trim_start_matches("error: ");
            Error::Usage(format!("{}: {said}", entry.name))
        })
    }
}
