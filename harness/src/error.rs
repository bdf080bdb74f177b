//! What goes wrong before or around the runs. What goes wrong inside a run is part of its result.

use std::io;
use std::path::{Path, PathBuf};

/// What the harness's calls return.
pub type Result<T> = std::result::Result<T, Error>;

/// Why there is no result, or not a whole one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Something asked for makes no sense or cannot be had here.
    #[error("{0}")]
    Usage(String),

    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried: completes "cannot …".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },

    /// Ctrl-C, or the system asked the program to end.
    #[error("stopped")]
    Interrupted,

    /// An engine refused.
    #[error(transparent)]
    Engine(#[from] engines::Error),
}

impl Error {
    /// Turns an [`io::Error`] into [`Error::Io`]: `map_err(Error::io("read", path))`.
    pub fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            action,
            path: path.as_ref().to_path_buf(),
            source: without_path(source),
        }
    }
}

/// Errors of temporary files name a path that means nothing to anybody: keeps what the operating
/// system said.
fn without_path(error: io::Error) -> io::Error {
    let said = error
        .get_ref()
        .and_then(|wrapped| wrapped.source())
        .and_then(|source| source.downcast_ref::<io::Error>())
        .and_then(io::Error::raw_os_error);
    said.map_or(error, io::Error::from_raw_os_error)
}
