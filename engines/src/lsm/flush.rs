//! Memtables to level 0.
//!
//! Several memtables are flushed at the same time; their tables enter the table set in the order
//! in which they were frozen, because what is missing in between lies in logs that are still
//! needed. So whoever finishes a flush installs all tables that are ready up to the first that is
//! not, with one manifest record.
//!
//! Whoever installs them also frees the memtables: many thousand entries, milliseconds for a reader
//! that happened to be the last to look at them.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::core::{Core, Home};
use super::filename::FileNumber;
use super::iterator::InternalIterator;
use super::key::{ParsedKey, Sequence};
use super::manifest::Change;
use super::memtable::Memtable;
use super::output::OutputTable;
use super::retention::Retention;
use super::version::TableFile;
use super::view::Frozen;
use crate::{Error, Result};

/// For how long readers are waited for that look at a memtable just now. Iterators may take longer:
/// they free it themselves.
const PATIENCE: Duration = Duration::from_millis(5);
const LOOK_AGAIN: Duration = Duration::from_micros(200);

impl Core {
    /// Writes a frozen memtable to its table.
    pub(crate) fn flush(&self, frozen: &Arc<Frozen>) -> Result<()> {
        // Only space, which the log's removal gives back anyway.
        let _ = frozen.log.cut_off(frozen.log_bytes);
        let start = Instant::now();
        let snapshots = self.snapshots.list();
        let table = write_memtable(&self.home, &frozen.memtable, frozen.table, &snapshots)?;
        self.home.sync_names()?;
        self.throttle.flushed(frozen.memtable.bytes() as u64, start.elapsed());
        let written = table.as_ref().map_or(0, |table| table.info.size);
        self.counters.flushed(written, start.elapsed());
        self.background.flush_written(frozen, table);
        Ok(())
    }

    /// Installs what is ready.
    pub(super) fn install_flushed(&self) -> Result<()> {
        // One installs at a time, so that what is ready is installed in order.
        let installing = self.background.installing.lock();
        let ready = self.background.ready_flushes();
        if ready.is_empty() {
            return Ok(());
        }
        let count = ready.len();
        let (flushed, tables): (Vec<_>, Vec<_>) = ready.into_iter().unzip();
        let added = tables.into_iter().flatten().map(|table| (0, table)).collect();
        self.install(Change { added, flushed: flushed.clone(), ..Change::default() })?;
        self.background.flushes_installed(count);
        drop(installing);
        free(flushed);
        Ok(())
    }
}

/// Frees memtables that are of no use any more, once those are done who look at them.
fn free(memtables: Vec<Arc<Frozen>>) {
    let start = Instant::now();
    let is_used = |frozen: &Arc<Frozen>| Arc::strong_count(frozen) > 1;
    while memtables.iter().any(is_used) && start.elapsed() < PATIENCE {
        thread::sleep(LOOK_AGAIN);
    }
}

/// Writes what can be seen of a memtable's entries, now or at `snapshots`, to a table; `None` if
/// there are none. The table's name is not synced yet.
pub(crate) fn write_memtable(
    home: &Home,
    memtable: &Memtable,
    number: FileNumber,
    snapshots: &[Sequence],
) -> Result<Option<Arc<TableFile>>> {
    let mut entries = memtable.iter();
    entries.seek_to_first()?;
    if !entries.valid() {
        return Ok(None);
    }
    let mut retention = Retention::new(snapshots);
    let mut output = OutputTable::create(home, number)?.with_sketch();
    while entries.valid() {
        let key = entries.key();
        let Some(entry) = ParsedKey::parse(key) else {
            return Err(Error::InvalidArgument("a memtable key without a tag".to_owned()));
        };
        // Tables may hold older entries of anything here: deletions stay.
        if retention.keeps(&entry, || true) {
            output.add(&entry, key, entries.value())?;
        }
        entries.next()?;
    }
    output.finish().map(Some)
}
