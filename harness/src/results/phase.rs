//! The parts of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::measure::disk::DiskUsage;
use crate::measure::resources::Usage;
use crate::measure::sampler::Seen;
use crate::workload::op::Kind;

/// One phase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Phase {
    /// `open`, those of the workload, `close`, `reopen`, `verify`, `count`.
    pub name: String,
    /// The time of the engine's calls alone.
    pub seconds: f64,
    /// The time with what the harness did between them.
    pub wall_seconds: f64,
    /// What the process took meanwhile.
    #[serde(default)]
    pub usage: Usage,
    /// The peaks meanwhile.
    #[serde(default)]
    pub seen: Seen,
    /// The directory afterwards.
    #[serde(default)]
    pub disk: DiskUsage,
    /// The operations, in a phase that has some.
    #[serde(default)]
    pub traffic: Option<Traffic>,
}

/// The operations of a phase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Traffic {
    /// The operations that were acknowledged.
    pub operations: u64,
    /// Their hash, the same for every engine unless the time was limited.
    pub hash: String,
    /// Whether the phase ended because its time was up: what was executed differs then.
    pub time_limited: bool,
    /// Whether the operations alone determine what is found, so that every engine must have found
    /// the same: neither time nor the meeting of threads did, here and before; absent in old
    /// results: not known.
    #[serde(default)]
    pub determined: bool,
    /// The client threads.
    pub threads: u32,
    /// Operations a second that were asked for; absent where it went as fast as it could.
    pub rate: Option<f64>,
    /// What each kind of operation did and took.
    pub kinds: BTreeMap<Kind, KindFigures>,
    /// The same of the thread that worked beside the clients; it did as much as it could.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub background: BTreeMap<Kind, KindFigures>,
    /// Operations that ended in each 100 milliseconds of the phase.
    pub timeline: Vec<u64>,
    /// What an operation costs one client thread with an engine that does nothing, in nanoseconds;
    /// absent where that cannot be told.
    pub own_ns: Option<f64>,
}

/// One kind of operation in a phase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct KindFigures {
    /// Calls to the engine: each has a latency.
    pub calls: u64,
    /// Operations in them.
    pub operations: u64,
    /// Records that were asked for and not there.
    pub not_found: u64,
    /// Records that scans visited.
    pub visited: u64,
    /// Bytes of keys and values that were put, and of keys that were deleted.
    pub written_bytes: u64,
    /// Bytes of values that were read, and of keys that scans visited.
    pub read_bytes: u64,
    /// The latency of the calls.
    pub latency: Latency,
}

/// The distribution of a latency, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Latency {
    /// The sum of all latencies in seconds.
    pub total_seconds: f64,
    /// The mean.
    pub mean_ns: f64,
    /// The smallest.
    pub min_ns: u64,
    /// The largest.
    pub max_ns: u64,
    /// Half of the calls took no longer.
    pub p50_ns: u64,
    /// 90 % of them.
    pub p90_ns: u64,
    /// 99 % of them.
    pub p99_ns: u64,
    /// 99.9 % of them.
    pub p999_ns: u64,
    /// 99.99 % of them.
    pub p9999_ns: u64,
    /// The whole distribution: an HdrHistogram, version 2, compressed, in base64, as the tools of
    /// that project read it.
    pub histogram: String,
}

impl Phase {
    /// The time in which the engine worked.
    pub fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// Operations a second, of all kinds together.
    pub fn throughput(&self) -> Option<f64> {
        let traffic = self.traffic.as_ref()?;
        (self.seconds > 0.0).then(|| traffic.operations as f64 / self.seconds)
    }
}

impl Traffic {
    /// The bytes that were put.
    pub fn written_bytes(&self) -> u64 {
        self.kinds.values().map(|kind| kind.written_bytes).sum()
    }

    /// The bytes that were read.
    pub fn read_bytes(&self) -> u64 {
        self.kinds.values().map(|kind| kind.read_bytes).sum()
    }

    /// The part of the client threads' time, in a phase of `seconds`, that the laboratory itself
    /// took: an engine twice as fast would hardly be told from this one where it is large.
    pub fn own_share(&self, seconds: f64) -> Option<f64> {
        let available = seconds * f64::from(self.threads);
        let own = self.own_ns? / 1e9 * self.operations as f64;
        (available > 0.0 && self.rate.is_none()).then(|| own / available)
    }
}
