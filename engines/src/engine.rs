//! The contract that every engine of the lab keeps, ours and the peers.

use std::ops::{Bound, ControlFlow};

use crate::{Batch, Result, Stats};

/// A key-value store in one directory, shared by threads through `&self`.
///
/// # The contract
/// - A call that returned `Ok` is visible to every later call of every thread, and has reached the
///   [`Durability`](crate::Durability) level that was chosen at open.
/// - [`write`](Engine::write) applies its batch as a whole where
///   [`Capabilities::atomic_batch`] says so; a crash leaves all of it or nothing.
/// - Keys and values are arbitrary bytes. An engine that cannot hold some of them (an empty key,
///   a key over its limit) refuses with a typed error before anything is written.
/// - What an engine cannot do is told by [`capabilities`](Engine::capabilities); calling it all
///   the same returns [`Error::Unsupported`](crate::Error::Unsupported). Nothing panics.
/// - After an I/O error on the write path an engine may refuse all further writes with
///   [`Error::Poisoned`](crate::Error::Poisoned): what was acknowledged before is found by
///   reopening.
pub trait Engine: Send + Sync {
    /// What runs here, at which settings: recorded beside every result.
    fn description(&self) -> Description;

    /// What this engine can do.
    fn capabilities(&self) -> Capabilities;

    /// Stores `value` under `key`, replacing what was there.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Removes `key`; a key that is not there is not an error.
    fn delete(&self, key: &[u8]) -> Result<()>;

    /// Lends the value under `key` to `read`, without a copy that the engine did not need.
    /// Returns whether the key was there; `read` is called at most once.
    ///
    /// `read` must not call the engine: it may run under a lock or inside a transaction.
    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// The value under `key`, copied.
    fn get_vec(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut value = None;
        self.get(key, &mut |bytes| value = Some(bytes.to_vec()))?;
        Ok(value)
    }

    /// Applies the operations of `batch` in order.
    fn write(&self, batch: &Batch) -> Result<()>;

    /// Visits the live records with keys in `range`, in key order (bytewise) or its reverse, as of
    /// one moment at the start of the scan, until `visit` breaks.
    ///
    /// `visit` must not call the engine: it may run under a lock or inside a transaction.
    fn scan(
        &self,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<()>;

    /// Visits every live record once, in whatever order is cheapest, until `visit` breaks.
    fn fold(&self, visit: &mut Visitor<'_>) -> Result<()> {
        self.scan(KeyRange::all(), Direction::Forward, visit)
    }

    /// Makes everything acknowledged so far survive power loss.
    fn sync(&self) -> Result<()>;

    /// Returns when no background work is left (flushes, compactions, merges, vacuum).
    fn quiesce(&self) -> Result<()>;

    /// Reclaims what can be reclaimed, then [quiesces](Engine::quiesce).
    fn compact(&self) -> Result<()>;

    /// Figures of the moment.
    fn stats(&self) -> Result<Stats>;

    /// Ends the engine in order: everything acknowledged reaches the operating system, background
    /// work stops, the lock is released. An error says that something acknowledged may be lost.
    ///
    /// Dropping an engine does the same, and can report nothing.
    fn close(self: Box<Self>) -> Result<()>;
}

/// What scans and folds call for each record: key, value, and whether to go on.
pub type Visitor<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// What an engine can do, as data: the harness prints `n/a` instead of calling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// [`Engine::scan`] works. Without it only [`Engine::fold`] does.
    pub ordered_scan: bool,
    /// Order is not how the engine stores its data: each scan pays a sort of the keys in memory.
    pub scan_sorts: bool,
    /// A batch is applied as a whole or not at all, across a crash too.
    pub atomic_batch: bool,
    /// A scan sees one moment, whatever is written meanwhile.
    pub snapshot_scan: bool,
    /// Data outlives the process: false for the reference points that store nothing.
    pub persistent: bool,
}

/// What runs, at which settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The engine's name in the registry.
    pub engine: &'static str,
    /// The version of the engine's code.
    pub version: String,
    /// What the engine does to reach the chosen durability level.
    pub durability: String,
    /// The effective settings, name and value, in the engine's own words.
    pub settings: Vec<(&'static str, String)>,
}

/// The way a scan runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Backward,
}

/// A range of keys in bytewise order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyRange<'a> {
    /// Where the range starts, at its smallest key.
    pub start: Bound<&'a [u8]>,
    /// Where the range ends, at its largest key.
    pub end: Bound<&'a [u8]>,
}

impl<'a> KeyRange<'a> {
    /// Every key.
    pub fn all() -> Self {
        Self { start: Bound::Unbounded, end: Bound::Unbounded }
    }

    /// `start` and every key after it.
    pub fn from(start: &'a [u8]) -> Self {
        Self { start: Bound::Included(start), end: Bound::Unbounded }
    }

    /// From `start` up to, but without, `end`.
    pub fn between(start: &'a [u8], end: &'a [u8]) -> Self {
        Self { start: Bound::Included(start), end: Bound::Excluded(end) }
    }

    /// Whether no key can lie in the range, as far as its bounds tell.
    pub fn is_empty(&self) -> bool {
        match (self.start, self.end) {
            (Bound::Included(start), Bound::Included(end)) => start > end,
            (
                Bound::Included(start) | Bound::Excluded(start),
                Bound::Included(end) | Bound::Excluded(end),
            ) => start >= end,
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        }
    }

    /// Whether `key` lies in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        !self.is_before(key) && !self.is_after(key)
    }

    /// Whether `key` lies before the range's start.
    pub fn is_before(&self, key: &[u8]) -> bool {
        match self.start {
            Bound::Included(start) => key < start,
            Bound::Excluded(start) => key <= start,
            Bound::Unbounded => false,
        }
    }

    /// Whether `key` lies past the range's end.
    pub fn is_after(&self, key: &[u8]) -> bool {
        match self.end {
            Bound::Included(end) => key > end,
            Bound::Excluded(end) => key >= end,
            Bound::Unbounded => false,
        }
    }
}
