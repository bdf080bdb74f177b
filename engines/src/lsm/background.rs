//! What waits, what runs, and the threads that do it.
//!
//! Two kinds of threads, `background_threads` of each: some flush, some compact, so that a long
//! compaction never keeps a memtable waiting. All state is under one lock, which is never held
//! across I/O.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::core::Core;
use super::filename::FileNumber;
use super::picker::{self, Choice, Situation};
use super::version::TableFile;
use super::view::Frozen;
use crate::{Error, Result};

/// The work of a running engine.
#[derive(Default)]
pub(crate) struct Background {
    state: Mutex<State>,
    /// Something to do for the threads.
    work: Condvar,
    /// Something was done.
    progress: Condvar,
    /// Held by the one that installs flushed tables.
    pub(super) installing: Mutex<()>,
    /// How many hold compactions back. Changed under the lock of the state.
    pause_count: AtomicUsize,
}

#[derive(Default)]
struct State {
    /// Frozen memtables that are in no table set yet, the oldest first.
    flushes: VecDeque<Flush>,
    /// Tables that running compactions read.
    busy: HashSet<FileNumber>,
    compaction_count: usize,
    /// Somebody compacts by hand: the threads start no compaction of their own.
    is_exclusive: bool,
    is_stopping: bool,
}

struct Flush {
    frozen: Arc<Frozen>,
    progress: Progress,
}

enum Progress {
    Waiting,
    Running,
    /// On disk; `None` if there was nothing to write.
    Written(Option<Arc<TableFile>>),
}

/// A flushed memtable and its table.
pub(crate) type Flushed = (Arc<Frozen>, Option<Arc<TableFile>>);

impl Background {
    /// Hands a memtable to the flushing threads.
    pub(crate) fn add_flush(&self, frozen: Arc<Frozen>) {
        self.state.lock().flushes.push_back(Flush { frozen, progress: Progress::Waiting });
        self.work.notify_all();
    }

    /// Waits until another memtable may be frozen; tells whether that took waiting.
    pub(crate) fn wait_for_room(&self, core: &Core) -> Result<bool> {
        let mut state = self.state.lock();
        let mut waited = false;
        loop {
            core.poison.check()?;
            let has_slot = state.flushes.len() + 1 < core.home.options.memtable_count;
            let level0_count = core.view.load().version.level(0).len();
            let is_level0_full = level0_count >= core.home.options.level0_stop_tables;
            // Nobody would merge it while compactions are held back.
            if has_slot && (!is_level0_full || self.is_paused()) {
                return Ok(waited);
            }
            if state.is_stopping {
                return Err(Error::Poisoned { cause: "the engine was closed".to_owned() });
            }
            waited = true;
            self.progress.wait(&mut state);
        }
    }

    /// A memtable's table is on disk.
    pub(crate) fn flush_written(&self, frozen: &Arc<Frozen>, table: Option<Arc<TableFile>>) {
        let mut state = self.state.lock();
        if let Some(flush) = state.flushes.iter_mut().find(|f| Arc::ptr_eq(&f.frozen, frozen)) {
            flush.progress = Progress::Written(table);
        }
    }

    /// The oldest memtables as far as their tables are on disk.
    pub(crate) fn ready_flushes(&self) -> Vec<Flushed> {
        let state = self.state.lock();
        let ready = state.flushes.iter().map_while(|flush| match &flush.progress {
            Progress::Written(table) => Some((Arc::clone(&flush.frozen), table.clone())),
            Progress::Waiting | Progress::Running => None,
        });
        ready.collect()
    }

    /// The first `count` memtables are in the table set.
    pub(crate) fn flushes_installed(&self, count: usize) {
        self.state.lock().flushes.drain(..count);
        self.changed();
    }

    /// Something happened that may be waited for, or makes new work.
    pub(crate) fn changed(&self) {
        // Whoever is about to wait has the lock: it cannot miss this.
        drop(self.state.lock());
        self.work.notify_all();
        self.progress.notify_all();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.state.lock().is_stopping
    }

