//! Peaks over time, in a bounded number of points however long a phase takes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The peaks of memory and disk space in stretches of equal length, from the start of a phase on.
/// A stretch in which nobody looked has the figures of the one before.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OverTime {
    /// The length of a stretch in milliseconds; 0 before the first look.
    pub every_ms: u64,
    /// The most memory of the process's own; 0 where the system does not tell.
    pub own_bytes: Vec<u64>,
    /// The most blocks that the directory had.
    pub disk_bytes: Vec<u64>,
}

/// Stretches kept; where there would be more, each is made twice as long.
const MOST: usize = 256;
const SHORTEST_MS: u64 = 100;

impl OverTime {
    /// Takes down what there is `elapsed` after the start; looks come in order.
    pub fn look(&mut self, elapsed: Duration, own_bytes: u64, disk_bytes: u64) {
        self.every_ms = self.every_ms.max(SHORTEST_MS);
        let at = loop {
            let at = elapsed.as_millis() / u128::from(self.every_ms);
            match usize::try_from(at) {
                Ok(at) if at < MOST => break at,
                _ => self.halve(),
            }
        };
        for (peaks, seen) in [(&mut self.own_bytes, own_bytes), (&mut self.disk_bytes, disk_bytes)]
        {
            let before = peaks.last().copied().unwrap_or(seen);
            while peaks.len() < at {
                peaks.push(before);
            }
            match peaks.get_mut(at) {
                Some(peak) => *peak = seen.max(*peak),
                None => peaks.push(seen),
            }
        }
    }

    /// Whether nobody looked, as in results made before it was kept.
    pub fn is_empty(&self) -> bool {
        self.own_bytes.is_empty()
    }

    fn halve(&mut self) {
        self.every_ms = self.every_ms.saturating_mul(2);
        for peaks in [&mut self.own_bytes, &mut self.disk_bytes] {
            *peaks = peaks.chunks(2).filter_map(|pair| pair.iter().copied().max()).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn each_stretch_has_its_peak_and_gaps_the_one_before() {
        let mut seen = OverTime::default();
        for (ms, own, disk) in [(0, 5, 1), (50, 9, 1), (99, 2, 2), (100, 3, 2), (420, 7, 0)] {
            seen.look(at(ms), own, disk);
        }
        assert_eq!(seen.every_ms, 100);
        assert_eq!(seen.own_bytes, [9, 3, 3, 3, 7]);
        assert_eq!(seen.disk_bytes, [2, 2, 2, 2, 0]);
    }

    #[test]
    fn long_phases_have_longer_stretches_and_lose_no_peak() {
        let mut seen = OverTime::default();
        for look in 0..100_000u64 {
            seen.look(at(look * 50), if look == 33_333 { 77 } else { 1 }, look);
        }
        // 5,000 seconds in at most 256 stretches: 25.6 seconds each, 0.1 x 2^8.
        assert_eq!(seen.every_ms, 25_600);
        assert_eq!(seen.own_bytes.len(), 196);
        let high: Vec<usize> = (0..196).filter(|&at| seen.own_bytes[at] == 77).collect();
        assert_eq!(high, [33_333 * 50 / 25_600]);
        assert!(seen.disk_bytes.is_sorted());
        assert_eq!(seen.disk_bytes.last(), Some(&99_999));
    }

    #[test]
    fn a_look_after_ages_is_the_last_stretch() {
        let mut seen = OverTime::default();
        seen.look(at(0), 1, 1);
        seen.look(at(u64::MAX), 2, 2);
        assert!(seen.own_bytes.len() <= MOST);
        assert_eq!(seen.own_bytes.last(), Some(&2));
    }
}
