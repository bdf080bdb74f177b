//! The first failure of a write, which ends all further writing.

use std::sync::OnceLock;

use crate::{Error, Result};

/// Set once, never taken back: what reached the disk after a failure is not known, and a second
/// attempt may falsely succeed. Reopening finds out.
#[derive(Debug, Default)]
pub(crate) struct Poison(OnceLock<String>);

impl Poison {
    /// # Errors
    /// [`Error::Poisoned`] after a failure.
    pub(crate) fn check(&self) -> Result<()> {
        match self.0.get() {
            None => Ok(()),
            Some(cause) => Err(Error::Poisoned { cause: cause.clone() }),
        }
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    /// Remembers the failure, unless there was one before; hands it back.
    pub(crate) fn set(&self, error: Error) -> Error {
        // A failure that follows from an earlier one is told by that one.
        if !matches!(error, Error::Poisoned { .. }) {
            let _ = self.0.set(error.to_string());
        }
        error
    }
}
