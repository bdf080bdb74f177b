//! Where the system keeps the two libraries.

use std::env;
use std::sync::OnceLock;

use super::api::Api;
use crate::{Error, Result};

/// One of the two engines that share a C interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    LevelDb,
    RocksDb,
}

impl Family {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::LevelDb => "leveldb",
            Self::RocksDb => "rocksdb",
        }
    }

    /// The environment variable whose path is loaded instead of the system's library.
    fn variable(self) -> &'static str {
        match self {
            Self::LevelDb => "ENGINELAB_LEVELDB",
            Self::RocksDb => "ENGINELAB_ROCKSDB",
        }
    }

    /// The library, loaded once and never unloaded: its background threads may outlive a database.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub(super) fn library(self) -> Result<&'static Library> {
        static LEVELDB: OnceLock<std::result::Result<Library, String>> = OnceLock::new();
        static ROCKSDB: OnceLock<std::result::Result<Library, String>> = OnceLock::new();
        let place = match self {
            Self::LevelDb => &LEVELDB,
            Self::RocksDb => &ROCKSDB,
        };
        place.get_or_init(|| self.load()).as_ref().map_err(|reason| Error::Unavailable {
            engine: self.name(),
            reason: reason.clone(),
            remedy: format!(
                "install it (Debian, Ubuntu: apt-get install lib{0}-dev; Fedora: dnf install {0}), \
                 or set {1} to the path of a lib{0}",
                self.name(),
                self.variable()
            ),
        })
    }

    fn load(self) -> std::result::Result<Library, String> {
        if let Some(path) = env::var_os(self.variable()) {
            let shown = path.to_string_lossy().into_owned();
            // The one that was asked for, or none.
            return match Api::load(&path, self.name()) {
                Ok(api) => Ok(Library { file: shown, api }),
                Err(reason) => Err(format!("{} is {shown}: {reason}", self.variable())),
            };
        }
        let mut last = "no shared library of it is installed".to_owned();
        for file in self.file_names() {
            match Api::load(file.as_ref(), self.name()) {
                Ok(api) => return Ok(Library { file, api }),
                // A library that is there, but not what is needed, is worth telling about.
                Err(reason) if reason.contains("symbol") => last = format!("{file}: {reason}"),
                Err(_) => {}
            }
        }
        Err(last)
    }

    /// The names to try, the newest version first.
    fn file_names(self) -> Vec<String> {
        let name = self.name();
        if cfg!(target_os = "windows") {
            return vec![format!("{name}-shared.dll"), format!("{name}.dll")];
        }
        if cfg!(target_os = "macos") {
            return ["", "/opt/homebrew/lib/", "/usr/local/lib/"]
                .map(|folder| format!("{folder}lib{name}.dylib"))
                .to_vec();
        }
        match self {
            // Debian's package carries a letter of its own.
            Self::LevelDb => {
                ["libleveldb.so", "libleveldb.so.1", "libleveldb.so.1d"].map(str::to_owned).to_vec()
            }
            // The link without a version comes with the development package.
            Self::RocksDb => std::iter::once("librocksdb.so".to_owned())
                .chain((7..=13).rev().flat_map(|major| {
                    (0..=12).rev().map(move |minor| format!("librocksdb.so.{major}.{minor}"))
                }))
                .collect(),
        }
    }
}

/// A loaded library.
pub(super) struct Library {
    /// What was loaded: a path, or a name that the system's loader resolved.
    pub(super) file: String,
    pub(super) api: Api,
}
