//! The one error type of the crate.

use std::io;
use std::path::{Path, PathBuf};

/// What every call of the crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
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

    /// Bytes on disk are not what the format says. Nothing was changed.
    #[error("{} is corrupt at byte {offset}: {problem}", file.display())]
    Corruption {
        /// The file.
        file: PathBuf,
        /// Where in the file.
        offset: u64,
        /// What is wrong there.
        problem: String,
    },

    /// The directory holds no such database and creating one was not allowed, or its key file is
    /// missing while data is there.
    #[error("{}: {problem}", directory.display())]
    NotADatabase {
        /// The directory.
        directory: PathBuf,
        /// What was expected and what was found.
        problem: String,
    },

    /// The directory holds the data of another engine.
    #[error(
        "{} holds data of {found}, not of {wanted}: give {wanted} a directory of its own",
        directory.display()
    )]
    ForeignDirectory {
        /// The directory.
        directory: PathBuf,
        /// The engine that was asked for.
        wanted: &'static str,
        /// The engine whose files are there.
        found: String,
    },

    /// The database was made with another key order.
    #[error(
        "{}: made with comparator {found:?}, opened with {wanted:?}; \
         reading it in another order would lose records",
        directory.display()
    )]
    ComparatorMismatch {
        /// The directory.
        directory: PathBuf,
        /// The comparator named in the manifest.
        found: String,
        /// The comparator of the options.
        wanted: String,
    },

    /// Another process, or this one, has the directory open.
    #[error("{} is in use: {holder}", directory.display())]
    Locked {
        /// The directory.
        directory: PathBuf,
        /// Who holds it, as far as can be told.
        holder: String,
    },

    /// The database was opened for reading only. Nothing was written.
    #[error("cannot {operation}: {} is open for reading only", directory.display())]
    ReadOnly {
        /// The directory.
        directory: PathBuf,
        /// What was refused: completes "cannot …".
        operation: &'static str,
    },

    /// An earlier write failed; nothing is acknowledged any more. Reopen to go on with what was
    /// acknowledged before.
    #[error("an earlier write failed ({cause}); close and reopen to go on")]
    Poisoned {
        /// The first failure.
        cause: String,
    },

    /// The disk is full. Reading goes on, and what was acknowledged is safe; writing goes on when
    /// there is room and the engine was told to resume.
    #[error("writing is suspended ({cause}); make room and resume, or reopen")]
    Suspended {
        /// What could not be written.
        cause: String,
    },

    /// A key, value or batch is larger than the format or the engine holds. Nothing was written.
    #[error("{what} of {size} bytes: the limit is {limit}")]
    TooLarge {
        /// Which: "key", "value", "batch".
        what: &'static str,
        /// Its size in bytes.
        size: u64,
        /// The largest size that is accepted, in bytes.
        limit: u64,
    },

    /// A key, value or option that the engine cannot take. Nothing was written.
    #[error("{0}")]
    InvalidArgument(String),

    /// The engine has no such operation or level; see its capabilities.
    #[error("{engine} has no {operation}")]
    Unsupported {
        /// The engine.
        engine: &'static str,
        /// What was asked for.
        operation: String,
    },

    /// No engine of that name.
    #[error("no engine is called {name:?}; there are: {known}")]
    UnknownEngine {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },

    /// The engine is known, but not present in this build or on this machine.
    #[error("{engine} is not available: {reason}; {remedy}")]
    Unavailable {
        /// The engine.
        engine: &'static str,
        /// Why.
        reason: String,
        /// How to get it.
        remedy: String,
    },

    /// A peer reported an error of its own.
    #[error("{engine}: {message}")]
    Peer {
        /// The engine.
        engine: &'static str,
        /// What it said.
        message: String,
    },
}

impl Error {
    /// Turns an [`io::Error`] into [`Error::Io`]: `map_err(Error::io("read", path))`.
    pub fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.as_ref().to_path_buf(), source }
    }

    /// An [`Error::Corruption`].
    pub fn corruption(file: impl AsRef<Path>, offset: u64, problem: impl Into<String>) -> Self {
        Self::Corruption { file: file.as_ref().to_path_buf(), offset, problem: problem.into() }
    }

    /// Whether the system had no room for what was to be created or written. A sync that says so
    /// is another matter: what it lost is not known.
    pub(crate) fn is_full_disk(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self, Self::Io { action: "create" | "write" | "link", source, .. }
            if matches!(source.kind(), QuotaExceeded | StorageFull))
    }

    /// Whether bytes on disk are damaged, as against a refusal by the system or a wrong call.
    pub fn is_corruption(&self) -> bool {
        matches!(self, Self::Corruption { .. })
    }
}
