//! What time it is, and how far to believe it.
//!
//! Hiding a record because the clock says that it has expired does no harm: when the clock is put
//! right, the record is there again. Dropping it is for good. So there are two answers:
//!
//! - [`Time::now`] is what the wall clock says. Records are stamped with it, and hidden by it.
//! - [`Time::surely`] is the earliest of three, and what merges drop by:
//!   1. the wall clock now: put back, it drops less;
//!   2. the wall clock as it was at open, and the time that has run since: put forward later on, it
//!      drops nothing more;
//!   3. the newest record that was found at open, and the time that has run since: a clock that was
//!      wrong at open already is believed only as far as somebody has written by it before. So a
//!      directory that nobody wrote to for a month gives nothing back for what expired in that
//!      month, until it is opened again after somebody has written to it.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where a Bitcask has the time from. Tests give one of their own.
pub trait Clock: Debug + Send + Sync {
    /// The wall clock: seconds since 1970. It may be set forward and back.
    fn unix_seconds(&self) -> u64;

    /// How long something has been running that only ever runs on.
    fn running(&self) -> Duration;
}

/// The clocks of the operating system.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    started: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn unix_seconds(&self) -> u64 {
        // A clock before 1970 is wrong; nothing has expired then.
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
    }

    fn running(&self) -> Duration {
        self.started.elapsed()
    }
}

/// A record's timestamp: seconds since 1970, as the format wants them, 32 bits and unsigned.
pub(super) type Timestamp = u32;

/// See the module.
#[derive(Debug)]
pub(super) struct Time {
    clock: Arc<dyn Clock>,
    /// The earlier of the wall clock and the newest record, both as they were at open.
    surely_at_open: Timestamp,
    running_at_open: Duration,
}

impl Time {
    /// The time from now on; `newest` is the newest timestamp in the directory.
    pub(super) fn new(clock: Arc<dyn Clock>, newest: Option<Timestamp>) -> Self {
        let wall = timestamp(clock.unix_seconds());
        let surely_at_open = newest.map_or(wall, |newest| newest.min(wall));
        Self { surely_at_open, running_at_open: clock.running(), clock }
    }

    /// What the wall clock says.
    pub(super) fn now(&self) -> Timestamp {
        timestamp(self.clock.unix_seconds())
    }

    /// A time that is not later than the true one, unless the clock was wrong both at open and when
    /// the newest record was written.
    pub(super) fn surely(&self) -> Timestamp {
        let ran = self.clock.running().saturating_sub(self.running_at_open).as_secs();
        let surely = self.surely_at_open.saturating_add(timestamp(ran));
        surely.min(self.now())
    }
}

fn timestamp(seconds: u64) -> Timestamp {
    Timestamp::try_from(seconds).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    #[derive(Debug, Default)]
    struct Set(Mutex<(u64, u64)>);

    impl Clock for Set {
        fn unix_seconds(&self) -> u64 {
            self.0.lock().0
        }
        fn running(&self) -> Duration {
            Duration::from_secs(self.0.lock().1)
        }
    }

    fn open(wall: u64, newest: Option<Timestamp>) -> (Arc<Set>, Time) {
        let clock = Arc::new(Set(Mutex::new((wall, 70))));
        (clock.clone(), Time::new(clock, newest))
    }

    #[test]
    fn a_clock_that_runs_is_believed() {
        let (clock, time) = open(1_000, Some(1_000));
        *clock.0.lock() = (1_500, 570);
        assert_eq!((time.now(), time.surely()), (1_500, 1_500));
    }

    #[test]
    fn a_jump_forward_is_not_believed_and_one_back_is() {
        let (clock, time) = open(1_000, Some(1_000));
        *clock.0.lock() = (9_000, 80);
        assert_eq!((time.now(), time.surely()), (9_000, 1_010));
        *clock.0.lock() = (500, 80);
        assert_eq!((time.now(), time.surely()), (500, 500));
    }

    #[test]
    fn a_clock_that_is_ahead_of_every_record_at_open_is_believed_no_further_than_they_go() {
        let (clock, time) = open(9_000, Some(1_000));
        assert_eq!((time.now(), time.surely()), (9_000, 1_000));
        *clock.0.lock() = (9_100, 170);
        assert_eq!(time.surely(), 1_100);
        // Records from the future make nothing later than the clock.
        assert_eq!(open(1_000, Some(9_000)).1.surely(), 1_000);
        assert_eq!(open(1_000, None).1.surely(), 1_000);
    }

    #[test]
    fn times_past_the_format_are_the_last_that_it_has() {
        let (clock, time) = open(u64::MAX, Some(u32::MAX));
        *clock.0.lock() = (u64::MAX, u64::MAX);
        assert_eq!((time.now(), time.surely()), (u32::MAX, u32::MAX));
    }
}
