//! What a comparison leaves behind. These structs are the JSON: see `results/README.md` for the
//! meaning of every field, and keep to it, since old results must stay readable.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use engines::{Compression, Durability, OpenOptions};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::measure::disk::DiskUsage;
use crate::measure::machine::Machine;
use crate::workload::Workload;

/// The schema of [`Comparison`]. The number grows when a field changes its meaning or goes; new
/// fields leave it as it is.
pub const SCHEMA: &str = "enginelab.compare/1";

/// One comparison: engines side by side, on one machine, under one workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: String,
    /// Where it was measured.
    pub machine: Machine,
    /// What was measured.
    pub workload: Parameters,
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameters {
    /// The workload with its parameters, the seed among them.
    #[serde(flatten)]
    pub workload: Workload,
    /// How the engines were opened.
    #[serde(flatten)]
    pub settings: Settings,
    /// How often each engine ran.
    pub repeats: u32,
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

/// One run: one engine in a process and a directory of its own.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Run {
    /// The engine's name.
    pub engine: String,
    /// `own`, `peer` or `reference`.
    pub kind: String,
    /// The engine's version; empty if it could not be opened.
    pub version: String,
    /// What the engine did to reach the durability level.
    pub durability: String,
    /// The engine's effective settings, in its own words.
    pub settings: BTreeMap<String, String>,
    /// Which of the repeats this is, from 1.
    pub repeat: u32,
    /// The operations that the engine acknowledged.
    pub operations: Option<Operations>,
    /// What was timed, in the order it happened.
    pub phases: Vec<Phase>,
    /// The directory's size at each moment.
    pub disk: Disk,
    /// What was found when everything was read back; absent if it was not.
    pub verified: Option<Verified>,
    /// Why the run ended early; its other fields hold what was measured until then.
    pub error: Option<String>,
}

/// The operations of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operations {
    /// How many.
    pub count: u64,
    /// Their hash, which must be the same for every engine.
    pub hash: String,
}

/// One timed phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// `open`, `load`, `quiesce`, `compact`, `close`, `reopen`, `verify`, `count`.
    pub name: String,
    /// The time of the engine's calls alone.
    pub seconds: f64,
    /// The time with what the harness did between them.
    pub wall_seconds: f64,
}

/// The directory's size at each moment; absent where the run did not get so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Disk {
    /// Before the engine was opened.
    pub before: Option<DiskUsage>,
    /// After the load.
    pub load: Option<DiskUsage>,
    /// When no background work was left.
    pub quiesce: Option<DiskUsage>,
    /// After compaction.
    pub compact: Option<DiskUsage>,
    /// After the engine was closed and opened again.
    pub reopen: Option<DiskUsage>,
}

/// What reading everything back found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Verified {
    /// Records that came back as they were written.
    pub read_back: u64,
    /// Records that did not come back.
    pub lost: u64,
    /// Records that came back changed.
    pub wrong: u64,
    /// Records that were never written, or came back twice; absent if that was not counted.
    pub extra: Option<u64>,
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

impl Verified {
    /// Adds what another thread found.
    pub fn merge(&mut self, other: Self) {
        self.read_back += other.read_back;
        self.lost += other.lost;
        self.wrong += other.wrong;
    }

    /// Whether everything came back, and nothing else.
    pub fn is_whole(&self) -> bool {
        self.lost == 0 && self.wrong == 0 && self.extra.unwrap_or(0) == 0
    }
}

impl Run {
    /// The phase called `name`.
    pub fn phase(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.name == name)
    }

    /// The engine's time in the phase called `name`.
    pub fn seconds(&self, name: &str) -> Option<f64> {
        self.phase(name).map(|phase| phase.seconds)
    }

    /// What is wrong with the run, in a few words; `None` if nothing is.
    pub fn problem(&self) -> Option<String> {
        if let Some(error) = &self.error {
            return Some(error.clone());
        }
        let verified = self.verified.filter(|verified| !verified.is_whole())?;
        let mut faults = Vec::new();
        for (count, fault) in [
            (verified.lost, "lost"),
            (verified.wrong, "changed"),
            (verified.extra.unwrap_or(0), "never written or there twice"),
        ] {
            if count > 0 {
                faults.push(format!("{count} {fault}"));
            }
        }
        Some(format!("records: {}", faults.join(", ")))
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

    /// The runs of `engine`.
    pub fn runs_of<'a>(&'a self, engine: &'a str) -> impl Iterator<Item = &'a Run> {
        self.runs.iter().filter(move |run| run.engine == engine)
    }

    /// Everything that is wrong, a line each: failed runs, records lost or changed, engines that
    /// were not given the same operations.
    pub fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = self
            .runs
            .iter()
            .filter_map(|run| {
                run.problem()
                    .map(|problem| format!("{}, run {}: {problem}", run.engine, run.repeat))
            })
            .collect();
        let mut streams = self.runs.iter().filter_map(|run| {
            run.operations.as_ref().filter(|_| run.error.is_none()).map(|done| (run, done))
        });
        if let Some((first, expected)) = streams.next() {
            problems.extend(streams.filter(|(_, done)| *done != expected).map(|(run, _)| {
                format!(
                    "{}, run {}: did not execute the operations that {} did",
                    run.engine, run.repeat, first.engine
                )
            }));
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
