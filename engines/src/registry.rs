//! Every engine by name.

use std::path::Path;

use crate::{Durability, Engine, Error, OpenOptions, Result, bitcask, limits, lsm, peers};

/// An engine that the registry knows, present or not.
#[derive(Debug)]
pub struct Registration {
    /// The name: what `--engines` takes.
    pub name: &'static str,
    /// Ours, a peer, or a reference point.
    pub kind: Kind,
    /// One line for people.
    pub summary: &'static str,
    /// Whether it can be opened in this build on this machine; else
    /// [`Error::Unavailable`] with the reason and how to get it.
    pub available: fn() -> Result<()>,
    /// Whether it keeps data in its directory: [`Capabilities::persistent`](crate::Capabilities).
    pub persistent: bool,
    /// What the engine does at a durability level; `None` if it has no such level.
    pub durability: fn(Durability) -> Option<&'static str>,
    /// The longest key that it holds, in bytes; `None` if no limit of its own is known.
    pub most_key_bytes: Option<usize>,
    /// Whether a directory, which exists, holds data of this engine.
    pub recognizes: fn(&Path) -> bool,
    /// Opens or creates a database in a directory.
    pub open: fn(&Path, &OpenOptions) -> Result<Box<dyn Engine>>,
}

/// Where an engine comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One of our two.
    Own,
    /// An engine that people would pick instead.
    Peer,
    /// What the machine allows: not a store of its own.
    Reference,
}

impl Registration {
    /// Opens or creates a database, after checking that the engine is here, has the level, and
    /// that the directory does not hold the data of another engine.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Unsupported`], [`Error::ForeignDirectory`], and what the
    /// engine itself reports.
    pub fn open(&self, directory: &Path, options: &OpenOptions) -> Result<Box<dyn Engine>> {
        (self.available)()?;
        if (self.durability)(options.durability).is_none() {
            return Err(Error::Unsupported {
                engine: self.name,
                operation: format!("durability level {}", options.durability),
            });
        }
        self.refuse_foreign(directory)?;
        (self.open)(directory, options)
    }

    /// Refuses a directory that holds the data of another engine and none of this one.
    ///
    /// # Errors
    /// [`Error::ForeignDirectory`].
    pub(crate) fn refuse_foreign(&self, directory: &Path) -> Result<()> {
        match identify(directory) {
            Some(owner) if !self.has_format_of(owner) && !(self.recognizes)(directory) => {
                Err(Error::ForeignDirectory {
                    directory: directory.to_path_buf(),
                    wanted: self.name,
                    found: owner.name.to_owned(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Whether a directory of `other` is one of this engine too, even if so much is missing that it
    /// cannot be told from its files.
    fn has_format_of(&self, other: &Self) -> bool {
        const LEVELDBS: [&str; 2] = [lsm::REGISTRATION.name, "leveldb"];
        self.name == other.name || (LEVELDBS.contains(&self.name) && LEVELDBS.contains(&other.name))
    }
}

/// Every engine this build knows, ours first, reference points last.
pub fn all() -> &'static [Registration] {
    &[
        bitcask::REGISTRATION,
        lsm::REGISTRATION,
        peers::SLED,
        peers::FJALL,
        peers::REDB,
        peers::LMDB,
        peers::SQLITE,
        peers::LEVELDB,
        peers::ROCKSDB,
        limits::NULL,
        limits::MEMORY,
        limits::RAW_APPEND,
    ]
}

/// The engine called `name`.
///
/// # Errors
/// [`Error::UnknownEngine`], with the names there are.
pub fn find(name: &str) -> Result<&'static Registration> {
    all().iter().find(|engine| engine.name == name).ok_or_else(|| Error::UnknownEngine {
        name: name.to_owned(),
        known: all().iter().map(|engine| engine.name).collect::<Vec<_>>().join(", "),
    })
}

/// The first engine whose data `directory` holds.
pub fn identify(directory: &Path) -> Option<&'static Registration> {
    if !directory.is_dir() {
        return None;
    }
    all().iter().find(|engine| (engine.recognizes)(directory))
}
