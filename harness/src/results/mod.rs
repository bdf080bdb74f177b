//! What a comparison leaves behind. These structs are the JSON: see `results/README.md` for the
//! meaning of every field, and keep to it, since old results must stay readable.

pub(crate) mod difference;
mod phase;
mod run;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Display;
use std::num::NonZeroU32;
use std::str::FromStr;

use engines::{Compression, Durability, OpenOptions};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use self::phase::{KindFigures, Latency, Phase, Traffic};
pub use self::run::{Operations, Run, Verified};
use crate::measure::machine::Machine;
use crate::workload::Workload;
use crate::workload::op::Kind;

/// The schema of [`Comparison`]. The number grows when a field changes its meaning or goes; new
/// fields leave it as it is.
pub const SCHEMA: &str = "enginelab.compare/2";

/// One comparison: engines side by side, on one machine, under one workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: String,
    /// Where it was measured.
    pub machine: Machine,
    /// What was measured.
    pub workload: Parameters,
    /// The engines that are to run.
    pub engines: Vec<String>,
    /// Every finished run, in the order they ran.
    pub runs: Vec<Run>,
    /// The engines that could not take part.
    #[serde(default)]
    pub skipped: Vec<Skipped>,
    /// Whether it was stopped before every run had finished.
    #[serde(default)]
    pub interrupted: bool,
}

/// The workload and everything else that was chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// The workload with its parameters.
    #[serde(flatten)]
    pub workload: Workload,
    /// Who uses the engines.
    #[serde(flatten)]
    pub client: Client,
    /// How the engines were opened.
    #[serde(flatten)]
    pub settings: Settings,
    /// How the runs are set apart from each other and the machine.
    #[serde(flatten)]
    pub conditions: Conditions,
    /// How often each engine runs.
    pub repeats: u32,
}

/// Who uses the engines, and how.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Client {
    /// Client threads.
    pub threads: NonZeroU32,
    /// What keys, values, operations and the order of the runs are derived from.
    pub seed: u64,
    /// Operations a second of all threads together; absent: as fast as the engine can.
    pub rate: Option<f64>,
}

/// What surrounds each run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// Whether the page cache is dropped before each run.
    pub cold: bool,
    /// The most memory of a run's process, page cache included, in bytes.
    pub memory_cap_bytes: Option<u64>,
    /// The seconds after which a run is ended.
    pub time_limit_seconds: Option<f64>,
}

/// What every engine is opened with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// What an acknowledged write survives.
    #[serde(serialize_with = "as_text", deserialize_with = "from_text")]
    pub durability: Durability,
    /// The memory budget in bytes.
    pub memory_bytes: u64,
    /// How blocks are compressed, by engines that compress.
    #[serde(serialize_with = "as_text", deserialize_with = "from_text")]
    pub compression: Compression,
}

/// An engine that could not take part, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The engine's name.
    pub engine: String,
    /// Why, and what to do about it.
    pub reason: String,
}

impl Settings {
    /// As options of an engine.
    pub fn open_options(&self) -> OpenOptions {
        OpenOptions::new()
            .durability(self.durability)
            .memory_bytes(self.memory_bytes)
            .compression(self.compression)
    }
}

impl Default for Settings {
    fn default() -> Self {
        let OpenOptions { durability, memory_bytes, compression, .. } = OpenOptions::new();
        Self { durability, memory_bytes, compression }
    }
}

impl Comparison {
    /// The names of the engines that ran, each once, in the order they first ran.
    pub fn engines(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for run in &self.runs {
            if !names.contains(&run.engine.as_str()) {
                names.push(&run.engine);
            }
        }
        names
    }

    /// Whether the run of `engine` number `repeat` is there.
    pub fn has_run(&self, engine: &str, repeat: u32) -> bool {
        self.runs.iter().any(|run| run.engine == engine && run.repeat == repeat)
    }

    /// The runs of `engine`.
    pub fn runs_of<'a>(&'a self, engine: &'a str) -> impl Iterator<Item = &'a Run> {
        self.runs.iter().filter(move |run| run.engine == engine)
    }

    /// Everything that is wrong, a line each: failed runs, records lost or changed, engines that
    /// were not given the same operations, or did not find the same.
    pub fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = self
            .runs
            .iter()
            .filter_map(|run| {
                run.problem()
                    .map(|problem| format!("{}, run {}: {problem}", run.engine, run.repeat))
            })
            .collect();
        problems.extend(self.differing("execute the operations that {} did", |_, traffic| {
            Some((traffic.operations, traffic.hash.clone()))
        }));
        problems.extend(self.differing("find the records that {} found", |run, traffic| {
            let of_kind = |(kind, figures): (&Kind, &KindFigures)| (*kind, figures.not_found);
            // What keeps nothing finds nothing.
            let is_known = traffic.determined && run.verified.is_some();
            is_known.then(|| traffic.kinds.iter().map(of_kind).collect::<Vec<_>>())
        }));
        problems
    }

    /// A line for each phase of a run of which `told` is not that of the first run that has it.
    /// What was ended by time, left out or broken off is another part of the phase for every
    /// engine, and compared with none.
    fn differing<T: PartialEq>(
        &self,
        did: &str,
        told: impl Fn(&Run, &Traffic) -> Option<T>,
    ) -> Vec<String> {
        let mut first: BTreeMap<&str, (&Run, T)> = BTreeMap::new();
        let mut problems = Vec::new();
        for run in self.runs.iter().filter(|run| run.error.is_none()) {
            for phase in &run.phases {
                let traffic = phase.traffic.as_ref().filter(|traffic| !traffic.time_limited);
                let Some(is) = traffic.and_then(|traffic| told(run, traffic)) else { continue };
                match first.entry(&phase.name) {
                    Entry::Vacant(vacant) => {
                        vacant.insert((run, is));
                    }
                    Entry::Occupied(known) => {
                        let (other, expected) = known.get();
                        if is != *expected {
                            let (engine, repeat) = (&run.engine, run.repeat);
                            let did = did.replace("{}", &other.engine);
                            let phase = &phase.name;
                            problems
                                .push(format!("{engine}, run {repeat}: did not {did} in {phase}"));
                        }
                    }
                }
            }
        }
        problems
    }
}

fn as_text<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn from_text<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}
