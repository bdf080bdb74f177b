//! Slowing writers down before they would have to stop, and before they take too much space.
//!
//! Without it writers run at full speed into the moment when no memtable is free, and then stand
//! still until a flush is done: a tenth of a second or more for one unlucky write. So writes pay
//! for the bytes that they bring, in time that they sleep, as long as background work does not keep
//! up: many short waits instead of one long one. What a byte costs is told in the time in which one
//! thread flushes it:
//! - as much while the last free memtable is being filled;
//! - as much more for each table of level 0 over its threshold, where flushing alone does not help;
//! - more and more as garbage grows beyond what makes a merge due, so that it never gets to be as
//!   much as half of the rest, whatever the machine can merge.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::garbage::GARBAGE_MAX;

/// What is owed is slept off in pieces of about this: shorter ones are mostly the system's overhead,
/// longer ones are what the slowest of a thousand operations take.
const SLEEP: Duration = Duration::from_micros(150);
/// No single write pays more than this at once.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// By so much more garbage than [`GARBAGE_MAX`] a byte costs as much again as flushing it.
const GARBAGE_STEP: f64 = 0.03;

/// How hard background work is pressed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Pressure {
    /// The active memtable is the last one that is free.
    pub(crate) is_last_memtable: bool,
    /// Level-0 tables beyond the threshold for slowing down.
    pub(crate) level0_excess: usize,
    /// What level 0 holds in vain against all that is not.
    pub(crate) garbage: f64,
}

impl Pressure {
    /// What a byte costs, in times of its flush.
    #[expect(clippy::cast_precision_loss, reason = "a count of tables")]
    fn price(self) -> f64 {
        let is_pressed = self.is_last_memtable || self.level0_excess > 0;
        let garbage = (self.garbage - GARBAGE_MAX).max(0.0) / GARBAGE_STEP;
        f64::from(u8::from(is_pressed)) + self.level0_excess as f64 + garbage
    }
}

/// Lets writes pay while there is pressure.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    /// At which one thread flushes; 0 until measured.
    flushed_bytes_per_second: AtomicU64,
    /// Below 0 is what was slept too long.
    owed_ns: AtomicI64,
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
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a duration")]
    pub(crate) fn delay(&self, bytes: usize, pressure: Pressure) -> Option<Duration> {
        let rate = self.flushed_bytes_per_second.load(Relaxed);
        let price = pressure.price();
        if price == 0.0 || rate == 0 {
            self.owed_ns.store(0, Relaxed);
            return None;
        }
        // Saturates.
        let nanos = (price * bytes as f64 * 1e9 / rate as f64) as i64;
        let owed = self.owed_ns.load(Relaxed).saturating_add(nanos).min(nanos_of(LONGEST_SLEEP));
        self.owed_ns.store(owed, Relaxed);
        let owed = Duration::from_nanos(u64::try_from(owed).unwrap_or_default());
        Some(owed).filter(|owed| *owed >= SLEEP)
    }

    /// So long was slept.
    pub(crate) fn slept(&self, slept: Duration) {
        // Oversleeping is paid back, but does not buy a rush.
        let left = self.owed_ns.load(Relaxed).saturating_sub(nanos_of(slept));
        self.owed_ns.store(left.max(-nanos_of(LONGEST_SLEEP)), Relaxed);
    }
}

fn nanos_of(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Pressure = Pressure { is_last_memtable: false, level0_excess: 0, garbage: 0.0 };
    const LAST: Pressure = Pressure { is_last_memtable: true, ..NONE };

    fn throttle() -> Throttle {
        let throttle = Throttle::default();
        // 100 MB/s: a kilobyte takes 10 microseconds.
        throttle.flushed(10_000_000, Duration::from_millis(100));
        throttle
    }

    /// How long 100 writes of 10,000 bytes sleep, which are flushed in 10 milliseconds.
    fn slept(pressure: Pressure) -> Duration {
        let throttle = throttle();
        let sleeps = (0..100).filter_map(|_| {
            throttle.delay(10_000, pressure).inspect(|sleep| throttle.slept(*sleep))
        });
        sleeps.sum()
    }

    #[test]
    fn without_pressure_nobody_waits() {
        assert_eq!(throttle().delay(1 << 30, NONE), None);
        assert_eq!(throttle().delay(1 << 30, Pressure { garbage: GARBAGE_MAX, ..NONE }), None);
        assert_eq!(Throttle::default().delay(1 << 30, LAST), None);
    }

    #[test]
    fn writes_are_admitted_at_the_rate_of_flushes() {
        assert_eq!(slept(LAST), Duration::from_millis(10));
        let throttle = throttle();
        assert_eq!(throttle.delay(14_000, LAST), None);
        // What is owed is forgotten when the pressure is gone.
        assert_eq!(throttle.delay(0, NONE), None);
        assert_eq!(throttle.delay(14_000, LAST), None);
        assert_eq!(throttle.delay(1_000, LAST), Some(SLEEP));
        // Too long a sleep counts for the writes to come.
        throttle.slept(SLEEP * 2);
        assert_eq!(throttle.delay(29_000, LAST), None);
        assert_eq!(throttle.delay(1_000, LAST), Some(SLEEP));
    }

    #[test]
    fn tables_over_the_threshold_and_garbage_cost_more_and_no_write_pays_for_all() {
        let excess = |level0_excess| Pressure { level0_excess, ..NONE };
        assert_eq!(slept(excess(1)), Duration::from_millis(20));
        assert_eq!(slept(excess(4)), Duration::from_millis(50));
        let garbage = |steps: f64| GARBAGE_STEP.mul_add(steps, GARBAGE_MAX);
        let close = |a: Duration, ms: f64| (a.as_secs_f64() * 1e3 - ms).abs() < 0.2;
        assert!(close(slept(Pressure { garbage: garbage(0.5), ..NONE }), 5.0));
        assert!(close(slept(Pressure { garbage: garbage(3.0), ..LAST }), 40.0));
        assert_eq!(throttle().delay(1 << 30, LAST), Some(LONGEST_SLEEP));
    }
}
