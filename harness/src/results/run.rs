//! One run of one engine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Phase, Traffic};
use crate::measure::disk::DiskUsage;
use crate::measure::resources::Memory;

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
    /// The operations that the engine acknowledged, of all phases without a limit of time.
    pub operations: Option<Operations>,
    /// The memory of the process before the engine was opened: the laboratory's own.
    #[serde(default)]
    pub own_memory: Option<Memory>,
    /// The directory before the engine was opened.
    pub disk_before: Option<DiskUsage>,
    /// What was timed, in the order it happened.
    pub phases: Vec<Phase>,
    /// Phases that the engine left out, each with the reason: it has no such operations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, String>,
    /// What the engine told of itself in the phases that ask for it, by phase and name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stats: BTreeMap<String, BTreeMap<String, String>>,
    /// What was found when everything was read back; absent if it was not.
    pub verified: Option<Verified>,
    /// What the engine cannot do that the workload asks for; it is no failure.
    #[serde(default)]
    pub not_applicable: Option<String>,
    /// Why the run ended early; its other fields hold what was measured until then.
    pub error: Option<String>,
}

/// The operations of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operations {
    /// How many.
    pub count: u64,
    /// Their hash, the same for every engine that left no phase out.
    pub hash: String,
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
    /// The bytes of the keys and values that are there.
    #[serde(default)]
    pub live_bytes: u64,
    /// Records that were never written, or came back twice; absent if that was not counted.
    pub extra: Option<u64>,
}

impl Verified {
    /// Adds what another thread found.
    pub fn merge(&mut self, other: Self) {
        self.read_back += other.read_back;
        self.lost += other.lost;
        self.wrong += other.wrong;
        self.live_bytes += other.live_bytes;
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

    /// The directory's size after the phase called `name`.
    pub fn disk_after(&self, name: &str) -> Option<DiskUsage> {
        self.phase(name).map(|phase| phase.disk)
    }

    /// The phases until the engine is closed for good.
    pub fn until_closed(&self) -> impl Iterator<Item = &Phase> {
        self.phases.iter().take_while(|phase| phase.name != "reopen")
    }

    /// The most memory of the process's own, until the engine is closed.
    pub fn peak_own_bytes(&self) -> Option<u64> {
        self.until_closed().filter_map(|phase| phase.seen.peak_own_bytes).max()
    }

    /// Bytes of the directory at the end, less what was there before.
    pub fn grown_bytes(&self) -> Option<u64> {
        let end = self.disk_after("reopen")?.apparent_bytes;
        Some(end.saturating_sub(self.disk_before?.apparent_bytes))
    }

    /// Device bytes written for each byte that was put, over all phases until the engine is closed.
    pub fn write_amplification(&self) -> Option<f64> {
        let (mut device, mut put) = (0, 0);
        for phase in self.until_closed() {
            device += phase.usage.device_written_bytes?;
            put += phase.traffic.as_ref().map_or(0, Traffic::written_bytes);
        }
        (put > 0).then(|| device as f64 / put as f64)
    }

    /// Device bytes read for each byte that was read, over the phases with operations.
    pub fn read_amplification(&self) -> Option<f64> {
        let (mut device, mut read) = (0, 0);
        for phase in &self.phases {
            let Some(traffic) = &phase.traffic else { continue };
            device += phase.usage.device_read_bytes?;
            read += traffic.read_bytes();
        }
        (read > 0).then(|| device as f64 / read as f64)
    }

    /// Bytes of the directory, less what was there before, for each byte of live keys and values,
    /// at the end.
    pub fn space_amplification(&self) -> Option<f64> {
        let live = self.verified?.live_bytes;
        let grown = self.grown_bytes()?;
        (live > 0).then(|| grown as f64 / live as f64)
    }

    /// The most blocks that the directory had at once.
    pub fn peak_disk_bytes(&self) -> u64 {
        self.phases.iter().map(|phase| phase.seen.peak_disk_bytes).max().unwrap_or(0)
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
