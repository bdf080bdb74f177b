//! What the adapters have in common.
#![cfg_attr(not(feature = "peers"), allow(dead_code, reason = "each adapter uses a part of it"))]

use std::fmt::Display;
use std::fs::{self, File};
use std::ops::Bound;
use std::path::Path;

use crate::{Batch, Error, KeyRange, OpenOptions, Operation, Result};

/// For engines that are there once they are built in.
pub(super) fn built_in() -> Result<()> {
    Ok(())
}

/// What an adapter does before its engine sees the directory: creates it, or refuses as the
/// options say.
pub(super) fn prepare(
    engine: &'static str,
    directory: &Path,
    options: &OpenOptions,
    recognizes: fn(&Path) -> bool,
) -> Result<()> {
    if !options.create && !recognizes(directory) {
        return Err(Error::NotADatabase {
            directory: directory.to_path_buf(),
            problem: format!("there is no database of {engine}, and none was to be created"),
        });
    }
    fs::create_dir_all(directory).map_err(Error::io("create directory", directory))
}

/// Turns a peer's error into ours, on one line.
pub(super) fn fail<E: Display>(engine: &'static str) -> impl Fn(E) -> Error {
    move |error| Error::Peer { engine, message: one_line(&error.to_string()) }
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn locked(directory: &Path, holder: impl Display) -> Error {
    Error::Locked { directory: directory.to_path_buf(), holder: one_line(&holder.to_string()) }
}

/// What an engine with limits on its keys can hold. Beyond them nothing can be stored, so a get or
/// a delete there finds nothing, and a put is refused.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyLimit {
    pub(super) engine: &'static str,
    pub(super) longest: usize,
}

impl KeyLimit {
    pub(super) fn holds(self, key: &[u8]) -> bool {
        !key.is_empty() && key.len() <= self.longest
    }

    /// Refuses the put of a key before the engine sees it.
    pub(super) fn check(self, key: &[u8]) -> Result<()> {
        if key.is_empty() {
            return Err(Error::InvalidArgument(format!("{} holds no empty key", self.engine)));
        }
        if key.len() > self.longest {
            return Err(Error::TooLarge {
                what: "key",
                size: key.len() as u64,
                limit: self.longest as u64,
            });
        }
        Ok(())
    }

    /// Refuses a batch with such a put in it.
    pub(super) fn check_batch(self, batch: &Batch) -> Result<()> {
        batch.iter().try_for_each(|operation| match operation {
            Operation::Put { key, .. } => self.check(key),
            Operation::Delete { .. } => Ok(()),
        })
    }

    /// The range with bounds that the engine could hold, over the same of its keys; `None` if
    /// none can lie in it.
    ///
    /// A key that fits stands before a bound that is too long if and only if it is not after the
    /// part of the bound that fits.
    pub(super) fn clip(self, range: KeyRange<'_>) -> Option<KeyRange<'_>> {
        let start = match range.start {
            Bound::Included(b"") | Bound::Excluded(b"") => Bound::Unbounded,
            Bound::Included(key) | Bound::Excluded(key) if key.len() > self.longest => {
                Bound::Excluded(&key[..self.longest])
            }
            start => start,
        };
        let end = match range.end {
            Bound::Included(b"") | Bound::Excluded(b"") => return None,
            Bound::Included(key) | Bound::Excluded(key) if key.len() > self.longest => {
                Bound::Included(&key[..self.longest])
            }
            end => end,
        };
        Some(KeyRange { start, end }).filter(|range| !range.is_empty())
    }
}

/// Makes a file's bytes survive power loss, through a handle of our own: the system syncs the
/// file, whoever wrote it. A file that is not there needs nothing.
pub(super) fn sync_file(path: &Path) -> Result<()> {
    // Some systems sync only through a handle that may write.
    match File::options().write(true).open(path) {
        Ok(file) => file.sync_all().map_err(Error::io("sync", path)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io("open", path)(error)),
    }
}

/// How a memory budget is split between a write buffer, of which two may be alive (one filling,
/// one being flushed), and a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemorySplit {
    pub(super) write_buffer_bytes: u64,
    pub(super) cache_bytes: u64,
}

impl MemorySplit {
    /// A quarter for each write buffer, but no more than the 64 MiB that RocksDB and fjall use by
    /// default and no less than 1 MiB; the rest, at least 1 MiB, is cache.
    pub(super) fn of(budget_bytes: u64) -> Self {
        let write_buffer_bytes = (budget_bytes / 4).clamp(1 << 20, 64 << 20);
        let cache_bytes = budget_bytes.saturating_sub(2 * write_buffer_bytes).max(1 << 20);
        Self { write_buffer_bytes, cache_bytes }
    }
}

/// A size for an interface that takes `usize`.
pub(super) fn clamp_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_never_exceeded_unless_it_is_too_small_to_work_with() {
        for (budget, write_buffer, cache) in [
            (256 << 20, 64 << 20, 128 << 20),
            (1 << 30, 64 << 20, (1 << 30) - (128 << 20)),
            (16 << 20, 4 << 20, 8 << 20),
            (0, 1 << 20, 1 << 20),
        ] {
            let split = MemorySplit::of(budget);
            let expected = MemorySplit { write_buffer_bytes: write_buffer, cache_bytes: cache };
            assert_eq!(split, expected, "budget {budget}");
        }
    }

    #[test]
    fn a_clipped_range_holds_the_same_of_the_keys_that_fit() {
        let limit = KeyLimit { engine: "test", longest: 2 };
        let letters = [b"".as_slice(), b"a", b"b"];
        let mut keys: Vec<Vec<u8>> = vec![Vec::new()];
        for length in 1..=3 {
            let shorter: Vec<_> =
                keys.iter().filter(|key| key.len() == length - 1).cloned().collect();
            for key in shorter {
                keys.extend(letters[1..].iter().map(|letter| [&key, *letter].concat()));
            }
        }
        let mut bounds = vec![Bound::Unbounded];
        for key in &keys {
            bounds.extend([Bound::Included(key.as_slice()), Bound::Excluded(key.as_slice())]);
        }
        for &start in &bounds {
            for &end in &bounds {
                let range = KeyRange { start, end };
                let clipped = limit.clip(range);
                for key in keys.iter().filter(|key| limit.holds(key)) {
                    let inside = clipped.is_some_and(|clipped| clipped.contains(key));
                    assert_eq!(inside, range.contains(key), "{key:?} in {range:?}");
                }
                for bound in clipped.iter().flat_map(|range| [range.start, range.end]) {
                    if let Bound::Included(key) | Bound::Excluded(key) = bound {
                        assert!(limit.holds(key), "{range:?} became {clipped:?}");
                    }
                }
            }
        }
    }
}
