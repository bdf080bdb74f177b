//! The laboratory, asked for one comparison after the other.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use benches::figure::median;
use harness::results::{Client, Comparison, Parameters, Run, Settings};
use harness::run::event::Event;
use harness::run::parent::ChildCommand;
use harness::run::plan::{RunPlan, Selection};
use harness::run::{Observer, Site, compare};
use harness::workload::Workload;
use harness::workload::insert::Insert;
use harness::workload::values::{Corpus, Framing};
use harness::workload::ycsb::{Distribution, Mix, Ycsb};
use harness::{Error, Result};

/// What the parts have in common.
pub(crate) struct Lab {
    pub(crate) items: u64,
    pub(crate) rounds: u32,
    pub(crate) seconds: u64,
    pub(crate) directory: PathBuf,
}

/// What may differ from part to part.
pub(crate) struct Job<'a> {
    pub(crate) workload: Workload,
    pub(crate) engines: &'a [&'a str],
    pub(crate) threads: u32,
    pub(crate) settings: Settings,
}

impl<'a> Job<'a> {
    /// One thread, the usual settings.
    pub(crate) fn new(workload: impl Into<Workload>, engines: &'a [&'a str]) -> Self {
        Self { workload: workload.into(), engines, threads: 1, settings: Settings::default() }
    }
}

impl Lab {
    /// Runs a comparison. An engine that fails or loses something ends the bench; one that is not
    /// on this machine is left out.
    pub(crate) fn compare(&self, job: Job<'_>) -> Result<Compared> {
        static NEVER: AtomicBool = AtomicBool::new(false);
        let names: Vec<String> = job.engines.iter().map(|name| (*name).to_owned()).collect();
        let selection = Selection::named(&names, &job.settings)?;
        for skipped in &selection.skipped {
            eprintln!("left out: {}: {}", skipped.engine, skipped.reason);
        }
        let client = Client {
            threads: NonZeroU32::new(job.threads).unwrap_or(NonZeroU32::MIN),
            seed: 42,
            rate: None,
        };
        let parameters = Parameters {
            workload: job.workload,
            client,
            settings: job.settings,
            conditions: Default::default(),
            repeats: self.rounds,
        };
        let site = Site {
            directory: &self.directory,
            keep: false,
            child: ChildCommand::this_program()?,
            interrupt: &NEVER,
            input: None,
        };
        let comparison = compare(selection, parameters, None, &site, &mut Told)?;
        match comparison.problems().first() {
            Some(problem) => Err(Error::Usage(problem.clone())),
            None => Ok(Compared(comparison)),
        }
    }

    /// Inserts under random keys.
    pub(crate) fn insert(&self, items: u64, corpus: Corpus) -> Workload {
        Workload::Insert(Insert {
            items: NonZeroU64::new(items).unwrap_or(NonZeroU64::MIN),
            batch: NonZeroU32::MIN,
            corpus,
            framing: Framing::Json,
            overwrites: 0.0,
            deletes: 0.0,
        })
    }

    /// Values of 100 bytes under hashed keys; hardly anything but the load.
    pub(crate) fn small_records(&self, records: u64) -> Workload {
        Workload::Ycsb(Ycsb {
            records,
            operations: 1,
            field_count: 1,
            // With the lengths and the name of the field it makes 100.
            field_length: 86,
            ..Ycsb::default()
        })
    }

    /// As many updates as reads, zipfian, for as long as `--seconds` says. An update is one put.
    pub(crate) fn mixed(&self) -> Workload {
        Workload::Ycsb(Ycsb {
            records: self.items,
            operations: 1 << 40,
            write_all_fields: true,
            mix: Mix { read: 0.5, update: 0.5, insert: 0.0, scan: 0.0, read_modify_write: 0.0 },
            distribution: Distribution::Zipfian,
            max_seconds: Some(self.seconds),
            ..Ycsb::default()
        })
    }
}

/// A figure of a run.
pub(crate) type Measure = fn(&Run) -> Option<f64>;

/// What came out.
pub(crate) struct Compared(pub(crate) Comparison);

impl Compared {
    /// The median of what `figure` finds in the runs of `engine`; `None` if it did not run.
    pub(crate) fn median(&self, engine: &str, figure: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        let found: Vec<f64> = self.0.runs_of(engine).filter_map(figure).collect();
        (!found.is_empty()).then(|| median(found))
    }
}

/// Says on standard error what is going on.
struct Told;

impl Observer for Told {
    fn directory(&mut self, _path: &Path) {}

    fn run_begins(&mut self, plan: &RunPlan, number: usize, of: usize) {
        eprintln!("[{number}/{of}] {}", plan.engine);
    }

    fn event(&mut self, _event: &Event) {}

    fn run_ends(&mut self, _run: &Run, _so_far: &Comparison) {}

    fn warning(&mut self, text: &str) {
        eprintln!("warning: {text}");
    }
}
