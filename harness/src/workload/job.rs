//! What a workload is to the laboratory: records that are derived from their number, and phases
//! whose operations are derived from theirs. Nothing is stored, everything can be had again: for
//! the next engine, and to check what an engine kept.

use std::num::NonZeroU32;
use std::time::Duration;

use engines::Engine;

use super::op::Op;
use crate::Result;
use crate::results::Client;

/// A workload that is ready to run.
pub trait Job: Send + Sync {
    /// Every record by its number.
    fn records(&self) -> &dyn Records;

    /// One more than the largest number of a record that any phase may put. Records are counted
    /// from 0, and the check afterwards walks through all of them.
    fn record_count(&self) -> u64;

    /// Whether an operation that puts nothing may be about `record`: it has a key then. Those that
    /// may be put are, and in some workloads keys that never are there.
    fn has_key(&self, record: u64) -> bool {
        record < self.record_count()
    }

    /// What is done between the opening of the engine and its closing, in order. Afterwards the
    /// engine is closed, reopened, and everything is read back.
    fn phases(&self) -> Vec<Phase<'_>>;

    /// Tells whether all operations and records so far could be derived: asked after each phase
    /// that took some. Only a workload that reads them from a file may have failed.
    ///
    /// # Errors
    /// What the file system said.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Opens what the workload runs on: one engine, unless it is several in a row of their own.
    ///
    /// # Errors
    /// What `opener` returns.
    fn open(&self, opener: &Opener<'_>) -> engines::Result<Box<dyn Engine>> {
        opener("", 1)
    }
}

/// Opens an engine in the run's directory, or in a folder of that name below it, with the memory
/// budget divided by the number.
pub type Opener<'a> = dyn Fn(&str, u64) -> engines::Result<Box<dyn Engine>> + 'a;

/// Keys and values, each derived from the record's number alone.
pub trait Records: Send + Sync {
    /// Appends the key of record `record`. Different records have different keys.
    fn write_key(&self, record: u64, out: &mut Vec<u8>);

    /// Appends the value that record `record` has at `version`.
    fn write_value(&self, record: u64, version: u64, out: &mut Vec<u8>);

    /// The record that has this key, where a key tells it: only needed for engines that cannot get.
    fn record_of(&self, _key: &[u8]) -> Option<u64> {
        None
    }
}

/// A part of a run that is timed and sized by itself.
pub struct Phase<'a> {
    /// Its name in results: `load`, `run`, `quiesce`, … Different from all others of the run.
    pub name: String,
    /// What happens.
    pub work: Work<'a>,
}

/// What happens in a phase.
pub enum Work<'a> {
    /// Operations.
    Traffic(Traffic<'a>),
    /// Wait until no background work is left.
    Quiesce,
    /// Reclaim what can be reclaimed.
    Compact,
    /// Make everything survive power loss.
    Sync,
    /// Close the engine and open it again; engines that keep nothing stay open. Closing is a phase
    /// of its own, which is called [`closing_before`] this one.
    Reopen,
    /// Close the engine and open it again, so often, in one phase; engines that keep nothing leave
    /// it out.
    OpenAgain(u64),
    /// Close the engine, remove everything that it kept, and open it in an empty directory.
    Anew,
    /// Ask the engine for its figures of the moment.
    Stats,
}

/// The phase before those of the workload, and those after them, in every run.
pub const FIRST_PHASE: &str = "open";
/// See [`FIRST_PHASE`].
pub const LAST_PHASES: [&str; 4] = ["close", "reopen", "verify", "count"];

/// The name of the phase that closes the engine before phase `name` opens it again.
pub fn closing_before(name: &str) -> String {
    format!("close before {name}")
}

/// The time at which a step is due.
pub type Times<'a> = Box<dyn Fn(u64) -> Duration + Send + Sync + 'a>;

