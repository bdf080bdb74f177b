//! Figures since open.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Added up by whoever does the work.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) flushes: Work,
    pub(crate) compactions: Work,
    pub(crate) moved_tables: AtomicU64,
    pub(crate) log_bytes: AtomicU64,
    longest_stall_us: AtomicU64,
    stalled_us: AtomicU64,
    /// What reads have paid for level 0 since it was last merged; see the picker.
    pub(crate) read_debt_bytes: AtomicU64,
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
