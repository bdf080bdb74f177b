//! From a plan, through child processes, to results.

pub mod plan;

pub mod child;
pub mod event;
pub mod parent;

mod lifecycle;
mod memory_cap;
mod resume;

pub(crate) mod background;
pub(crate) mod block;
pub(crate) mod cut;
pub(crate) mod paced;
pub(crate) mod rounds;
pub(crate) mod stream_hash;
pub(crate) mod traffic;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use engines::registry::Registration;
use tempfile::TempDir;

use self::event::Event;
use self::memory_cap::MemoryCap;
use self::parent::{ChildCommand, Outcome};
use self::plan::{RunPlan, Selection};
use crate::measure::machine::Machine;
use crate::measure::{cold, filesystem};
use crate::results::{Comparison, Conditions, Parameters, Run, SCHEMA};
use crate::{Error, Result};

/// Where and how the runs take place.
#[derive(Debug)]
pub struct Site<'a> {
    /// The directory under which every run gets one of its own.
    pub directory: &'a Path,
    /// Whether the runs' directories stay.
    pub keep: bool,
    /// How children are started.
    pub child: ChildCommand,
    /// Set to stop early.
    pub interrupt: &'a AtomicBool,
    /// What the workload reads.
    pub input: Option<&'a Path>,
}

/// Who looks on while a comparison runs.
pub trait Observer {
    /// The directory that holds the runs' data, made just now.
    fn directory(&mut self, path: &Path);

    /// A run begins: its number from 1, and how many there are.
    fn run_begins(&mut self, plan: &RunPlan, number: usize, of: usize);

    /// Something happened in the run.
    fn event(&mut self, event: &Event);

    /// The run is over. `so_far` is what there is to be saved.
    fn run_ends(&mut self, run: &Run, so_far: &Comparison);

    /// Something that does not stop the comparison.
    fn warning(&mut self, text: &str);
}

/// Runs every engine of `selection` as often as `parameters` say. Failures of engines are part of
/// the result. The runs that `earlier` has already are not run again.
///
/// # Errors
/// [`Error::Usage`] if there is no room or `earlier` is of something else, [`Error::Io`] if the
/// directory cannot be used.
pub fn compare(
    selection: Selection,
    parameters: Parameters,
    earlier: Option<Comparison>,
    site: &Site<'_>,
    observer: &mut dyn Observer,
) -> Result<Comparison> {
    let order = plan::order(&selection.engines, parameters.client.seed, parameters.repeats);
    let mut comparison = begin(&selection, parameters, earlier, site.directory, site.keep)?;
    let data = DataDirectory::new(site)?;
    observer.directory(&data.path);
    let count = order.len();
    for (number, (engine, repeat)) in order.into_iter().enumerate() {
        if comparison.has_run(engine.name, repeat) {
            continue;
        }
        let plan = data.plan(engine, repeat, &comparison.workload, site.input)?;
        data.set_conditions(&plan.conditions)?;
        observer.run_begins(&plan, number + 1, count);
        let kind = plan::kind_word(engine.kind);
        let outcome = parent::run(&site.child, &plan, kind, site.interrupt, &mut |event| {
            observer.event(event);
        });
        if let Err(error) = data.after_run(&plan.directory) {
            observer.warning(&error.to_string());
        }
        match outcome? {
            Outcome::Interrupted => {
                comparison.interrupted = true;
                break;
            }
            Outcome::Finished(run) => {
                comparison.runs.push(*run);
                if let Some(run) = comparison.runs.last() {
                    observer.run_ends(run, &comparison);
                }
            }
        }
    }
    if let Err(error) = data.finish() {
        observer.warning(&error.to_string());
    }
    Ok(comparison)
}

