//! Slowing writers down before they would have to stop.
//!
//! Without it writers run at full speed into the moment when no memtable is free, and then stand
//! still until a flush is done: a tenth of a second or more for one unlucky write. So once the last
//! free memtable is being filled, or level 0 has grown past its threshold, writes are admitted at
//! about the rate at which memtables are flushed: many short waits instead of one long one.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// What is owed is slept off in pieces of about this: shorter sleeps take longer than asked.
const SLEEP: Duration = Duration::from_millis(1);
/// No single write pays more than this at once.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// How hard background work is pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pressure {
    /// The active memtable is the last one that is free.
    pub(crate) is_last_memtable: bool,
    /// Level-0 tables beyond the threshold for slowing down.
    pub(crate) level0_excess: usize,
}

/// Admits bytes at a measured rate while there is pressure.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    /// At which one thread flushes; 0 until measured.
    flushed_bytes_per_second: AtomicU64,
    owed_ns: AtomicU64,
}

impl Throttle {
    /// A flush of `bytes` of memtable took so long.
    pub(crate) fn flushed(&self, bytes: u64, took: Duration) {
        let micros = took.as_micros().max(1);
        let rate = u64::try_from(u128::from(bytes) * 1_000_000 / micros).unwrap_or(u64::MAX);
        let before = self.flushed_bytes_per_second.load(Relaxed);
        let smoothed = if before == 0 { rate } else { before / 4 * 3 + rate / 4 };
        self.flushed_bytes_per_second.store(smoothed.max(1), Relaxed);
    }

    /// How long to sleep before another `bytes` are written.
    pub(crate) fn delay(&self, bytes: usize, pressure: Pressure) -> Option<Duration> {
        let rate = self.flushed_bytes_per_second.load(Relaxed);
        let is_pressed = pressure.is_last_memtable || pressure.level0_excess > 0;
        if !is_pressed || rate == 0 {
            self.owed_ns.store(0, Relaxed);
            return None;
        }
        // Each table over the threshold costs as much again: flushing alone does not help there.
        let factor = 1 + pressure.level0_excess as u128;
        let nanos = bytes as u128 * 1_000_000_000 * factor / u128::from(rate);
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        let owed = self.owed_ns.load(Relaxed).saturating_add(nanos);
        if owed < u64::try_from(SLEEP.as_nanos()).unwrap_or(u64::MAX) {
            self.owed_ns.store(owed, Relaxed);
            return None;
        }
        self.owed_ns.store(0, Relaxed);
        Some(Duration::from_nanos(owed).min(LONGEST_SLEEP))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Pressure = Pressure { is_last_memtable: false, level0_excess: 0 };
    const LAST: Pressure = Pressure { is_last_memtable: true, level0_excess: 0 };

    fn throttle() -> Throttle {
        let throttle = Throttle::default();
        // 100 MB/s: a kilobyte takes 10 microseconds.
        throttle.flushed(10_000_000, Duration::from_millis(100));
        throttle
    }

    #[test]
    fn without_pressure_nobody_waits() {
        assert_eq!(throttle().delay(1 << 30, NONE), None);
        assert_eq!(Throttle::default().delay(1 << 30, LAST), None);
    }

    #[test]
    fn writes_are_admitted_at_the_rate_of_flushes() {
        let throttle = throttle();
        let slept: Duration = (0..1000).filter_map(|_| throttle.delay(1000, LAST)).sum();
        assert_eq!(slept, Duration::from_millis(10));
        // What is owed is forgotten when the pressure is gone.
        assert_eq!(throttle.delay(99_000, LAST), None);
        assert_eq!(throttle.delay(0, NONE), None);
        assert_eq!(throttle.delay(99_000, LAST), None);
    }

    #[test]
    fn every_table_over_the_threshold_slows_down_further_and_no_write_pays_for_all() {
        let throttle = throttle();
        let excess = |level0_excess| Pressure { level0_excess, ..NONE };
        assert_eq!(throttle.delay(100_000, excess(1)), Some(Duration::from_millis(2)));
        assert_eq!(throttle.delay(100_000, excess(4)), Some(Duration::from_millis(5)));
        assert_eq!(throttle.delay(1 << 30, LAST), Some(LONGEST_SLEEP));
    }
}
