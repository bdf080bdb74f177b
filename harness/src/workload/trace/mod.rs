//! The replay of a trace: of requests that somebody logged, or of a workload that
//! `enginelab record` wrote down. What a request of a foreign trace becomes, `requests.rs`
//! says.
//!
//! Every trace is replayed from one kind of file (`format.rs`), from which steps are read in any
//! order, so that memory does not grow with the trace: other traces are compiled to it once, before
//! the first run.

mod args;
mod compile;
mod effect;
mod facts;
mod format;
mod lines;
mod report;
mod requests;
mod scratch;
mod versions;

pub(crate) mod record;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use engines::Engine;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

pub use self::args::TraceArgs;
pub use self::facts::{Facts, Format, Recorded};
use self::format::{Description, OpReader, TraceFile, TraceWork};
use super::job::{Job, Opener, Phase, Records, Stream, Times, Traffic, Work};
use super::op::Op;
use super::sized::{Content, MOST_VALUE_BYTES, SizedValues};
use super::{About, Spec};
use crate::report::figures::grouped;
use crate::report::summary::Summary;
use crate::report::tables::Table;
use crate::results::{Client, Comparison};
use crate::{Error, Result};

pub(crate) const ABOUT: About = About {
    name: "trace",
    summary: "the requests of a trace: of Twitter's caches, of YCSB, or recorded by enginelab",
};

/// The parameters of the workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// The names of the files, in their order.
    pub files: Vec<String>,
    /// The hash of everything that is replayed.
    pub checksum: String,
    /// How many times faster than it was recorded; absent: as fast as the engine can.
    pub speed: Option<f64>,
    /// What values are made of.
    pub content: Content,
    /// Operations.
    pub operations: u64,
    /// Different records.
    pub records: u64,
    /// What else is known of it.
    pub facts: Facts,
    /// The file that the run reads. It is in no result: it may be gone with the comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiled: Option<PathBuf>,
}

impl Trace {
    /// The same, replayed from the file `input`.
    #[must_use]
    pub fn with_input(self, input: Option<&Path>) -> Self {
        Self { compiled: input.map(Path::to_path_buf), ..self }
    }
}

impl Spec for Trace {
    fn job(&self, client: &Client) -> Result<Box<dyn Job>> {
        let missing = || Error::Usage("the file of the trace is not there any more".into());
        let trace = TraceFile::open(self.compiled.as_deref().ok_or_else(missing)?)?;
        Ok(Box::new(TraceJob::new(trace, self.speed, self.content, client.seed)?))
    }

    fn title(&self) -> String {
        let (operations, records) = (grouped(self.operations), grouped(self.records));
        format!("Trace: {operations} operations on {records} records")
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        report::parameters(self)
    }

    fn data_bytes(&self, client: &Client) -> u64 {
        match &self.facts.recorded {
            Some(recorded) => recorded.workload.spec().data_bytes(client),
            None => self.facts.data_bytes,
        }
    }

    fn key_bytes(&self) -> u64 {
        match &self.facts.recorded {
            Some(recorded) => recorded.workload.spec().key_bytes(),
            None => self.facts.most_key_bytes,
        }
    }

    fn tables(&self, _comparison: &Comparison, summaries: &[Summary<'_>]) -> Vec<Table> {
        report::tables(self, summaries)
    }
}

/// A trace, ready to be replayed.
struct TraceJob {
    trace: TraceFile,
    speed: Option<f64>,
    /// The workload that was recorded: keys and values are its own.
    recorded: Option<Box<dyn Job>>,
    record_count: u64,
    values: Option<SizedValues>,
    /// The records by their keys, for engines that cannot get.
    by_key: OnceLock<HashMap<u128, u64>>,
    failure: Failure,
}

/// The first thing that went wrong with the file.
#[derive(Default)]
struct Failure(Mutex<Option<io::Error>>);

impl Failure {
    fn note(&self, error: io::Error) {
        self.0.lock().get_or_insert(error);
    }
}

impl TraceJob {
    fn new(trace: TraceFile, speed: Option<f64>, content: Content, seed: u64) -> Result<Self> {
        let recorded = trace.description.facts.recorded.as_ref();
        let recorded = recorded.map(|recorded| recorded.workload.spec().job(&recorded.client));
        let recorded = recorded.transpose()?;
        let values = recorded.is_none().then(|| SizedValues::new(content, seed));
        let record_count =
            recorded.as_ref().map_or(trace.description.keys, |recorded| recorded.record_count());
        let (by_key, failure) = (OnceLock::new(), Failure::default());
        Ok(Self { trace, speed, recorded, record_count, values, by_key, failure })
    }

    /// Whether its record is one that may be put, or asked for.
    fn may_do(&self, op: &Op) -> bool {
        op.record < self.record_count
            || !op.kind.has_record()
            || (!op.kind.puts() && self.has_key(op.record))
    }

