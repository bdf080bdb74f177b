//! Carrying out what the picker chose.
//!
//! 1. A move is a manifest record and nothing else.
//! 2. A merge is cut by key range into sections, and these into parts (see `split`).
//! 3. Threads take one part after the other, merge the inputs over its range, drop what nobody can
//!    see any more (see `retention`) and write tables.
//! 4. When all parts of a section are done, their tables take the place of those of the output
//!    level that it covers, with one manifest record: so a merge of everything needs room for a
//!    section or two beside the inputs, and not for all of them again. The other inputs stay until
//!    the last section is done, and go with it. Until then they hold once more what lies in the
//!    sections below them: the same entries, or newer ones than those that they hid.
//! 5. If a part fails or the engine is closed, what is not installed is removed.
//!
//! No two tables of the output share a user key: parts and tables end between two of them.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Relaxed},
};
use std::time::Instant;

use parking_lot::Mutex;

use super::core::Core;
use super::garbage::SKETCHED_TABLES_MAX;
use super::iterator::InternalIterator;
use super::key::{ParsedKey, SEEK_KIND, Sequence, push_internal_key, user_key};
use super::level_iter::LevelIter;
use super::manifest::Change;
use super::merge_iter::MergeIter;
use super::output::OutputTable;
use super::picker::{Choice, Merge};
use super::reach::Reach;
use super::retention::Retention;
use super::split::{Part, Section, split};
use super::table::ReadOptions;
use super::version::{TableFile, Version};
use crate::{Error, Result};

/// How many entries are merged between two looks at whether to go on.
const ENTRIES_PER_LOOK: u32 = 256;

impl Core {
    /// Moves or merges on up to `thread_count` threads, this one included. Returns when the outcome
    /// is installed, or without all of it when the engine is being closed.
    pub(crate) fn carry_out(&self, choice: Choice, thread_count: usize) -> Result<()> {
        match choice {
            Choice::Move { from, to, tables } => self.move_tables(from, to, &tables),
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

    fn merge(&self, merge: Merge, thread_count: usize) -> Result<()> {
        let start = Instant::now();
        let debt = self.counters.read_debt_bytes.load(Relaxed);
        let (output_level, input_bytes) = (merge.output_level, merge.input_bytes());
        let reads_level0 = merge.inputs.iter().any(|(level, _)| *level == 0);
        let job = Job::new(self, merge)?;
        let outcome = job.run(thread_count);
        let written_bytes = job.written_bytes.load(Relaxed);
        self.counters.merged(output_level, input_bytes, written_bytes, start.elapsed());
        if !matches!(outcome, Ok(true)) {
            job.discard();
        }
        if outcome? && reads_level0 {
            // What was read meanwhile is paid for by the next merge.
            self.counters.read_debt_bytes.fetch_sub(debt, Relaxed);
        }
        Ok(())
    }
}

/// A merge under way.
struct Job<'a> {
    core: &'a Core,
    output_level: usize,
    /// What lay below the output level when the merge began: nothing more of the inputs' keys can
    /// get there meanwhile.
    below: Version,
    snapshots: Vec<Sequence>,
    has_sketches: bool,
    sections: Vec<OpenSection>,
    /// In key order, each with its section.
    parts: Vec<(usize, Part)>,
    next_part: AtomicUsize,
    /// How many are not installed. Held while one is: the inputs above must not go before the last.
    open_section_count: Mutex<usize>,
    /// The inputs above the output level.
    upper: Vec<(usize, Arc<TableFile>)>,
    written_bytes: AtomicU64,
    is_failed: AtomicBool,
}

/// A section that is not installed.
struct OpenSection {
    open_part_count: AtomicUsize,
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    replaced: Vec<Arc<TableFile>>,
    outputs: Vec<Arc<TableFile>>,
}

impl<'a> Job<'a> {
    fn new(core: &'a Core, merge: Merge) -> Result<Self> {
        let split = split(&merge, &core.tables, core.home.options.table_bytes)?;
        let output_level = merge.output_level;
        let (mut sections, mut parts) = (Vec::new(), Vec::new());
        for (at, section) in split.into_iter().enumerate() {
            let Section { parts: own_parts, replaced } = section;
            sections.push(OpenSection {
                open_part_count: AtomicUsize::new(own_parts.len()),
                tables: Mutex::new(Tables { replaced, outputs: Vec::new() }),
            });
            parts.extend(own_parts.into_iter().map(|part| (at, part)));
        }
        let version = Arc::clone(&core.view.load().version);
        let is_upper = |(level, _): &(usize, Arc<TableFile>)| *level != output_level;
        Ok(Self {
            core,
            output_level,
            has_sketches: version.tables().count() <= SKETCHED_TABLES_MAX,
            below: version.below(output_level),
            snapshots: core.snapshots.list(),
            open_section_count: Mutex::new(sections.len()),
            sections,
            parts,
            next_part: AtomicUsize::new(0),
            upper: merge.inputs.into_iter().filter(is_upper).collect(),
            written_bytes: AtomicU64::new(0),
            is_failed: AtomicBool::new(false),
        })
    }

    /// Merges all parts and installs all sections; false if the engine is being closed before.
    fn run(&self, thread_count: usize) -> Result<bool> {
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
        let is_done = *self.open_section_count.lock() == 0;
        if !is_done && !self.core.background.is_stopping() {
            return Err(Error::Poisoned { cause: "a compaction did not merge all".to_owned() });
        }
        Ok(is_done)
    }

