//! A clock that tests set.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use engines::bitcask::Clock;

/// The wall clock, and how long it has run, in seconds.
#[derive(Debug)]
pub(crate) struct SetClock(Mutex<(u64, u64)>);

impl SetClock {
    pub(crate) fn at(unix_seconds: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new((unix_seconds, 0))))
    }

    /// Time goes on.
    pub(crate) fn run(&self, seconds: u64) {
        let mut time = self.0.lock().unwrap();
        *time = (time.0 + seconds, time.1 + seconds);
    }

    /// The wall clock is put to another time.
    pub(crate) fn set(&self, unix_seconds: u64) {
        self.0.lock().unwrap().0 = unix_seconds;
    }
}

impl Clock for SetClock {
    fn unix_seconds(&self) -> u64 {
        self.0.lock().unwrap().0
    }

    fn running(&self) -> Duration {
        Duration::from_secs(self.0.lock().unwrap().1)
    }
}
