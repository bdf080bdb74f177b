//! `enginelab compare WORKLOAD`: what all workloads have in common. The main bench is one too.

use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use clap::Args;
use engines::{Compression, Durability};

use super::files::Files;
use super::progress::Progress;
use super::workloads::{Flags, WorkloadCommand};
use super::{Ending, colour, say, size};
use crate::files::Inputs;
use crate::measure::filesystem;
use crate::report::{json, terminal};
use crate::results::{Client, Comparison, Conditions, Parameters, Settings};
use crate::run::parent::ChildCommand;
use crate::run::plan::Selection;
use crate::run::{self, Site};
use crate::workload::job::{Traffic, Work};
use crate::workload::{Chosen, WorkloadArgs};
use crate::{Error, Result, interrupt};

/// The flags of a comparison: those of the workload and those of all.
pub type CompareArgs<W> = Flags<W, CommonArgs>;

/// What can be chosen for every workload.
#[derive(Debug, Clone, Args)]
pub struct CommonArgs {
    /// Engines to compare, separated by commas [default: every own engine and peer that is here]
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', value_parser = size::name)]
    pub engines: Vec<String>,

    /// Client threads, which share the operations [default: 1, or what the workload says]
    #[arg(long, value_name = "T", value_parser = size::threads)]
    pub threads: Option<NonZeroU32>,

    /// Operations a second, of all threads together: an open loop, in which each operation has its
    /// time beforehand and its latency counts from there [default: as fast as the engine can]
    #[arg(long, value_name = "N", value_parser = size::rate, allow_negative_numbers = true)]
    pub rate: Option<f64>,

    /// What an acknowledged write survives: buffered (nothing until sync), process (the death of
    /// the process) or power (power loss)
    #[arg(long, value_name = "LEVEL", default_value_t)]
    pub durability: Durability,

    /// The memory for write buffers and caches of each engine, in bytes or such as 64M or 1G
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size::memory_size)]
    pub memory: u64,

    /// A cap on all memory of each run's process, page cache included, in bytes or such as 1G
    /// [default: none; needs control groups]
    #[arg(long, value_name = "SIZE", value_parser = size::memory_size)]
    pub memory_cap: Option<u64>,

    /// How blocks are compressed, by engines that compress: none, snappy, zstd or zstd:LEVEL
    #[arg(long, value_name = "KIND", default_value_t)]
    pub compression: Compression,

    /// Drop the page cache before each run [default: no; needs root]
    #[arg(long)]
    pub cold: bool,

    /// How often each engine runs, in an order drawn from the seed
    #[arg(long, value_name = "R", default_value = "1", value_parser = size::repeats)]
    pub repeats: NonZeroU32,

    /// End a run after so many seconds; it counts as failed [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = size::seconds, allow_negative_numbers = true)]
    pub time_limit: Option<f64>,

    /// What keys, values, operations and the order of the runs are derived from
    #[arg(long, value_name = "S", default_value = "42")]
    pub seed: u64,

    /// An existing directory to put the data under; each comparison makes one of its own in it,
    /// and removes it [default: enginelab in cargo's target directory, else ./enginelab-data]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// Keep the data
    #[arg(long)]
    pub keep: bool,

    /// Print the ratios of these two engines; may be given more than once [default: bitcask,lsm]
    #[arg(long, value_name = "A,B", value_parser = size::pair)]
    pub pair: Vec<(String, String)>,

    /// Write the result as JSON to this file, after every run
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Go on with an interrupted comparison: the same command, and the file that its --out wrote,
    /// of at most 1 GiB; the result is written there [default: begin anew]
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,

    /// Where reports go.
    #[command(flatten)]
    pub files: Files,

    /// Print the result as JSON instead of the report
    #[arg(long)]
    pub json: bool,

    /// Print no report: for those that are written to files
    #[arg(long, conflicts_with = "json")]
    pub quiet: bool,
}

impl<W: Args> CompareArgs<W> {
    /// What an empty command line gives.
    pub fn parse_nothing() -> Self {
        #[derive(clap::Parser)]
        struct Nothing<W: Args> {
            #[command(flatten)]
            args: CompareArgs<W>,
        }
        let Nothing { args } = clap::Parser::parse_from(["enginelab"]);
        args
    }
}

