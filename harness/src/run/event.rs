//! What a child tells its parent: one JSON object a line on standard output.
//!
//! Engines print there too now and then, so a line that is no event is passed over.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::measure::disk::DiskUsage;
use crate::measure::resources::Memory;
use crate::results::{Operations, Phase, Verified};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run begins.
    Begins {
        /// The phases that it will have.
        phases: Vec<String>,
        /// The directory.
        disk: DiskUsage,
        /// The memory of the process.
        own_memory: Option<Memory>,
    },
    /// The engine is open.
    Engine {
        /// Its version.
        version: String,
        /// What it does for the durability level.
        durability: String,
        /// Its effective settings.
        settings: BTreeMap<String, String>,
    },
    /// A phase has begun.
    Begun {
        /// Which.
        phase: String,
    },
    /// A phase goes on.
    Progress {
        /// Steps done.
        done: u64,
        /// Steps to do.
        total: u64,
    },
    /// A phase is over.
    Ended(Box<Phase>),
    /// The engine leaves a phase out.
    LeftOut {
        /// Which.
        phase: String,
        /// Why.
        reason: String,
    },
    /// What the engine tells of itself in a phase.
    Stats {
        /// Which.
        phase: String,
        /// Name and value.
        told: BTreeMap<String, String>,
    },
    /// The operations that were acknowledged.
    Operations(Operations),
    /// Everything was read back.
    Verified(Verified),
    /// The engine cannot do what the workload asks for.
    NotApplicable {
        /// What.
        reason: String,
    },
    /// The run ends early.
    Failed {
        /// Why.
        error: String,
    },
    /// The run is complete.
    Done,
}

/// The child's end of the line, shared by its threads.
pub struct Events {
    sink: Mutex<Sink>,
}

struct Sink {
    out: Box<dyn Write + Send>,
    last_progress: Instant,
}

const PROGRESS_EVERY: Duration = Duration::from_millis(100);

impl Events {
    /// Events go to `out`.
    pub fn new(out: Box<dyn Write + Send>) -> Self {
        Self { sink: Mutex::new(Sink { out, last_progress: Instant::now() }) }
    }

    /// Sends an event. If the parent is gone there is nobody to tell: the child goes on until the
    /// system ends it.
    pub fn send(&self, event: &Event) {
        self.sink.lock().send(event);
    }

    /// Sends a progress event, unless the last one was just before.
    pub fn progress(&self, done: u64, total: u64) {
        let mut sink = self.sink.lock();
        if sink.last_progress.elapsed() >= PROGRESS_EVERY {
            sink.send(&Event::Progress { done, total });
            sink.last_progress = Instant::now();
        }
    }
}

impl Sink {
    fn send(&mut self, event: &Event) {
        if let Ok(mut line) = serde_json::to_vec(event) {
            // Begins with a newline too: an engine may have left half a line.
            line.insert(0, b'\n');
            line.push(b'\n');
            let _ = self.out.write_all(&line).and_then(|()| self.out.flush());
        }
    }
}
