//! Writing tables no faster than asked for, evenly.
//!
//! Whoever writes reserves the time that its bytes take at the rate, behind what others have
//! reserved, and waits until that time begins. Time that nobody wanted is gone: after a rest there
//! is no burst.

use std::io::IoSlice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::Result;
use crate::fs::WriteFile;

/// A write is cut into pieces that take about so long each.
const PIECES_PER_SECOND: u64 = 100;
/// Smaller pieces are not worth the calls.
const PIECE_BYTES_MIN: u64 = 4 << 10;

/// The rate that all who write tables share.
#[derive(Debug)]
pub(crate) struct Pace {
    started: Instant,
    piece_bytes: usize,
    schedule: Mutex<Schedule>,
    lifted: Condvar,
}

/// Who writes when, in time since the start.
#[derive(Debug)]
struct Schedule {
    bytes_per_second: u64,
    /// Up to here all time is taken.
    taken_until: Duration,
    is_lifted: bool,
}

impl Schedule {
    /// When a write of `bytes` may begin that is asked for at `now`.
    fn reserve(&mut self, now: Duration, bytes: usize) -> Duration {
        let begin = self.taken_until.max(now);
        let nanos = bytes as u128 * 1_000_000_000 / u128::from(self.bytes_per_second.max(1));
        let took = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.taken_until = begin.saturating_add(took);
        begin
    }
}

impl Pace {
    /// `None` for no limit, which 0 stands for.
    pub(crate) fn new(bytes_per_second: u64) -> Option<Arc<Self>> {
        let piece_bytes = (bytes_per_second / PIECES_PER_SECOND).max(PIECE_BYTES_MIN);
        (bytes_per_second > 0).then(|| {
            Arc::new(Self {
                started: Instant::now(),
                piece_bytes: usize::try_from(piece_bytes).unwrap_or(usize::MAX),
                schedule: Mutex::new(Schedule {
                    bytes_per_second,
                    taken_until: Duration::ZERO,
                    is_lifted: false,
                }),
                lifted: Condvar::new(),
            })
        })
    }

    /// `file`, written at this pace if there is one.
    pub(crate) fn apply(pace: Option<&Arc<Self>>, file: Arc<dyn WriteFile>) -> Arc<dyn WriteFile> {
        match pace {
            Some(pace) => Arc::new(PacedFile { file, pace: Arc::clone(pace) }),
            None => file,
        }
    }

    /// Ends the limit, for those too who wait: the engine is being closed.
    pub(crate) fn lift(&self) {
        self.schedule.lock().is_lifted = true;
        self.lifted.notify_all();
    }

    fn wait_to_write(&self, bytes: usize) {
        let mut schedule = self.schedule.lock();
        let begin = schedule.reserve(self.started.elapsed(), bytes);
        while !schedule.is_lifted && self.started.elapsed() < begin {
            let _ = self.lifted.wait_until(&mut schedule, self.started + begin);
        }
    }
}

#[derive(Debug)]
struct PacedFile {
    file: Arc<dyn WriteFile>,
    pace: Arc<Pace>,
}

impl WriteFile for PacedFile {
    fn write_at(&self, mut offset: u64, bytes: &[u8]) -> Result<()> {
        for piece in bytes.chunks(self.pace.piece_bytes) {
            self.pace.wait_to_write(piece.len());
            self.file.write_at(offset, piece)?;
            offset += piece.len() as u64;
        }
        Ok(())
    }

    fn write_parts_at(&self, mut offset: u64, parts: &[IoSlice<'_>]) -> Result<()> {
        for part in parts {
            self.write_at(offset, part)?;
            offset += part.len() as u64;
        }
        Ok(())
    }

    fn reserve(&self, offset: u64, length: u64) {
        self.file.reserve(offset, length);
    }

    fn truncate(&self, length: u64) -> Result<()> {
        self.file.truncate(length)
    }

    fn sync(&self) -> Result<()> {
        self.file.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lsm::testing::MemoryFile;

    fn schedule(bytes_per_second: u64) -> Schedule {
        Schedule { bytes_per_second, taken_until: Duration::ZERO, is_lifted: false }
    }

    #[test]
    fn writes_follow_one_another_at_the_rate() {
        let mut schedule = schedule(1000);
        let millis = Duration::from_millis;
        // Three at once: each waits for those before it.
        assert_eq!(schedule.reserve(millis(5), 100), millis(5));
        assert_eq!(schedule.reserve(millis(5), 50), millis(105));
        assert_eq!(schedule.reserve(millis(6), 1), millis(155));
        // After a rest nothing is saved up.
        assert_eq!(schedule.reserve(millis(10_000), 500), millis(10_000));
        assert_eq!(schedule.reserve(millis(10_000), 500), millis(10_500));
    }

    #[test]
    fn in_no_stretch_of_time_more_is_written_than_the_rate_and_one_piece() {
        let mut schedule = schedule(10_000);
        let mut begun: Vec<(Duration, usize)> = Vec::new();
        for at in 0..200u64 {
            let now = Duration::from_millis(at * at % 977 + at * 3);
            let bytes = usize::try_from(at * 37 % 300).unwrap();
            begun.push((schedule.reserve(now, bytes), bytes));
        }
        begun.sort();
        for (from, first) in begun.iter().enumerate() {
            let mut sum = 0;
            for (begin, bytes) in &begun[from..] {
                let allowed = (*begin - first.0).as_micros() / 100 + 1;
                assert!(sum as u128 <= allowed, "{sum} bytes in {:?}", *begin - first.0);
                sum += bytes;
            }
        }
    }

    #[test]
    fn what_is_written_arrives_and_lifting_ends_all_waiting() {
        let file = MemoryFile::new();
        // A byte a second: without an end to the limit this would take days.
        let pace = Pace::new(1).unwrap();
        let paced = Pace::apply(Some(&pace), Arc::clone(&file) as Arc<dyn WriteFile>);
        let bytes: Vec<u8> = (0..100_000u32).map(|at| at.to_le_bytes()[0]).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| paced.write_at(3, &bytes).unwrap());
            pace.lift();
        });
        paced.write_parts_at(0, &[IoSlice::new(b"a"), IoSlice::new(b"bc")]).unwrap();
        assert_eq!(&file.bytes()[..3], b"abc");
        assert!(file.bytes()[3..] == bytes);
        // Pieces of 4 KiB.
        assert_eq!(file.calls().write_count, 25 + 2);
        assert!(Pace::new(0).is_none());
    }
}