/// A comparison of which everything was looked at that can be before it runs.
struct Prepared {
    chosen: Chosen,
    parameters: Parameters,
    earlier: Option<Comparison>,
    /// The file for the result.
    out: Option<PathBuf>,
    home: DataHome,
    selection: Selection,
}

impl Prepared {
    fn new(workload: &dyn WorkloadArgs, args: &CommonArgs, references: &[&str]) -> Result<Self> {
        if let Some(flag) = workload.report_flag().filter(|_| args.json || args.quiet) {
            return Err(Error::Usage(format!("{flag}: no report is printed to which it adds")));
        }
        let result = [("--out", &args.out), ("--resume", &args.resume)];
        let result = result.into_iter().find_map(|(flag, file)| Some((flag, file.as_deref()?)));
        let out = result.map(|(_, file)| file.to_path_buf());
        let inputs = Inputs::beside(result.into_iter().chain(args.files.named()))?;
        let chosen = workload.workload(&inputs)?;
        let parameters = parameters(&chosen, args);
        check_clients(&chosen, &parameters, args)?;
        // What it goes on with may be the result that is written.
        let inputs = Inputs::beside(args.files.named())?;
        let earlier = args.resume.as_deref().map(|path| json::read_beside(&inputs, path));
        let earlier = earlier.transpose()?;
        let home = DataHome::find(args.dir.as_deref())?;
        let selection = match args.engines.as_slice() {
            [] => Selection::all(references, &parameters.settings)?,
            names => Selection::named(names, &parameters.settings)?,
        };
        let selection = selection.holding_keys_of(parameters.workload.spec().key_bytes())?;
        check_pairs(&args.pair, &selection)?;
        Ok(Self { chosen, parameters, earlier, out, home, selection })
    }
}

/// Refuses what [`run`] would refuse, and runs nothing.
///
/// # Errors
/// As [`run`].
pub(super) fn check(what: &WorkloadCommand<CommonArgs>) -> Result<()> {
    let (workload, args) = what.flags();
    let Prepared { parameters, earlier, home, selection, .. } = Prepared::new(workload, args, &[])?;
    run::begin(&selection, parameters, earlier, &home.path, args.keep).map(drop)
}

/// Runs the comparison and reports it, or prints an example where that is asked for.
///
/// # Errors
/// As [`compare`].
pub(super) fn run(what: &WorkloadCommand<CommonArgs>) -> Result<Ending> {
    let (workload, args) = what.flags();
    match workload.example() {
        Some(example) => super::print(example).map(|()| Ending::Well),
        None => compare_with(workload, args, &[]),
    }
}

/// Runs the comparison and reports it. `references` are reference points that run beside all
/// engines.
///
/// # Errors
/// [`Error`] for whatever keeps it from running.
pub fn compare<W: WorkloadArgs + Args>(
    args: &CompareArgs<W>,
    references: &[&str],
) -> Result<Ending> {
    compare_with(&args.workload, &args.common, references)
}

fn compare_with(
    workload: &dyn WorkloadArgs,
    args: &CommonArgs,
    references: &[&str],
) -> Result<Ending> {
    let interrupt = interrupt::listen()?;
    let Prepared { chosen, parameters, earlier, out, home, selection } =
        Prepared::new(workload, args, references)?;
    warn(&home.path)?;
    let site = Site {
        directory: &home.path,
        keep: args.keep,
        child: ChildCommand::this_program()?,
        interrupt,
        input: chosen.input.as_ref().map(|input| input.path.as_path()),
    };
    let mut progress = Progress::new(out.clone(), args.keep);
    let comparison = run::compare(selection, parameters, earlier, &site, &mut progress)?;
    drop(progress);
    // A file that cannot be written takes nothing from what was measured: all else is still told.
    let written = write(args, out.as_deref(), &comparison);
    if !args.quiet {
        print(workload, args, &comparison)?;
    }
    written.map(|()| Ending::of(&comparison))
}