    /// Waits until all memtables that are frozen now are in the table set.
    pub(crate) fn wait_for_flushes(&self, core: &Core) -> Result<()> {
        let mut state = self.state.lock();
        let Some(last) = state.flushes.back().map(|flush| Arc::clone(&flush.frozen)) else {
            return core.poison.check();
        };
        while state.flushes.iter().any(|flush| flush.frozen.table <= last.table) {
            core.poison.check()?;
            self.progress.wait(&mut state);
        }
        Ok(())
    }

    /// Waits until no flush and no compaction is due or running.
    pub(crate) fn wait_until_idle(&self, core: &Core) -> Result<()> {
        let mut state = self.state.lock();
        loop {
            core.poison.check()?;
            let is_idle = state.flushes.is_empty()
                && state.compaction_count == 0
                && !state.is_exclusive
                && (self.is_paused() || core.pick(&state).is_none());
            if is_idle {
                return Ok(());
            }
            // Reads may have made a merge due without waking anybody.
            self.work.notify_all();
            self.progress.wait(&mut state);
        }
    }

    /// Waits until no compaction runs, and lets none start until the guard goes.
    pub(crate) fn exclusive(&self, core: &Core) -> Result<Exclusive<'_>> {
        let mut state = self.state.lock();
        while state.is_exclusive {
            core.poison.check()?;
            self.progress.wait(&mut state);
        }
        state.is_exclusive = true;
        let exclusive = Exclusive(self);
        while state.compaction_count > 0 {
            if let Err(error) = core.poison.check() {
                drop(state);
                return Err(error);
            }
            self.progress.wait(&mut state);
        }
        Ok(exclusive)
    }

    /// Lets no compaction start that nobody asked for, until the guard goes, and waits until none
    /// runs.
    pub(crate) fn pause<'a>(&'a self, core: &Core) -> Result<Pause<'a>> {
        let mut state = self.state.lock();
        self.pause_count.fetch_add(1, Relaxed);
        let pause = Pause(self);
        // Whoever waits for level 0 to be merged need not any more.
        self.progress.notify_all();
        while state.compaction_count > 0 {
            if let Err(error) = core.poison.check() {
                drop(state);
                return Err(error);
            }
            self.progress.wait(&mut state);
        }
        drop(state);
        Ok(pause)
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.pause_count.load(Relaxed) > 0
    }

    /// A memtable could not be written to a table: somebody else may try.
    fn flush_failed(&self, frozen: &Arc<Frozen>) {
        let mut state = self.state.lock();
        let is_it = |flush: &&mut Flush| Arc::ptr_eq(&flush.frozen, frozen);
        if let Some(flush) = state.flushes.iter_mut().find(is_it)
            && matches!(flush.progress, Progress::Running)
        {
            flush.progress = Progress::Waiting;
        }
    }

    fn stop(&self) {
        self.state.lock().is_stopping = true;
        self.changed();
    }

    /// The next memtable to flush; `None` when it is time to end.
    fn next_flush(&self, core: &Core) -> Option<Arc<Frozen>> {
        let mut state = self.state.lock();
        loop {
            if state.is_stopping {
                return None;
            }
            let waiting = |flush: &&mut Flush| matches!(flush.progress, Progress::Waiting);
            if !core.poison.is_set()
                && let Some(flush) = state.flushes.iter_mut().find(waiting)
            {
                flush.progress = Progress::Running;
                return Some(Arc::clone(&flush.frozen));
            }
            self.work.wait(&mut state);
        }
    }

    /// The next compaction; `None` when it is time to end.
    fn next_compaction(&self, core: &Core) -> Option<Running<'_>> {
        let mut state = self.state.lock();
        loop {
            if state.is_stopping {
                return None;
            }
            let may_start = !core.poison.is_set() && !state.is_exclusive && !self.is_paused();
            if let Some(choice) = may_start.then(|| core.pick(&state)).flatten() {
                return Some(self.start(&mut state, choice));
            }
            self.work.wait(&mut state);
        }
    }

    fn start(&self, state: &mut MutexGuard<'_, State>, choice: Choice) -> Running<'_> {
        let tables: Vec<_> = choice.tables().map(|table| table.info.number).collect();
        state.busy.extend(&tables);
        state.compaction_count += 1;
        Running { choice, busy: Busy { background: self, tables } }
    }
}

