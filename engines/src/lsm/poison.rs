//! The failure that ends writing, for good or until there is room on the disk again.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::{Error, Result};

/// Why nothing is written any more.
///
/// What reached the disk after a failed write is mostly not known, and a second attempt may falsely
/// succeed: reopening finds out. A full disk is another matter: what could not be created or
/// written is known, and nothing that was acknowledged depends on it.
#[derive(Debug, Default)]
pub(crate) struct Poison {
    /// Whether `state` holds a failure. Changed under its lock.
    is_set: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failure: Option<Failure>,
    /// How often it was lifted.
    lift_count: u64,
}

#[derive(Debug)]
enum Failure {
    /// Writing may go on when there is room again.
    FullDisk(String),
    /// Only reopening helps.
    Lasting(String),
    /// There was never anything to write: the directory was opened for reading only.
    ReadOnly(PathBuf),
}

impl Failure {
    fn error(&self) -> Error {
        match self {
            Self::FullDisk(cause) => Error::Suspended { cause: cause.clone() },
            Self::Lasting(cause) => Error::Poisoned { cause: cause.clone() },
            Self::ReadOnly(directory) => {
                Error::ReadOnly { directory: directory.clone(), operation: "write" }
            }
        }
    }
}

impl Poison {
    /// Of an engine that only reads.
    pub(crate) fn read_only(directory: PathBuf) -> Self {
        Self {
            is_set: AtomicBool::new(true),
            state: Mutex::new(State {
                failure: Some(Failure::ReadOnly(directory)),
                ..State::default()
            }),
        }
    }

    /// # Errors
    /// After a failure: [`Error::Poisoned`], or [`Error::Suspended`] while the disk is full;
    /// [`Error::ReadOnly`].
    pub(crate) fn check(&self) -> Result<()> {
        if !self.is_set() {
            return Ok(());
        }
        self.state.lock().failure.as_ref().map_or(Ok(()), |failure| Err(failure.error()))
    }

    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// What happened, if anything did.
    pub(crate) fn cause(&self) -> Option<String> {
        match &self.state.lock().failure {
            Some(Failure::FullDisk(cause) | Failure::Lasting(cause)) => Some(cause.clone()),
            Some(Failure::ReadOnly(_)) | None => None,
        }
    }

    /// How often writing was let go on so far.
    pub(crate) fn lift_count(&self) -> u64 {
        self.state.lock().lift_count
    }

    /// As [`set`](Self::set), for work that began at this lift count: if the disk was full for it
    /// and writing was let go on since, it is told too late and changes nothing.
    pub(crate) fn set_by_work_since(&self, lift_count: u64, error: Error) -> Error {
        // Under the lock: it may be lifted at this very moment.
        let mut state = self.state.lock();
        if !error.is_full_disk() || lift_count == state.lift_count {
            self.remember(&mut state, &error);
        }
        error
    }

    /// Remembers the failure, unless there was one before that is at least as bad; hands it back.
    pub(crate) fn set(&self, error: Error) -> Error {
        self.remember(&mut self.state.lock(), &error);
        error
    }

    fn remember(&self, state: &mut State, error: &Error) {
        // A failure that follows from an earlier one is told by that one.
        let follows = matches!(
            error,
            Error::Poisoned { .. } | Error::Suspended { .. } | Error::ReadOnly { .. }
        );
        if !follows {
            let cause = error.to_string();
            state.failure = Some(match state.failure.take() {
                None if error.is_full_disk() => Failure::FullDisk(cause),
                Some(Failure::FullDisk(_)) if !error.is_full_disk() => Failure::Lasting(cause),
                None => Failure::Lasting(cause),
                Some(before) => before,
            });
            self.is_set.store(true, Ordering::Release);
        }
    }

    /// # Errors
    /// [`Error::Poisoned`] after a failure that room on the disk does not mend;
    /// [`Error::ReadOnly`].
    pub(crate) fn check_lasting(&self) -> Result<()> {
        self.state.lock().check_lasting()
    }

    /// Lets writing go on after a full disk.
    ///
    /// # Errors
    /// [`Error::Poisoned`] after any other failure.
    pub(crate) fn lift(&self) -> Result<()> {
        let mut state = self.state.lock();
        state.check_lasting()?;
        state.failure = None;
        state.lift_count += 1;
        self.is_set.store(false, Ordering::Release);
        Ok(())
    }
}

impl State {
    fn check_lasting(&self) -> Result<()> {
        match &self.failure {
            Some(failure @ (Failure::Lasting(_) | Failure::ReadOnly(_))) => Err(failure.error()),
            Some(Failure::FullDisk(_)) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, ErrorKind};

    use super::*;

    fn failed(action: &'static str, kind: ErrorKind) -> Error {
        Error::io(action, "file")(io::Error::from(kind))
    }

    #[test]
    fn a_full_disk_suspends_until_lifted_and_anything_worse_takes_its_place() {
        let poison = Poison::default();
        poison.check().unwrap();
        drop(poison.set(failed("write", ErrorKind::StorageFull)));
        assert!(matches!(poison.check(), Err(Error::Suspended { .. })));
        poison.lift().unwrap();
        poison.check().unwrap();
        drop(poison.set(failed("create", ErrorKind::QuotaExceeded)));
        drop(poison.set(failed("write", ErrorKind::PermissionDenied)));
        drop(poison.set(failed("write", ErrorKind::StorageFull)));
        assert!(matches!(poison.check(), Err(Error::Poisoned { .. })));
        assert!(matches!(poison.lift(), Err(Error::Poisoned { .. })));
        assert!(poison.cause().unwrap().contains("permission"), "{:?}", poison.cause());
    }

    #[test]
    fn what_is_told_too_late_changes_nothing_unless_it_is_worse() {
        let poison = Poison::default();
        let before = poison.lift_count();
        drop(poison.set(failed("write", ErrorKind::StorageFull)));
        poison.lift().unwrap();
        drop(poison.set_by_work_since(before, failed("write", ErrorKind::StorageFull)));
        poison.check().unwrap();
        let now = poison.lift_count();
        drop(poison.set_by_work_since(now, failed("write", ErrorKind::StorageFull)));
        assert!(matches!(poison.check(), Err(Error::Suspended { .. })));
        drop(poison.set_by_work_since(before, failed("read", ErrorKind::Other)));
        assert!(matches!(poison.check(), Err(Error::Poisoned { .. })));
    }

    #[test]
    fn a_sync_that_found_no_room_is_no_full_disk() {
        let poison = Poison::default();
        drop(poison.set(failed("sync", ErrorKind::StorageFull)));
        assert!(matches!(poison.lift(), Err(Error::Poisoned { .. })));
    }
}