fn parameters(chosen: &Chosen, args: &CommonArgs) -> Parameters {
    Parameters {
        workload: chosen.workload.clone(),
        client: Client {
            threads: args.threads.or(chosen.threads).unwrap_or(NonZeroU32::MIN),
            seed: args.seed,
            rate: args.rate.or(chosen.rate),
        },
        settings: Settings {
            durability: args.durability,
            memory_bytes: args.memory,
            compression: args.compression,
        },
        conditions: Conditions {
            cold: args.cold,
            memory_cap_bytes: args.memory_cap,
            time_limit_seconds: args.time_limit,
        },
        repeats: args.repeats.get(),
    }
}

/// Refuses flags for clients that no phase would take.
fn check_clients(chosen: &Chosen, parameters: &Parameters, args: &CommonArgs) -> Result<()> {
    if args.rate.is_none() && args.threads.is_none() {
        return Ok(());
    }
    let input = chosen.input.as_ref().map(|input| input.path.as_path());
    let job = chosen.workload.clone().with_input(input).spec().job(&parameters.client)?;
    let phases = job.phases();
    let takes = |what: fn(&Traffic<'_>) -> bool| {
        phases.iter().any(|phase| matches!(&phase.work, Work::Traffic(traffic) if what(traffic)))
    };
    let takes_rate =
        takes(|traffic| traffic.paced && traffic.rate.is_none() && traffic.times.is_none());
    if args.rate.is_some() && !takes_rate {
        return Err(Error::Usage(
            "--rate: no phase of this workload takes it: each has a pace of its own".into(),
        ));
    }
    if args.threads.is_some() && !takes(|traffic| traffic.threads.is_none()) {
        return Err(Error::Usage(
            "--threads: no phase of this workload takes it: each says how many it has".into(),
        ));
    }
    Ok(())
}

fn check_pairs(pairs: &[(String, String)], selection: &Selection) -> Result<()> {
    for name in pairs.iter().flat_map(|(a, b)| [a, b]) {
        engines::registry::find(name)?;
        if !selection.engines.iter().any(|engine| engine.name == name) {
            return Err(Error::Usage(format!("--pair names {name}, which does not run")));
        }
    }
    Ok(())
}

/// Writes each file that can be written.
fn write(args: &CommonArgs, out: Option<&Path>, comparison: &Comparison) -> Result<()> {
    let saved = out.map_or(Ok(()), |out| json::save(comparison, out));
    let reported = args.files.write(comparison, &args.pair);
    saved.and(reported)
}

fn print(workload: &dyn WorkloadArgs, args: &CommonArgs, comparison: &Comparison) -> Result<()> {
    if args.json {
        return super::print(&json::render(comparison)?);
    }
    super::print_as_is(&terminal::render(comparison, &args.pair, colour()))?;
    super::print(&workload.more_report(comparison)?)
}

/// Says what makes the figures worth less than they look.
fn warn(directory: &Path) -> Result<()> {
    let file_system = filesystem::of(directory)?;
    if file_system.in_memory {
        say(&format!(
            "warning: {} is on {}, in memory: nothing here says anything about a disk",
            directory.display(),
            file_system.kind
        ));
    }
    if cfg!(debug_assertions) {
        say("warning: this is a debug build: its times mean little; build with --release");
    }
    Ok(())
}

/// The directory under which data is put.
struct DataHome {
    path: PathBuf,
    /// Made by this program, which removes it again if it is empty.
    is_ours: bool,
}

impl DataHome {
    fn find(asked: Option<&Path>) -> Result<Self> {
        if let Some(path) = asked {
            return match path.is_dir() {
                true => Ok(Self { path: path.to_path_buf(), is_ours: false }),
                false if path.exists() => {
                    Err(Error::Usage(format!("{} is not a directory", path.display())))
                }
                false => Err(Error::Usage(format!("there is no directory {}", path.display()))),
            };
        }
        let path = match target_directory() {
            Some(target) => target.join("enginelab"),
            None => PathBuf::from("enginelab-data"),
        };
        fs::create_dir_all(&path).map_err(Error::io("make directory", &path))?;
        Ok(Self { path, is_ours: true })
    }
}

impl Drop for DataHome {
    fn drop(&mut self) {
        if self.is_ours {
            // Fails if anything is in it, as it should.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// Cargo's target directory, if this program lies in one: cargo leaves a tag there.
fn target_directory() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let target = program.ancestors().find(|above| above.join("CACHEDIR.TAG").is_file())?;
    Some(target.to_path_buf())
}
