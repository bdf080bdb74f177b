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
    let text = error.get_ref().map(ToString::to_string);
    match text.as_deref().and_then(|text| text.split_once(" at path \"")) {
        Some((said, _)) => io::Error::new(error.kind(), said.to_owned()),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_files_are_not_named() {
        let directory = Path::new("/no/such/directory");
        let expected = std::fs::read_dir(directory).unwrap_err();
        let expected = format!("cannot write here: {expected}");
        let failed = |error: io::Error| Error::io("write", "here")(error).to_string();
        assert_eq!(failed(tempfile::tempfile_in(directory).unwrap_err()), expected);
        assert_eq!(failed(tempfile::NamedTempFile::new_in(directory).unwrap_err()), expected);
        assert_eq!(failed(tempfile::tempdir_in(directory).unwrap_err()), expected);
        assert_eq!(failed(std::fs::read(directory).unwrap_err()), expected);
    }
}
