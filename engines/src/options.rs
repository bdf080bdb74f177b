//! What is chosen at open and means the same for every engine.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// The options that every engine of the lab understands. Each engine maps them to its own
/// settings and tells the outcome in its [`Description`](crate::Description).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenOptions {
    /// What an acknowledged write survives. Default: [`Durability::Process`].
    pub durability: Durability,
    /// One budget, in bytes, for everything the engine sizes itself: write buffers and caches.
    /// Default: 256 MiB. Memory that grows with the number of keys comes on top and is measured.
    pub memory_bytes: u64,
    /// How blocks are compressed, by engines that compress. Default: Snappy, as LevelDB.
    pub compression: Compression,
    /// Whether a missing database is created. Default: yes.
    pub create: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            memory_bytes: 256 << 20,
            compression: Compression::default(),
            create: true,
        }
    }
}

impl OpenOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`durability`](Self::durability).
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets [`memory_bytes`](Self::memory_bytes).
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Sets [`compression`](Self::compression).
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Sets [`create`](Self::create).
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }
}

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Durability {
    /// Nothing is promised until `sync` or `close`: writes may wait in the process.
    Buffered,
    /// The death of the process: the operating system has the bytes before the call returns.
    #[default]
    Process,
    /// Power loss: fsync or fdatasync before the call returns.
    Power,
}

impl Durability {
    /// Every level, the weakest first.
    pub const ALL: [Self; 3] = [Self::Buffered, Self::Process, Self::Power];
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Buffered => "buffered",
            Self::Process => "process",
            Self::Power => "power",
        })
    }
}

impl FromStr for Durability {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|level| level.to_string() == text).ok_or_else(|| {
            Error::InvalidArgument(format!(
                "no durability level is called {text:?}; there are: buffered, process, power"
            ))
        })
    }
}

/// How blocks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Compression {
    /// Not at all.
    None,
    /// Snappy: fast, what LevelDB and RocksDB use by default.
    #[default]
    Snappy,
    /// Zstandard at a level from 1 to 22: smaller and slower. Read by LevelDB's head only.
    Zstd(i32),
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::Snappy => f.pad("snappy"),
            Self::Zstd(level) => f.pad(&format!("zstd:{level}")),
        }
    }
}

impl FromStr for Compression {
    type Err = Error;

    /// Reads `none`, `snappy`, `zstd` (level 1) or `zstd:LEVEL`.
    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "none" => Ok(Self::None),
            "snappy" => Ok(Self::Snappy),
            "zstd" => Ok(Self::Zstd(1)),
            _ => text
                .strip_prefix("zstd:")
                .and_then(|level| level.parse().ok())
                .filter(|level| (1..=22).contains(level))
                .map(Self::Zstd)
                .ok_or_else(|| {
                    Error::InvalidArgument(format!(
                        "no compression is called {text:?}; there are: none, snappy, zstd, \
                         zstd:1 to zstd:22"
                    ))
                }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        for level in Durability::ALL {
            assert_eq!(level.to_string().parse::<Durability>().unwrap(), level);
        }
        for compression in [Compression::None, Compression::Snappy, Compression::Zstd(22)] {
            assert_eq!(compression.to_string().parse::<Compression>().unwrap(), compression);
        }
    }

    #[test]
    fn a_wrong_word_is_answered_with_the_right_ones() {
        let error = "fsync".parse::<Durability>().unwrap_err().to_string();
        assert!(error.contains("\"fsync\"") && error.contains("power"), "{error}");
        for wrong in ["zstd:0", "zstd:23", "zstd:", "lz4"] {
            let error = wrong.parse::<Compression>().unwrap_err().to_string();
            assert!(error.contains(wrong) && error.contains("snappy"), "{error}");
        }
    }
}