/// The comparison with no run but those of `earlier`, after a look at whether this machine allows
/// what was asked for, and has room in `directory`; `keep` says that the data of all runs stays.
///
/// # Errors
/// [`Error::Usage`] if not, or if `earlier` is of something else.
pub fn begin(
    selection: &Selection,
    parameters: Parameters,
    earlier: Option<Comparison>,
    directory: &Path,
    keep: bool,
) -> Result<Comparison> {
    let Conditions { cold, memory_cap_bytes, .. } = parameters.conditions;
    if cold {
        cold::check_can_drop()?;
    }
    memory_cap_bytes.map_or(Ok(()), |bytes| MemoryCap::new(bytes).map(drop))?;
    drop(made_in(directory)?);
    let on_disk = selection.engines.iter().filter(|engine| engine.persistent).count() as u64;
    let runs =
        if keep { on_disk.saturating_mul(parameters.repeats.into()) } else { on_disk.min(1) };
    check_room(directory, &parameters, runs)?;
    let wanted = Comparison {
        schema: SCHEMA.to_owned(),
        machine: Machine::describe(directory)?,
        workload: parameters,
        engines: selection.engines.iter().map(|engine| engine.name.to_owned()).collect(),
        runs: Vec::new(),
        skipped: selection.skipped.clone(),
        interrupted: false,
    };
    match earlier {
        Some(earlier) => resume::go_on(earlier, wanted),
        None => Ok(wanted),
    }
}

/// How much more than the data an engine may need at its worst: logs beside tables, old files
/// beside those that a compaction writes, a file that grows by doubling.
const ROOM_FACTOR: u64 = 4;

/// Tells before any run whether there is room for the data of so many runs, of which all but the
/// last only lie there.
fn check_room(directory: &Path, parameters: &Parameters, kept_at_once: u64) -> Result<()> {
    let data = parameters.workload.spec().data_bytes(&parameters.client);
    let factor = match kept_at_once {
        0 => 0,
        runs => ROOM_FACTOR.max(runs.saturating_mul(2)),
    };
    let needed = data.saturating_mul(factor);
    let free = filesystem::free_bytes(directory)?;
    if free < needed {
        return Err(Error::Usage(format!(
            "{} has {} MB free, but {} MB of data may need {} MB: choose another --dir or fewer items",
            directory.display(),
            free / 1_000_000,
            data / 1_000_000,
            needed / 1_000_000,
        )));
    }
    Ok(())
}

fn made_in(directory: &Path) -> Result<TempDir> {
    let made = tempfile::Builder::new().prefix("enginelab-").tempdir_in(directory);
    made.map_err(Error::io("make a directory in", directory))
}

/// The directory that this comparison made for itself, removed with everything in it in the end.
struct DataDirectory {
    path: PathBuf,
    temporary: Option<TempDir>,
}

impl DataDirectory {
    fn new(site: &Site<'_>) -> Result<Self> {
        let made = made_in(site.directory)?;
        let (path, temporary) = match site.keep {
            true => (made.keep(), None),
            false => (made.path().to_path_buf(), Some(made)),
        };
        Ok(Self { path, temporary })
    }

    fn plan(
        &self,
        engine: &Registration,
        repeat: u32,
        parameters: &Parameters,
        input: Option<&Path>,
    ) -> Result<RunPlan> {
        let directory = self.path.join(format!("{}-{repeat}", engine.name));
        fs::create_dir(&directory).map_err(Error::io("make directory", &directory))?;
        Ok(RunPlan {
            engine: engine.name.to_owned(),
            repeat,
            workload: parameters.workload.clone().with_input(input),
            client: parameters.client,
            settings: parameters.settings,
            conditions: parameters.conditions,
            directory,
        })
    }

    /// Makes room for the next run, and writes out what this one left in the page cache, so that
    /// the next one does not pay for it.
    fn after_run(&self, directory: &Path) -> Result<()> {
        if self.temporary.is_some() {
            fs::remove_dir_all(directory).map_err(Error::io("remove", directory))?;
        }
        self.write_out()
    }

    /// What surrounds a run, before it begins.
    fn set_conditions(&self, conditions: &Conditions) -> Result<()> {
        if conditions.cold {
            self.write_out()?;
            cold::drop_page_cache()?;
        }
        Ok(())
    }

    #[cfg(target_os = "linux")]
    fn write_out(&self) -> Result<()> {
        let opened = fs::File::open(&self.path).map_err(Error::io("open", &self.path))?;
        rustix::fs::syncfs(opened).map_err(|errno| Error::io("sync", &self.path)(errno.into()))
    }

    #[cfg(not(target_os = "linux"))]
    fn write_out(&self) -> Result<()> {
        Ok(())
    }

    fn finish(self) -> Result<()> {
        let Some(temporary) = self.temporary else { return Ok(()) };
        temporary.close().map_err(Error::io("remove", &self.path))
    }
}
