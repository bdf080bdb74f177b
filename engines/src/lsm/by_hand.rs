//! What users do with compactions: ask for them, hold them back, and go on after a full disk.

use std::sync::Arc;

use super::background::Pause;
use super::core::Core;
use super::picker::{self, Choice};
use super::store::Lsm;
use crate::{KeyRange, Result};

impl Lsm {
    /// Merges what tables hold of `range`, so that no overwritten or deleted entry of it remains,
    /// but for those that snapshots see. Rewrites whole tables, so more than the range as a rule:
    /// above all level 0, if it holds keys of the range. The active memtable is written first.
    ///
    /// Returns when that is done; other compactions may be due then, as always.
    ///
    /// # Errors
    /// [`Error::Poisoned`](crate::Error::Poisoned) and
    /// [`Error::Suspended`](crate::Error::Suspended), after what went wrong here or before.
    pub fn compact_range(&self, range: KeyRange<'_>) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        self.flush()?;
        if range == KeyRange::all() {
            return self.core.compact_all();
        }
        self.core.compact_range(range)
    }

    /// Lets no compaction start by itself until the guard is dropped, and waits for those that
    /// run. What somebody asks for ([`compact_range`](Self::compact_range),
    /// [`Engine::compact`](crate::Engine::compact)) still runs, and memtables are still flushed.
    /// Level 0 grows meanwhile, past the bounds at which writes are slowed down or stopped at
    /// other times, and reads get slower with it.
    ///
    /// # Errors
    /// As [`compact_range`](Self::compact_range).
    pub fn pause_compactions(&self) -> Result<CompactionPause<'_>> {
        self.core.background.pause(&self.core).map(|pause| CompactionPause { _pause: pause })
    }

    /// Goes on writing after a full disk, once there is room again. Until then every write is
    /// refused with [`Error::Suspended`](crate::Error::Suspended); reading goes on. Nothing that
    /// was acknowledged is lost. A write that failed may or may not be there, as after any error.
    ///
    /// Returns when all that waited to be flushed is in tables. Does nothing when nothing is
    /// wrong.
    ///
    /// # Errors
    /// [`Error::Suspended`](crate::Error::Suspended) or an I/O error if there is still no room;
    /// [`Error::Poisoned`](crate::Error::Poisoned) if something else went wrong too: then only
    /// reopening helps.
    pub fn resume(&self) -> Result<()> {
        self.core.resume()
    }
}

/// While this lives, no compaction starts by itself; see [`Lsm::pause_compactions`].
pub struct CompactionPause<'a> {
    _pause: Pause<'a>,
}

impl std::fmt::Debug for CompactionPause<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompactionPause").finish_non_exhaustive()
    }
}

impl Core {
    /// Plans and carries out a full compaction of what is in tables.
    pub(super) fn compact_all(&self) -> Result<()> {
        let _exclusive = self.background.exclusive(self)?;
        let plan = {
            let version = Arc::clone(&self.view.load().version);
            picker::plan_full_compaction(&version, &self.home.options)
        };
        self.carry_out_all(plan)
    }

    /// Plans and carries out a compaction of what tables hold of `range`.
    fn compact_range(&self, range: KeyRange<'_>) -> Result<()> {
        let _exclusive = self.background.exclusive(self)?;
        let version = || Arc::clone(&self.view.load().version);
        let level0 = picker::plan_level0(&version(), range);
        self.carry_out_all(level0)?;
        let below = picker::plan_below_level0(&version(), range);
        self.carry_out_all(below)
    }

    fn carry_out_all(&self, plan: impl IntoIterator<Item = Choice>) -> Result<()> {
        let thread_count = self.home.options.background_threads;
        let lift_count = self.poison.lift_count();
        plan.into_iter()
            .try_for_each(|choice| self.carry_out(choice, thread_count))
            .map_err(|error| self.poison.set_by_work_since(lift_count, error))
            .inspect_err(|_| self.background.changed())
    }

    /// Puts a new log and a new manifest in place of those that could not be written to the end,
    /// and lets writing and background work go on.
    fn resume(&self) -> Result<()> {
        // Writers wait until what the abandoned log does not hold is in tables.
        let mut log = self.lock_writers();
        if self.poison.check().is_ok() {
            return Ok(());
        }
        self.poison.check_lasting()?;
        self.replace_broken_manifest()?;
        self.poison.lift()?;
        let resumed = self
            .replace_broken_log(&mut log)
            .and_then(|()| self.install_flushed())
            .map_err(|error| self.poisoned(error));
        self.background.changed();
        resumed?;
        self.background.wait_for_flushes(self)
    }
}
