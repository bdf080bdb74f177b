//! What a reader reads: memtables and tables of one moment.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;

use super::filename::FileNumber;
use super::memtable::Memtable;
use super::version::Version;

/// Everything that holds entries, newest first: the active memtable, the frozen ones, the tables.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) active: Arc<Memtable>,
    /// The newest first.
    pub(crate) frozen: Vec<Arc<Frozen>>,
    pub(crate) version: Arc<Version>,
}

/// A memtable that is written no more, on its way to a table.
pub(crate) struct Frozen {
    pub(crate) memtable: Arc<Memtable>,
    /// The table it becomes. Taken when it was frozen: level 0 is ordered by number.
    pub(crate) table: FileNumber,
    /// The log that holds its entries.
    pub(crate) log: Arc<super::log_file::LogFile>,
    /// Where they end in it; what was prepared for more may still follow.
    pub(crate) log_bytes: u64,
    /// The log that holds what was written after it.
    pub(crate) next_log: FileNumber,
}

/// The current view. Reading it takes no lock; changing it is serialized.
pub(crate) struct CurrentView {
    current: ArcSwap<View>,
    change: Mutex<()>,
}

impl CurrentView {
    pub(crate) fn new(view: View) -> Self {
        Self { current: ArcSwap::from_pointee(view), change: Mutex::new(()) }
    }

    /// For short use: keeps the view alive without counting references.
    pub(crate) fn load(&self) -> Guard<Arc<View>> {
        self.current.load()
    }

    /// For as long as one likes.
    pub(crate) fn load_full(&self) -> Arc<View> {
        self.current.load_full()
    }

    /// Replaces the view by what `change` makes of it.
    pub(crate) fn change(&self, change: impl FnOnce(&mut View)) {
        let serialized = self.change.lock();
        let mut next = View::clone(&self.current.load());
        change(&mut next);
        let old = self.current.swap(Arc::new(next));
        // Others need not wait while what nobody uses any more is freed.
        drop(serialized);
        drop(old);
    }
}
