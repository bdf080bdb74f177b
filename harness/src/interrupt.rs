//! Ctrl-C, and the system asking the program to end. What takes long and would leave something behind
//! asks here from time to time, and returns an error, so that everything is removed on the way out.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, Result};

static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on, a signal does not end this process, but is told by [`check`] and by what this returns.
///
/// # Errors
/// [`Error::Usage`] if the system does not allow it.
pub fn listen() -> Result<&'static AtomicBool> {
    match ctrlc::set_handler(|| ASKED.store(true, Ordering::Release)) {
        // A suite comes here for each of its comparisons.
        Ok(()) | Err(ctrlc::Error::MultipleHandlers) => Ok(&ASKED),
        Err(error) => Err(Error::Usage(format!("cannot listen for Ctrl-C: {error}"))),
    }
}

/// Tells whether to go on.
///
/// # Errors
/// [`Error::Interrupted`] if not.
pub fn check() -> Result<()> {
    if ASKED.load(Ordering::Acquire) { Err(Error::Interrupted) } else { Ok(()) }
}