/// A compaction that is to run.
struct Running<'a> {
    choice: Choice,
    busy: Busy<'a>,
}

/// Tables that are read; free again when this goes.
struct Busy<'a> {
    background: &'a Background,
    tables: Vec<FileNumber>,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut state = self.background.state.lock();
        for table in &self.tables {
            state.busy.remove(table);
        }
        state.compaction_count -= 1;
        drop(state);
        self.background.changed();
    }
}

/// As long as this lives no compaction starts but the holder's.
pub(crate) struct Exclusive<'a>(&'a Background);

impl Drop for Exclusive<'_> {
    fn drop(&mut self) {
        self.0.state.lock().is_exclusive = false;
        self.0.changed();
    }
}

/// As long as this lives no compaction starts by itself.
pub(crate) struct Pause<'a>(&'a Background);

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        let state = self.0.state.lock();
        self.0.pause_count.fetch_sub(1, Relaxed);
        drop(state);
        self.0.changed();
    }
}

impl Core {
    fn pick(&self, state: &State) -> Option<Choice> {
        let view = self.view.load();
        picker::pick(&Situation {
            version: &view.version,
            options: &self.home.options,
            busy: &state.busy,
            read_debt_bytes: self.counters.read_debt_bytes.load(Relaxed),
        })
    }

    fn flush_until_stopped(&self) {
        let _watch = PanicWatch(self);
        while let Some(frozen) = self.background.next_flush(self) {
            let lift_count = self.poison.lift_count();
            let written =
                self.flush(&frozen).inspect_err(|_| self.background.flush_failed(&frozen));
            // Whoever installs it waits for this.
            drop(frozen);
            if let Err(error) = written.and_then(|()| self.install_flushed()) {
                self.work_failed(lift_count, error);
            }
        }
    }

    fn compact_until_stopped(&self) {
        let _watch = PanicWatch(self);
        while let Some(Running { choice, busy }) = self.background.next_compaction(self) {
            let thread_count = self.home.options.background_threads.div_ceil(2);
            let lift_count = self.poison.lift_count();
            if let Err(error) = self.carry_out(choice, thread_count) {
                self.work_failed(lift_count, error);
            }
            // Not before: superfluous tables have been let go now.
            drop(busy);
        }
    }

    fn work_failed(&self, lift_count: u64, error: Error) {
        drop(self.poison.set_by_work_since(lift_count, error));
        // Whoever waits is to see it, or to try again.
        self.background.changed();
    }
}

/// Nobody is to wait for a thread that panicked.
struct PanicWatch<'a>(&'a Core);

impl Drop for PanicWatch<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let cause = "a background thread panicked".to_owned();
            drop(self.0.poisoned(Error::InvalidArgument(cause)));
        }
    }
}

/// The threads of a running engine.
pub(crate) struct Workers {
    core: Arc<Core>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    pub(crate) fn start(core: &Arc<Core>) -> Result<Self> {
        let mut workers = Self { core: Arc::clone(core), threads: Vec::new() };
        for index in 0..core.home.options.background_threads {
            workers.spawn(format!("lsm-flush-{index}"), Core::flush_until_stopped)?;
            workers.spawn(format!("lsm-compact-{index}"), Core::compact_until_stopped)?;
        }
        Ok(workers)
    }

    fn spawn(&mut self, name: String, run: fn(&Core)) -> Result<()> {
        let core = Arc::clone(&self.core);
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || run(&core))
            .map_err(Error::io("start a thread for", &self.core.home.directory))?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for Workers {
    /// Ends the threads and waits for them.
    fn drop(&mut self) {
        self.core.background.stop();
        if let Some(pace) = &self.core.home.pace {
            pace.lift();
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
