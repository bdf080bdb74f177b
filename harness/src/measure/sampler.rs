//! A thread that looks at memory and disk while a phase runs, for their peaks.

use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::disk;
use super::over_time::OverTime;
use super::resources::Memory;

/// What was seen in a phase. Peaks between two looks are missed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The most memory of the process's own at once; absent where the system does not tell.
    pub peak_own_bytes: Option<u64>,
    /// The most of mapped files in memory at once.
    pub peak_mapped_bytes: Option<u64>,
    /// The mean of its own memory.
    pub mean_own_bytes: Option<u64>,
    /// The mean of mapped files in memory.
    pub mean_mapped_bytes: Option<u64>,
    /// The most blocks that the directory had at once.
    pub peak_disk_bytes: u64,
    /// How memory and disk space went.
    #[serde(default, skip_serializing_if = "OverTime::is_empty")]
    pub over_time: OverTime,
}

/// Looks every so often until it is stopped.
pub struct Sampler {
    stop: Sender<()>,
    thread: JoinHandle<Seen>,
}

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Looking at the directory takes at most one part in so many of the time.
const DISK_SHARE: u32 = 100;

impl Sampler {
    /// Starts to look at this process and at `directory`.
    pub fn start(directory: &Path) -> Self {
        let (stop, stopped) = mpsc::channel();
        let directory = directory.to_path_buf();
        let thread = std::thread::spawn(move || {
            let mut looks = Looks::default();
            let began = Instant::now();
            let mut next_disk = began;
            loop {
                if Instant::now() >= next_disk {
                    let took = looks.at_disk(&directory);
                    next_disk = Instant::now() + LOOK_EVERY.max(took * DISK_SHARE);
                }
                looks.at_memory(began.elapsed());
                if stopped.recv_timeout(LOOK_EVERY) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
            looks.at_disk(&directory);
            looks.at_memory(began.elapsed());
            looks.seen()
        });
        Self { stop, thread }
    }

    /// Looks a last time, and tells what was seen.
    pub fn stop(self) -> Seen {
        let _ = self.stop.send(());
        self.thread.join().unwrap_or_default()
    }
}

#[derive(Default)]
struct Looks {
    count: u64,
    own_sum: u64,
    mapped_sum: u64,
    own_peak: u64,
    mapped_peak: u64,
    disk_peak: u64,
    disk_last: u64,
    over_time: OverTime,
}

impl Looks {
    /// `elapsed` after the phase began.
    fn at_memory(&mut self, elapsed: Duration) {
        let memory = Memory::now();
        let own_bytes = memory.map_or(0, |memory| memory.own_bytes);
        self.over_time.look(elapsed, own_bytes, self.disk_last);
        let Some(memory) = memory else { return };
        self.count += 1;
        self.own_sum = self.own_sum.saturating_add(memory.own_bytes);
        self.mapped_sum = self.mapped_sum.saturating_add(memory.mapped_bytes);
        self.own_peak = self.own_peak.max(memory.own_bytes);
        self.mapped_peak = self.mapped_peak.max(memory.mapped_bytes);
    }

    /// Returns how long it took.
    fn at_disk(&mut self, directory: &Path) -> Duration {
        let began = Instant::now();
        // The directory is measured again after the phase, where an error is told.
        if let Ok(usage) = disk::usage(directory) {
            self.disk_last = usage.allocated_bytes;
            self.disk_peak = self.disk_peak.max(self.disk_last);
        }
        began.elapsed()
    }

    fn seen(self) -> Seen {
        let known = |bytes: u64| (self.count > 0).then_some(bytes);
        Seen {
            peak_own_bytes: known(self.own_peak),
            peak_mapped_bytes: known(self.mapped_peak),
            mean_own_bytes: self.own_sum.checked_div(self.count),
            mean_mapped_bytes: self.mapped_sum.checked_div(self.count),
            peak_disk_bytes: self.disk_peak,
            over_time: self.over_time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn peaks_that_are_over_are_remembered() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("large");
        let before = Memory::now().unwrap().own_bytes;
        let sampler = Sampler::start(directory.path());
        std::fs::write(&file, vec![1; 32 << 20]).unwrap();
        let large = vec![1u8; 64 << 20];
        std::thread::sleep(LOOK_EVERY * 10);
        assert_eq!(std::hint::black_box(&large)[77], 1);
        drop(large);
        std::fs::remove_file(&file).unwrap();
        let seen = sampler.stop();
        assert!(seen.peak_disk_bytes >= 32 << 20, "{seen:?}");
        assert!(seen.peak_own_bytes.unwrap() >= before + (60 << 20), "{seen:?}");
        assert!(seen.mean_own_bytes <= seen.peak_own_bytes, "{seen:?}");
        let over_time = &seen.over_time;
        assert_eq!(over_time.own_bytes.iter().copied().max(), seen.peak_own_bytes);
        assert_eq!(over_time.disk_bytes.iter().copied().max(), Some(seen.peak_disk_bytes));
    }
}
