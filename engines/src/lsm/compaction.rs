//! Carrying out what the picker chose.
//!
//! 1. A move is a manifest record and nothing else.
//! 2. A merge is cut into parts by key range (see `split`), about one table of output each.
//! 3. Threads take one part after the other, merge the inputs over its range, drop what nobody can
//!    see any more (see `retention`) and write tables.
//! 4. When all parts are done, their tables take the place of the inputs with one manifest record.
//!    If one fails or the engine is closed, all of them are removed.
//!
//! No two tables of the output share a user key: parts and tables end between two of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use parking_lot::Mutex;

use super::core::Core;
use super::iterator::InternalIterator;
use super::key::{ParsedKey, SEEK_KIND, Sequence, push_internal_key, user_key};
use super::level_iter::LevelIter;
use super::manifest::Change;
use super::merge_iter::MergeIter;
use super::output::OutputTable;
use super::picker::{Choice, Merge};
use super::reach::Reach;
use super::retention::Retention;
use super::split::{Part, split};
use super::table::ReadOptions;
use super::version::{TableFile, Version};
use crate::{Error, Result};

/// How many entries are merged between two looks at whether to go on.
const ENTRIES_PER_LOOK: u32 = 256;

impl Core {
    /// Moves or merges on up to `thread_count` threads, this one included. Returns when the outcome
    /// is installed, or without one when the engine is being closed.
    pub(crate) fn carry_out(&self, choice: &Choice, thread_count: usize) -> Result<()> {
        match choice {
            Choice::Move { from, to, tables } => self.move_tables(*from, *to, tables),
            Choice::Merge(merge) => self.merge(merge, thread_count),
        }
    }

    fn move_tables(&self, from: usize, to: usize, tables: &[Arc<TableFile>]) -> Result<()> {
        let moved = tables.len() as u64;
        self.counters.moved_tables.fetch_add(moved, Relaxed);
        let bytes = tables.iter().map(|table| table.info.size).sum();
        self.counters.levels[to].moved_bytes.fetch_add(bytes, Relaxed);
        self.install(Change {
            removed: tables.iter().map(|table| (from, table.info.number)).collect(),
            added: tables.iter().map(|table| (to, Arc::clone(table))).collect(),
            ..Change::default()
        })
    }

    fn merge(&self, merge: &Merge, thread_count: usize) -> Result<()> {
        let start = Instant::now();
        let debt = self.counters.read_debt_bytes.load(Relaxed);
        let job = Job::new(self, merge)?;
        let outputs = match job.run(thread_count) {
            Ok(Some(outputs)) => outputs,
            stopped_or_failed => {
                job.discard();
                return stopped_or_failed.map(drop);
            }
        };
        let written = outputs.iter().map(|table| table.info.size).sum();
        self.counters.merged(merge.output_level, merge.input_bytes(), written, start.elapsed());
        if let Err(error) = self.home.sync_names() {
            job.discard();
            return Err(error);
        }
        let pointer = merge.inputs.iter().filter(|(level, _)| *level == merge.output_level - 1);
        let pointer = pointer.map(|(level, table)| (*level, &table.info.largest));
        self.install(Change {
            removed: merge
                .inputs
                .iter()
                .map(|(level, table)| (*level, table.info.number))
                .collect(),
            added: outputs.into_iter().map(|table| (merge.output_level, table)).collect(),
            pointer: pointer
                .filter(|(level, _)| *level > 0)
                .max_by(|a, b| super::key::compare(a.1, b.1))
                .map(|(level, key)| (level, key.clone())),
            ..Change::default()
        })?;
        if merge.inputs.iter().any(|(level, _)| *level == 0) {
            // What was read meanwhile is paid for by the next merge.
            self.counters.read_debt_bytes.fetch_sub(debt, Relaxed);
        }
        Ok(())
    }
}

/// A merge under way.
struct Job<'a> {
    core: &'a Core,
    merge: &'a Merge,
    /// What was there when the merge began: deeper levels hold nothing more of the inputs' keys
    /// than this tells.
    version: Arc<Version>,
    snapshots: Vec<Sequence>,
    parts: Vec<Part>,
    next_part: AtomicUsize,
    merged_count: AtomicUsize,
    is_failed: AtomicBool,
    outputs: Mutex<Vec<Arc<TableFile>>>,
}

impl<'a> Job<'a> {
    fn new(core: &'a Core, merge: &'a Merge) -> Result<Self> {
        Ok(Self {
            core,
            merge,
            version: Arc::clone(&core.view.load().version),
            snapshots: core.snapshots.list(),
            parts: split(merge, &core.tables, core.home.options.table_bytes)?,
            next_part: AtomicUsize::new(0),
            merged_count: AtomicUsize::new(0),
            is_failed: AtomicBool::new(false),
            outputs: Mutex::default(),
        })
    }

