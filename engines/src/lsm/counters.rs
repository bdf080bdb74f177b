//! Figures since open.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::edit::LEVEL_COUNT;

/// Added up by whoever does the work.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) flushes: Work,
    pub(crate) compactions: Work,
    pub(crate) moved_tables: AtomicU64,
    /// The work whose outcome went to each level.
    pub(crate) levels: [LevelWork; LEVEL_COUNT],
    /// Keys, values and what comes with each, as they were written to the log.
    pub(crate) record_bytes: AtomicU64,
    longest_stall_us: AtomicU64,
    stalled_us: AtomicU64,
    /// What reads have paid for level 0 since it was last merged; see the picker.
    pub(crate) read_debt_bytes: AtomicU64,
}

/// What was done for a level.
#[derive(Debug, Default)]
pub(crate) struct LevelWork {
    pub(crate) work: Work,
    pub(crate) moved_bytes: AtomicU64,
}

/// A kind of background work.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) count: AtomicU64,
    pub(crate) read_bytes: AtomicU64,
    pub(crate) written_bytes: AtomicU64,
    pub(crate) busy_us: AtomicU64,
}

impl Work {
    pub(crate) fn add(&self, read_bytes: u64, written_bytes: u64, busy: Duration) {
        self.count.fetch_add(1, Relaxed);
        self.read_bytes.fetch_add(read_bytes, Relaxed);
        self.written_bytes.fetch_add(written_bytes, Relaxed);
        self.busy_us.fetch_add(micros(busy), Relaxed);
    }
}

impl Counters {
    /// A memtable went to level 0.
    pub(crate) fn flushed(&self, written_bytes: u64, busy: Duration) {
        self.flushes.add(0, written_bytes, busy);
        self.levels[0].work.add(0, written_bytes, busy);
    }

    /// Tables were merged into `level`.
    pub(crate) fn merged(&self, level: usize, read_bytes: u64, written_bytes: u64, busy: Duration) {
        self.compactions.add(read_bytes, written_bytes, busy);
        self.levels[level].work.add(read_bytes, written_bytes, busy);
    }

    /// What tables hold that were written, for every byte that was asked to be written, the log
    /// included; `None` before the first.
    #[expect(clippy::cast_precision_loss, reason = "a ratio needs no more than a few digits")]
    pub(crate) fn write_amplification(&self) -> Option<f64> {
        let asked = self.record_bytes.load(Relaxed);
        let written =
            &[&self.flushes, &self.compactions].map(|work| work.written_bytes.load(Relaxed));
        (asked > 0).then(|| 1.0 + written.iter().sum::<u64>() as f64 / asked as f64)
    }

    /// A write waited for background work.
    pub(crate) fn stalled(&self, waited: Duration) {
        self.longest_stall_us.fetch_max(micros(waited), Relaxed);
        self.stalled_us.fetch_add(micros(waited), Relaxed);
    }

    pub(crate) fn longest_stall_us(&self) -> u64 {
        self.longest_stall_us.load(Relaxed)
    }

    pub(crate) fn stalled_us(&self) -> u64 {
        self.stalled_us.load(Relaxed)
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