    /// Merges one part after the other, and installs the sections that end with them.
    fn work(&self) -> Result<()> {
        while !self.is_over()
            && let Some((section, part)) = self.parts.get(self.next_part.fetch_add(1, Relaxed))
        {
            let section = &self.sections[*section];
            self.merge_part(section, part)
                .and_then(|is_whole| if is_whole { self.end_part(section) } else { Ok(()) })
                .inspect_err(|_| self.is_failed.store(true, Relaxed))?;
        }
        Ok(())
    }

    /// Installs the section if that was its last part.
    fn end_part(&self, section: &OpenSection) -> Result<()> {
        if section.open_part_count.fetch_sub(1, AcqRel) > 1 {
            return Ok(());
        }
        self.core.home.sync_names()?;
        let mut open_section_count = self.open_section_count.lock();
        // Out of reach of `discard`: if this fails, nobody knows whether the manifest names them.
        let tables = std::mem::take(&mut *section.tables.lock());
        let number = |level| move |table: &Arc<TableFile>| (level, table.info.number);
        let mut change = Change {
            removed: tables.replaced.iter().map(number(self.output_level)).collect(),
            added: (tables.outputs.iter().cloned())
                .map(|table| (self.output_level, table))
                .collect(),
            ..Change::default()
        };
        if *open_section_count == 1 {
            let upper = self.upper.iter().map(|(level, table)| (*level, table.info.number));
            change.removed.extend(upper);
            change.pointer = self.pointer();
        }
        self.core.install(change)?;
        *open_section_count -= 1;
        Ok(())
    }

    /// Up to where the level above the output level is merged now; nobody asks that of level 0.
    fn pointer(&self) -> Option<(usize, Vec<u8>)> {
        let above = self.output_level - 1;
        let keys = self.upper.iter().filter(|(level, _)| *level == above && above > 0);
        let keys = keys.map(|(_, table)| &table.info.largest);
        keys.max_by(|a, b| super::key::compare(a, b)).map(|key| (above, key.clone()))
    }

    fn is_over(&self) -> bool {
        self.is_failed.load(Relaxed) || self.core.background.is_stopping()
    }

    /// Returns whether it came to the end of the part.
    fn merge_part(&self, section: &OpenSection, part: &Part) -> Result<bool> {
        let mut input = self.open_inputs(section, part)?;
        match &part.start {
            None => input.seek_to_first()?,
            Some(start) => {
                let mut target = Vec::new();
                push_internal_key(&mut target, start, Sequence::MAX, SEEK_KIND);
                input.seek(&target)?;
            }
        }
        let mut retention = Retention::new(&self.snapshots);
        let mut reach = Reach::new(&self.below, self.output_level, &self.core.home.options);
        let mut output: Option<OutputTable<'_>> = None;
        let mut looked = 0;
        while input.valid() {
            let key = input.key();
            let entry = ParsedKey::parse(key).ok_or_else(|| not_a_key(key))?;
            if part.end.as_deref().is_some_and(|end| entry.user_key >= end) {
                break;
            }
            let below = || self.below.may_hold_below(self.output_level, entry.user_key);
            if retention.keeps(&entry, below) {
                let is_wide = reach.extend(entry.user_key);
                let ends = |output: &mut OutputTable<'_>| {
                    (is_wide || self.is_full(output)) && !output.ends_with(entry.user_key)
                };
                if let Some(ended) = output.take_if(ends) {
                    self.finish(section, ended)?;
                }
                let output = match &mut output {
                    Some(output) => output,
                    None => {
                        reach.restart();
                        output.insert(self.create_output()?)
                    }
                };
                output.add(&entry, key, input.value())?;
            }
            input.next()?;
            looked += 1;
            if looked == ENTRIES_PER_LOOK {
                looked = 0;
                if self.is_over() {
                    return Ok(false);
                }
            }
        }
        output.map_or(Ok(()), |output| self.finish(section, output))?;
        Ok(true)
    }

    fn create_output(&self) -> Result<OutputTable<'a>> {
        let output = OutputTable::create(&self.core.home, self.core.file_numbers.take())?;
        Ok(if self.has_sketches { output.with_sketch() } else { output })
    }

    fn is_full(&self, output: &OutputTable<'_>) -> bool {
        // A part is about one table: do not leave a small rest for a second one.
        let table_bytes = self.core.home.options.table_bytes;
        output.size() >= table_bytes.saturating_add(table_bytes / 2)
    }

    fn finish(&self, section: &OpenSection, output: OutputTable<'_>) -> Result<()> {
        let table = output.finish()?;
        self.written_bytes.fetch_add(table.info.size, Relaxed);
        section.tables.lock().outputs.push(table);
        Ok(())
    }

    /// The inputs over the range of `part`: each table of level 0 for itself, the others by level.
    fn open_inputs(&self, section: &OpenSection, part: &Part) -> Result<MergeIter<'a>> {
        let options = ReadOptions { fill_cache: false, ..ReadOptions::default() };
        let mut sources: Vec<Box<dyn InternalIterator + 'a>> = Vec::new();
        let replaced = section.tables.lock().replaced.clone();
        let replaced = replaced.into_iter().map(|table| (self.output_level, table));
        let mut inputs: Vec<_> = (self.upper.iter().cloned().chain(replaced))
            .filter(|(_, table)| part.overlaps(table))
            .collect();
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

    /// Removes what was written and is not installed.
    fn discard(&self) {
        let outputs = self
            .sections
            .iter()
            .flat_map(|section| std::mem::take(&mut *section.tables.lock()).outputs);
        outputs.for_each(|table| self.core.home.disposal.table(table.info.number));
    }
}

fn not_a_key(key: &[u8]) -> Error {
    // Tables were checked when they were read: the path is not known here any more.
    Error::InvalidArgument(format!(
        "a table holds \"{}\", which is no internal key",
        user_key(key).escape_ascii()
    ))
}