    /// Merges all parts; `None` if the engine is being closed.
    fn run(&self, thread_count: usize) -> Result<Option<Vec<Arc<TableFile>>>> {
        let helper_count = thread_count.min(self.parts.len()).saturating_sub(1);
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let helpers: Vec<_> = (0..helper_count)
                .map_while(|_| {
                    // Without a helper the work takes longer, that is all.
                    std::thread::Builder::new().spawn_scoped(scope, || self.work()).ok()
                })
                .collect();
            let own = self.work();
            let helped = helpers.into_iter().map(|helper| helper.join().unwrap_or(Ok(())));
            std::iter::once(own).chain(helped).collect()
        });
        outcomes.into_iter().collect::<Result<Vec<()>>>()?;
        if self.core.background.is_stopping() {
            return Ok(None);
        }
        // The inputs are about to go: be sure that all of them was merged, whatever happened.
        if self.merged_count.load(Relaxed) != self.parts.len() {
            return Err(Error::Poisoned { cause: "a compaction did not merge all".to_owned() });
        }
        Ok(Some(self.outputs.lock().clone()))
    }

    /// Merges one part after the other.
    fn work(&self) -> Result<()> {
        while !self.is_over()
            && let Some(part) = self.parts.get(self.next_part.fetch_add(1, Relaxed))
        {
            self.merge_part(part).inspect_err(|_| self.is_failed.store(true, Relaxed))?;
            self.merged_count.fetch_add(1, Relaxed);
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.is_failed.load(Relaxed) || self.core.background.is_stopping()
    }

    fn merge_part(&self, part: &Part) -> Result<()> {
        let mut input = self.open_inputs(part)?;
        match &part.start {
            None => input.seek_to_first()?,
            Some(start) => {
                let mut target = Vec::new();
                push_internal_key(&mut target, start, Sequence::MAX, SEEK_KIND);
                input.seek(&target)?;
            }
        }
        let mut retention = Retention::new(&self.snapshots);
        let mut reach = Reach::new(&self.version, self.merge.output_level, &self.core.home.options);
        let mut output: Option<OutputTable<'_>> = None;
        let mut looked = 0;
        while input.valid() {
            let key = input.key();
            let entry = ParsedKey::parse(key).ok_or_else(|| not_a_key(key))?;
            if part.end.as_deref().is_some_and(|end| entry.user_key >= end) {
                break;
            }
            let below = || self.version.may_hold_below(self.merge.output_level, entry.user_key);
            if retention.keeps(&entry, below) {
                let is_wide = reach.extend(entry.user_key);
                let ends = |output: &mut OutputTable<'_>| {
                    (is_wide || self.is_full(output)) && !output.ends_with(entry.user_key)
                };
                if let Some(ended) = output.take_if(ends) {
                    self.finish(ended)?;
                }
                let output = match &mut output {
                    Some(output) => output,
                    None => {
                        reach.restart();
                        let number = self.core.file_numbers.take();
                        output.insert(OutputTable::create(&self.core.home, number)?)
                    }
                };
                output.add(&entry, key, input.value())?;
            }
            input.next()?;
            looked += 1;
            if looked == ENTRIES_PER_LOOK {
                looked = 0;
                if self.is_over() {
                    return Ok(());
                }
            }
        }
        output.map_or(Ok(()), |output| self.finish(output))
    }

    fn is_full(&self, output: &OutputTable<'_>) -> bool {
        // A part is about one table: do not leave a small rest for a second one.
        let table_bytes = self.core.home.options.table_bytes;
        output.size() >= table_bytes.saturating_add(table_bytes / 2)
    }

    fn finish(&self, output: OutputTable<'_>) -> Result<()> {
        let table = output.finish()?;
        self.outputs.lock().push(table);
        Ok(())
    }

    /// The inputs over the range of `part`: each table of level 0 for itself, the others by level.
    fn open_inputs(&self, part: &Part) -> Result<MergeIter<'a>> {
        let options = ReadOptions { fill_cache: false, ..ReadOptions::default() };
        let mut sources: Vec<Box<dyn InternalIterator + 'a>> = Vec::new();
        let mut inputs: Vec<_> =
            self.merge.inputs.iter().filter(|(_, table)| part.overlaps(table)).collect();
        inputs.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.smallest().cmp(b.1.smallest())));
        for tables in inputs.chunk_by(|a, b| a.0 > 0 && a.0 == b.0) {
            if let [(0, table)] = tables {
                let table = self.core.tables.get(table.info.number, table.info.size)?;
                sources.push(Box::new(table.iter(options)));
            } else {
                let tables = tables.iter().map(|(_, table)| Arc::clone(table)).collect();
                sources.push(Box::new(LevelIter::new(tables, &self.core.tables, options)));
            }
        }
        Ok(MergeIter::new(sources))
    }

    /// Removes what was written.
    fn discard(&self) {
        for table in self.outputs.lock().drain(..) {
            self.core.home.disposal.table(table.info.number);
        }
    }
}

fn not_a_key(key: &[u8]) -> Error {
    // Tables were checked when they were read: the path is not known here any more.
    Error::InvalidArgument(format!(
        "a table holds \"{}\", which is no internal key",
        user_key(key).escape_ascii()
    ))
}