    /// When each operation is due: those of one second are spread evenly over it.
    fn times(&self, speed: f64) -> Times<'_> {
        let times = &self.trace.times;
        let starts: Vec<u64> = times
            .iter()
            .scan(0, |sum: &mut u64, due| {
                let start = *sum;
                *sum = sum.saturating_add(due.operations);
                Some(start)
            })
            .collect();
        Box::new(move |step| {
            let at = starts.partition_point(|&start| start <= step).saturating_sub(1);
            let (Some(start), Some(due), Some(first)) =
                (starts.get(at), times.get(at), times.first())
            else {
                return Duration::ZERO;
            };
            let within = (step - start) as f64 / due.operations.max(1) as f64;
            let seconds = due.second.saturating_sub(first.second) as f64 + within;
            Duration::try_from_secs_f64(seconds / speed).unwrap_or(Duration::MAX)
        })
    }

    fn traffic(&self, phase: &format::TracePhase, first: u64) -> Traffic<'_> {
        let stream = move || TraceStream { first, job: self, reader: self.trace.operations() };
        let mut traffic = Traffic::new(phase.operations, phase.step_bytes, stream);
        traffic.batch = phase.batch;
        traffic.paced = true;
        traffic.by_record = true;
        traffic.optional = phase.optional;
        if let Some(speed) = self.speed {
            let times = self.times(speed);
            let last = times(phase.operations.saturating_sub(1)).as_secs_f64();
            traffic.rate = (last > 0.0).then(|| phase.operations as f64 / last);
            traffic.times = Some(times);
        }
        traffic
    }
}

impl Job for TraceJob {
    fn records(&self) -> &dyn Records {
        match &self.recorded {
            Some(recorded) => recorded.records(),
            None => self,
        }
    }

    fn record_count(&self) -> u64 {
        self.record_count
    }

    fn has_key(&self, record: u64) -> bool {
        match &self.recorded {
            Some(recorded) => recorded.has_key(record),
            None => record < self.record_count,
        }
    }

    fn phases(&self) -> Vec<Phase<'_>> {
        let mut first = 0;
        let phases = self.trace.description.phases.iter().map(|phase| {
            let work = match phase.kind {
                TraceWork::Operations => Work::Traffic(self.traffic(phase, first)),
                TraceWork::Quiesce => Work::Quiesce,
                TraceWork::Compact => Work::Compact,
                TraceWork::Sync => Work::Sync,
                TraceWork::Reopen => Work::Reopen,
                TraceWork::OpenAgain(times) => Work::OpenAgain(times),
                TraceWork::Anew => Work::Anew,
                TraceWork::Stats => Work::Stats,
            };
            first += phase.operations;
            Phase { name: phase.name.clone(), work }
        });
        phases.collect()
    }

    fn check(&self) -> Result<()> {
        let failure = self.failure.0.lock().take();
        failure.map_or(Ok(()), |error| Err(Error::io("read", self.trace.path())(error)))
    }

    fn open(&self, opener: &Opener<'_>) -> engines::Result<Box<dyn Engine>> {
        match &self.recorded {
            Some(recorded) => recorded.open(opener),
            None => opener("", 1),
        }
    }
}

/// The records of an imported trace.
impl Records for TraceJob {
    fn write_key(&self, record: u64, out: &mut Vec<u8>) {
        if let Err(error) = self.trace.write_key(record, out) {
            self.failure.note(error);
        }
    }

    fn write_value(&self, record: u64, version: u64, out: &mut Vec<u8>) {
        let bytes = versions::size(version).min(MOST_VALUE_BYTES as usize);
        if let Some(values) = &self.values {
            values.write(record, version, bytes, out);
        }
    }

    fn record_of(&self, key: &[u8]) -> Option<u64> {
        let by_key = self.by_key.get_or_init(|| {
            let mut key = Vec::new();
            let keys = (0..self.trace.description.keys).map(|record| {
                key.clear();
                self.write_key(record, &mut key);
                (xxh3_128(&key), record)
            });
            keys.collect()
        });
        by_key.get(&xxh3_128(key)).copied()
    }
}

/// Operations as the file has them, a step each.
struct TraceStream<'a> {
    /// Where the phase begins.
    first: u64,
    job: &'a TraceJob,
    reader: OpReader<'a>,
}

impl Stream for TraceStream<'_> {
    fn step(&mut self, step: u64, _settled: u64, out: &mut Vec<Op>) {
        match self.reader.op(self.first + step) {
            Ok(op) if self.job.may_do(&op) => out.push(op),
            Ok(_) => self.job.failure.note(io::Error::new(
                io::ErrorKind::InvalidData,
                "an operation on a record that is none",
            )),
            Err(error) => self.job.failure.note(error),
        }
    }
}

/// The parameters of the trace in `trace`, which `files` were.
fn parameters_of(
    trace: &Description,
    checksum: u64,
    files: &[PathBuf],
    speed: Option<f64>,
    content: Content,
) -> Result<Trace> {
    let name = |path: &PathBuf| {
        let name = path.file_name().unwrap_or(path.as_os_str());
        name.to_string_lossy().into_owned()
    };
    let records = match &trace.facts.recorded {
        Some(recorded) => recorded.workload.spec().job(&recorded.client)?.record_count(),
        None => trace.keys,
    };
    Ok(Trace {
        files: files.iter().map(name).collect(),
        checksum: format!("xxh3:{checksum:016x}"),
        speed,
        content,
        operations: trace.operations,
        records,
        facts: trace.facts.clone(),
        compiled: None,
    })
}
