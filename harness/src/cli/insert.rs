//! `enginelab compare insert`, which the main bench is too.

use std::fs;
use std::io::IsTerminal;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use engines::{Compression, Durability};

use super::progress::Progress;
use super::{Ending, size};
use crate::measure::filesystem;
use crate::report::{json, markdown, terminal};
use crate::results::{Comparison, Parameters, Settings};
use crate::run::parent::ChildCommand;
use crate::run::plan::Selection;
use crate::run::{self, Site};
use crate::workload::Workload;
use crate::workload::insert::Insert;
use crate::workload::values::{Corpus, Framing};
use crate::{Error, Result};

/// What can be chosen for an insert comparison.
#[derive(Debug, Clone, Args)]
pub struct InsertArgs {
    /// Records to insert [default: 20,000; the bench insert_500k: 500,000]
    #[arg(long, value_name = "N", value_parser = size::count)]
    pub items: Option<NonZeroU64>,

    /// Engines to compare, separated by commas [default: every own engine and peer that is here]
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub engines: Vec<String>,

    /// What values are made of: varied (another bacon text each), fixed (one text for all, as
    /// published) or random (incompressible)
    #[arg(long, value_name = "CORPUS", default_value_t)]
    pub corpus: Corpus,

    /// What is around the text: json ({"text_s": TEXT}, as published) or text (nothing)
    #[arg(long, value_name = "FRAMING", default_value_t)]
    pub framing: Framing,

    /// What an acknowledged write survives: buffered (nothing until sync), process (the death of
    /// the process) or power (power loss)
    #[arg(long, value_name = "LEVEL", default_value_t)]
    pub durability: Durability,

    /// The memory for write buffers and caches of each engine, such as 64M or 1G
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size::memory_size)]
    pub memory: u64,

    /// How blocks are compressed, by engines that compress: none, snappy, zstd or zstd:LEVEL
    #[arg(long, value_name = "KIND", default_value_t)]
    pub compression: Compression,

    /// How often each engine runs, in an order drawn from the seed
    #[arg(long, value_name = "R", default_value = "1")]
    pub repeats: NonZeroU32,

    /// Records a call: 1 is one put each, more are batches
    #[arg(long, value_name = "B", default_value = "1", value_parser = size::batch)]
    pub batch: NonZeroU32,

    /// Client threads, which share the records
    #[arg(long, value_name = "T", default_value = "1", value_parser = size::threads)]
    pub threads: NonZeroU32,

    /// What keys, values and the order of the runs are derived from
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

    /// Write the report as Markdown to this file
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,

    /// Print the result as JSON instead of the report
    #[arg(long)]
    pub json: bool,
}

impl InsertArgs {
    /// What an empty command line gives.
    pub fn parse_nothing() -> Self {
        #[derive(clap::Parser)]
        struct Nothing {
            #[command(flatten)]
            insert: InsertArgs,
        }
        let Nothing { insert } = clap::Parser::parse_from(["enginelab"]);
        insert
    }
}

/// What a program chooses where its user does not.
#[derive(Debug, Clone)]
pub struct Defaults {
    /// Records to insert.
    pub items: NonZeroU64,
    /// Reference points that run beside all engines.
    pub references: &'static [&'static str],
}

/// Runs the comparison and reports it.
///
/// # Errors
/// [`Error`] for whatever keeps it from running.
pub fn compare_insert(args: &InsertArgs, defaults: &Defaults) -> Result<Ending> {
    let parameters = parameters(args, defaults);
    let home = DataHome::find(args.dir.as_deref())?;
    let selection = match args.engines.as_slice() {
        [] => Selection::all(defaults.references, &parameters.settings)?,
        names => Selection::named(names, &parameters.settings)?,
    };
    check_pairs(&args.pair, &selection)?;
    for file in [&args.out, &args.markdown].into_iter().flatten() {
        json::check_writable(file)?;
    }
    warn(&home.path)?;
    let interrupt = stop_on_signal()?;
    let site = Site {
        directory: &home.path,
        keep: args.keep,
        child: ChildCommand::this_program()?,
        interrupt,
    };
    let mut progress = Progress::new(args.out.clone(), args.keep);
    let comparison = run::compare(selection, parameters, &site, &mut progress)?;
    drop(progress);
    report(args, &comparison)?;
    Ok(Ending::of(&comparison))
}

fn parameters(args: &InsertArgs, defaults: &Defaults) -> Parameters {
    let insert = Insert {
        items: args.items.unwrap_or(defaults.items),
        batch: args.batch,
        threads: args.threads,
        corpus: args.corpus,
        framing: args.framing,
        seed: args.seed,
    };
    let settings = Settings {
        durability: args.durability,
        memory_bytes: args.memory,
        compression: args.compression,
    };
    Parameters { workload: Workload::Insert(insert), settings, repeats: args.repeats.get() }
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

fn report(args: &InsertArgs, comparison: &Comparison) -> Result<()> {
    if let Some(out) = &args.out {
        json::replace_file(out, &json::render(comparison)?)?;
    }
    if let Some(file) = &args.markdown {
        json::replace_file(file, &markdown::render(comparison, &args.pair))?;
    }
    let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    super::print(&match args.json {
        true => json::render(comparison)?,
        false => terminal::render(comparison, &args.pair, colour),
    })
}

/// Says what makes the figures worth less than they look.
fn warn(directory: &Path) -> Result<()> {
    let file_system = filesystem::of(directory)?;
    if file_system.in_memory {
        eprintln!(
            "warning: {} is on {}, in memory: nothing here says anything about a disk",
            directory.display(),
            file_system.kind
        );
    }
    if cfg!(debug_assertions) {
        eprintln!("warning: this is a debug build: its times mean little; build with --release");
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

/// Becomes true on Ctrl-C and when the system asks the program to end.
fn stop_on_signal() -> Result<&'static AtomicBool> {
    static STOP: AtomicBool = AtomicBool::new(false);
    ctrlc::set_handler(|| STOP.store(true, Ordering::Release))
        .map_err(|error| Error::Usage(format!("cannot listen for Ctrl-C: {error}")))?;
    Ok(&STOP)
}