/// A stream of operations.
pub struct Traffic<'a> {
    /// The steps of the stream.
    pub steps: u64,
    /// No step begins after this time. What was executed is a beginning of the stream then, and
    /// another one for every engine.
    pub limit: Option<Duration>,
    /// Operations that are given to the engine in one call: 1 is a call each.
    pub batch: u32,
    /// The bytes of a step's keys and values, about: they are made ahead, and lie in memory.
    pub step_bytes: u64,
    /// How many steps each thread does, at most, before all wait for each other; absent: as many
    /// as memory allows. All steps before such a moment have been acknowledged at it.
    pub steps_together: Option<u64>,
    /// Whether `--rate` applies; else the phase goes as fast as it can.
    pub paced: bool,
    /// Threads of its own; absent: those of all.
    pub threads: Option<NonZeroU32>,
    /// Operations a second of its own, which win over `--rate`.
    pub rate: Option<f64>,
    /// When each step is due, counted from the beginning of the phase, which wins over all rates;
    /// a later step is never due before an earlier one. `rate` is their mean rate then.
    pub times: Option<Times<'a>>,
    /// Whether each thread takes the operations of its own records, so that what is done with one
    /// record is done in the order of the stream; else the threads share the steps, and nothing
    /// orders what several of them do with one record.
    pub by_record: bool,
    /// Whether an engine that has no such operations leaves the phase out and goes on with the
    /// next one; else it ends the run. All operations of such a phase are alike, and where another
    /// stream writes beside, reads in key order are the only ones that an engine may not have.
    pub optional: bool,
    /// What one more thread does beside, as long as the others work; its latencies are recorded
    /// apart. Where it writes, the others must not: nothing orders their writes.
    pub background: Option<MakeStream<'a>>,
    /// Makes the stream, at its beginning. Every thread has one of its own.
    pub stream: MakeStream<'a>,
}

/// Makes a stream at its beginning.
pub type MakeStream<'a> = Box<dyn Fn() -> Box<dyn Stream + 'a> + Send + Sync + 'a>;

/// The operations of a phase, by step. What a step does may depend on the steps before it, which
/// the stream can derive, and on nothing else: every engine and every repeat gets the same.
pub trait Stream: Send {
    /// Appends the operations of step `step` to `out`: one in most workloads, none or several
    /// in others.
    ///
    /// The steps that one stream is asked for ascend, with gaps where other threads have theirs.
    /// All steps before `settled` (which is `step` itself for a single thread) have been
    /// acknowledged when this one is executed; of those between, other threads may not have
    /// executed some.
    fn step(&mut self, step: u64, settled: u64, out: &mut Vec<Op>);
}

/// A stream whose steps do not depend on each other.
impl<F: FnMut(u64, &mut Vec<Op>) + Send> Stream for F {
    fn step(&mut self, step: u64, _settled: u64, out: &mut Vec<Op>) {
        self(step, out);
    }
}

impl<'a> Phase<'a> {
    /// Operations under `name`.
    pub fn traffic(name: &str, traffic: Traffic<'a>) -> Self {
        Self { name: name.to_owned(), work: Work::Traffic(traffic) }
    }

    /// Waits for background work.
    pub fn quiesce(name: &str) -> Self {
        Self { name: name.to_owned(), work: Work::Quiesce }
    }

    /// Closes and opens again.
    pub fn reopen(name: &str) -> Self {
        Self { name: name.to_owned(), work: Work::Reopen }
    }

    /// The names by which results know it.
    pub fn names(&self) -> Vec<String> {
        match self.work {
            Work::Reopen => vec![closing_before(&self.name), self.name.clone()],
            _ => vec![self.name.clone()],
        }
    }

    /// Compacts.
    pub fn compact(name: &str) -> Self {
        Self { name: name.to_owned(), work: Work::Compact }
    }
}

impl<'a> Traffic<'a> {
    /// A stream of `steps` steps, one operation a call, without a limit of time.
    pub fn new<S: Stream + 'a>(
        steps: u64,
        step_bytes: u64,
        stream: impl Fn() -> S + Send + Sync + 'a,
    ) -> Self {
        Self {
            steps,
            limit: None,
            batch: 1,
            step_bytes,
            steps_together: None,
            paced: false,
            threads: None,
            rate: None,
            times: None,
            by_record: false,
            optional: false,
            background: None,
            stream: Box::new(move || Box::new(stream())),
        }
    }

    /// The threads and the rate that the phase has where all have those of `client`.
    pub fn clients(&self, client: &Client) -> (u32, Option<f64>) {
        let threads = self.threads.unwrap_or(client.threads);
        (threads.get(), self.rate.or(client.rate.filter(|_| self.paced)))
    }

    /// The same, with another stream beside it.
    #[must_use]
    pub fn beside<S: Stream + 'a>(mut self, stream: impl Fn() -> S + Send + Sync + 'a) -> Self {
        self.background = Some(Box::new(move || Box::new(stream())));
        self
    }
}
