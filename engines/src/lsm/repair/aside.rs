//! Keeping what could not be read, or is not needed, in `lost/`, where LevelDB's repair puts it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::fs::{Access, FileSystem, create_directory_durably};
use crate::lsm::copy::link_or_copy;
use crate::lsm::core::Home;
use crate::lsm::filename::FileKind;

const CHUNK_BYTES: usize = 1 << 20;

/// The files to set aside.
#[derive(Debug, Clone, Default)]
pub(super) struct Aside(BTreeSet<String>);

impl Aside {
    pub(super) fn add(&mut self, kind: FileKind) {
        self.0.insert(kind.to_string());
    }

    /// Gives each of them a second name in `lost/`, which survives power loss. Returns those names.
    pub(super) fn keep(&self, home: &Home) -> Result<Vec<PathBuf>> {
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        let lost = home.directory.join("lost");
        create_directory_durably(&*home.fs, &lost)?;
        let mut kept = Vec::new();
        for name in &self.0 {
            kept.push(keep(&*home.fs, &home.directory.join(name), &lost, name)?);
        }
        home.fs.sync_directory(&lost)?;
        Ok(kept)
    }
}

/// The name that a file gets in `lost`: its own, or one that is free. A repair that was cut short
/// may have set it aside already.
fn keep(fs: &dyn FileSystem, path: &Path, lost: &Path, name: &str) -> Result<PathBuf> {
    for attempt in 0u64.. {
        let target = match attempt {
            0 => lost.join(name),
            _ => lost.join(format!("{name}.{attempt}")),
        };
        if fs.entry(&target)?.is_none() {
            link_or_copy(fs, path, &target)?;
            return Ok(target);
        }
        if is_same(fs, path, &target)? {
            return Ok(target);
        }
    }
    Ok(path.to_path_buf())
}

/// Whether two files hold the same bytes.
fn is_same(fs: &dyn FileSystem, one: &Path, other: &Path) -> Result<bool> {
    let (one, other) = (fs.open(one, Access::Positioned)?, fs.open(other, Access::Positioned)?);
    let length = one.length()?;
    if length != other.length()? {
        return Ok(false);
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < length {
        let chunk = usize::try_from(length - at).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
        if one.read_at(at, chunk, &mut left)? != other.read_at(at, chunk, &mut right)? {
            return Ok(false);
        }
        at += chunk as u64;
    }
    Ok(true)
}
