//! What to compact next: decided here, from figures alone, and carried out elsewhere.
//!
//! # Policy
//! Level 0 is where tables gather: under pure inserts nothing is rewritten there. All of it is
//! merged into level 1 at once, when the first of these holds:
//! 1. It has `level0_tables` tables: reads stay bounded, whatever nobody has read so far.
//! 2. More has been overwritten by it or in it than [`GARBAGE_MAX`] allows (see the `garbage`
//!    module).
//!    Of tables that were there at open that is not known: there half of what lies below counts,
//!    overwritten or not.
//! 3. Reads have paid for it: every read that looks through more level-0 tables than one adds
//!    what that costs to an account, and when the account has reached what the merge would cost,
//!    the merge is due. So reads never pay more than twice what the best decision in hindsight
//!    would have cost them, and data that nobody reads is not merged for its readers' sake.
//!
//! Below, level by level as LevelDB does it: a level over its size has its next table (round
//! the key space) merged with what it overlaps one level down.
//!
//! A table that overlaps nothing, neither in its level (0) nor in the next one, moves down as it is:
//! sequential inserts are never rewritten. One that would overlap too much from there (see the
//! `reach` module) is rewritten, in smaller tables.

mod by_hand;

use std::collections::HashSet;
use std::sync::Arc;

use crate::lsm::edit::LEVEL_COUNT;
use crate::lsm::filename::FileNumber;
use crate::lsm::garbage::GARBAGE_MAX;
use crate::lsm::options::Options;
use crate::lsm::reach::is_too_wide;
use crate::lsm::version::{TableFile, UserRange, Version};

#[cfg(test)]
pub(crate) use by_hand::full_compaction_level;
pub(crate) use by_hand::{fitting_level, plan_below_level0, plan_full_compaction, plan_level0};

/// Fewer level-0 tables than these are not worth a merge for space or reads.
const LEVEL0_WORTHWHILE: usize = 4;

/// What a lookup pays for each level-0 table it asks beyond the first, in bytes of compaction
/// that take as long: a filter or index search against about 200 MB/s.
pub(crate) const PROBE_COST_BYTES: u64 = 32;

/// What placing an iterator pays for each level-0 table beyond the first, likewise.
pub(crate) const SEEK_COST_BYTES: u64 = 1024;

/// What to do.
#[derive(Debug, Clone)]
pub(crate) enum Choice {
    /// Relink tables to another level: from, to, tables.
    Move { from: usize, to: usize, tables: Vec<Arc<TableFile>> },
    /// Merge tables into a level.
    Merge(Merge),
}

impl Choice {
    /// The tables that are read or moved.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<TableFile>> {
        let (moved, merged) = match self {
            Self::Move { tables, .. } => (tables.as_slice(), [].as_slice()),
            Self::Merge(merge) => ([].as_slice(), merge.inputs.as_slice()),
        };
        moved.iter().chain(merged.iter().map(|(_, table)| table))
    }
}

/// Tables to merge, and where the outcome goes.
#[derive(Debug, Clone)]
pub(crate) struct Merge {
    /// Level and table; of one user key they hold everything from the upper input level down to the
    /// output level.
    pub(crate) inputs: Vec<(usize, Arc<TableFile>)>,
    pub(crate) output_level: usize,
}

impl Merge {
    pub(crate) fn input_bytes(&self) -> u64 {
        self.inputs.iter().map(|(_, table)| table.info.size).sum()
    }

    /// The inputs that are in the output level already.
    pub(crate) fn replaced(&self) -> Vec<Arc<TableFile>> {
        let replaced = self.inputs.iter().filter(|(level, _)| *level == self.output_level);
        replaced.map(|(_, table)| Arc::clone(table)).collect()
    }
}

/// What decides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Situation<'a> {
    pub(crate) version: &'a Version,
    pub(crate) options: &'a Options,
    /// Tables that running compactions read.
    pub(crate) busy: &'a HashSet<FileNumber>,
    /// What reads have paid for level 0 since it was last merged; see `PROBE_COST_BYTES`.
    pub(crate) read_debt_bytes: u64,
}

/// The most urgent compaction that can run now, if any is due.
pub(crate) fn pick(situation: &Situation<'_>) -> Option<Choice> {
    let mut due: Vec<(f64, usize)> = (0..LEVEL_COUNT - 1)
        .map(|level| (situation.score(level), level))
        .filter(|(score, _)| *score >= 1.0)
        .collect();
    due.sort_by(|a, b| b.0.total_cmp(&a.0));
    due.into_iter().find_map(|(_, level)| match level {
        0 => situation.pick_level0(),
        _ => situation.pick_level(level),
    })
}

/// The size that a level should not outgrow.
fn target_bytes(options: &Options, level: usize) -> u64 {
    (1..level).fold(options.level1_bytes, |bytes, _| bytes.saturating_mul(options.level_ratio))
}

impl Situation<'_> {
    /// How urgent a level is; from 1.0 on it is due.
    fn score(&self, level: usize) -> f64 {
        if level == 0 {
            return self.level0_score();
        }
        let idle = self.version.level(level).iter().filter(|table| !self.is_busy(table));
        let bytes: u64 = idle.map(|table| table.info.size).sum();
        // One byte over the target is due, the target itself is not.
        ratio(bytes, target_bytes(self.options, level).saturating_add(1))
    }

    fn level0_score(&self) -> f64 {
        let count = self.version.level(0).len();
        let bytes = self.version.level_bytes(0);
        let by_count = ratio(count as u64, self.options.level0_tables as u64);
        if count < LEVEL0_WORTHWHILE.min(self.options.level0_tables) {
            return by_count;
        }
        let below: u64 = (1..LEVEL_COUNT).map(|level| self.version.level_bytes(level)).sum();
        let by_space = match self.version.garbage() {
            Some(garbage) => garbage / GARBAGE_MAX,
            None if below == 0 => 0.0,
            None => ratio(bytes, below.div_ceil(2)),
        };
        let cost = bytes + self.version.level_bytes(1);
        by_count.max(by_space).max(ratio(self.read_debt_bytes, cost))
    }

    /// All of level 0, with what it overlaps in level 1. Tables that overlap nothing move first.
    fn pick_level0(&self) -> Option<Choice> {
        let level0 = self.version.level(0);
        if level0.is_empty() || level0.iter().any(|table| self.is_busy(table)) {
            return None;
        }
        let alone: Vec<_> = level0.iter().filter(|table| self.stands_alone(table)).collect();
        if !alone.is_empty() {
            let tables = alone.into_iter().map(Arc::clone).collect();
            return Some(Choice::Move { from: 0, to: 1, tables });
        }
        self.merge_down(0, level0.to_vec())
    }

    /// Whether a level-0 table can move: it shares keys neither with another one nor with level 1,
    /// nor with too much below.
    fn stands_alone(&self, table: &Arc<TableFile>) -> bool {
        let range = table.range();
        self.version.overlapping(0, range).all(|other| Arc::ptr_eq(other, table))
            && self.version.overlapping(1, range).next().is_none()
            && !is_too_wide(self.version, 1, range, self.options)
    }

    /// The next idle table of a level behind the last one, round the key space.
    fn pick_level(&self, level: usize) -> Option<Choice> {
        let tables = self.version.level(level);
        let pointer = self.version.pointer(level);
        let start = tables.partition_point(|table| table.info.largest.as_slice() <= pointer);
        let start = if pointer.is_empty() { 0 } else { start };
        (tables[start..].iter().chain(&tables[..start]))
            .filter(|table| !self.is_busy(table))
            .find_map(|table| self.merge_down(level, vec![Arc::clone(table)]))
    }

    /// Merges tables of a level with what they overlap one level down; `None` if a part of that is
    /// busy.
    fn merge_down(&self, level: usize, mut upper: Vec<Arc<TableFile>>) -> Option<Choice> {
        let range = UserRange::spanning(&upper)?;
        let lower: Vec<_> = self.version.overlapping(level + 1, range).cloned().collect();
        if lower.iter().any(|table| self.is_busy(table)) {
            return None;
        }
        let may_move = !is_too_wide(self.version, level + 1, range, self.options);
        if lower.is_empty() && level > 0 && may_move {
            return Some(Choice::Move { from: level, to: level + 1, tables: upper });
        }
        if level > 0 {
            self.widen(level, &mut upper, &lower);
        }
        let inputs = (upper.into_iter().map(|table| (level, table)))
            .chain(lower.into_iter().map(|table| (level + 1, table)))
            .collect();
        Some(Choice::Merge(Merge { inputs, output_level: level + 1 }))
    }

    /// Takes along what more of the upper level lies within the lower tables' range, if that brings
    /// no further lower table in: its share of the work is done anyway.
    fn widen(&self, level: usize, upper: &mut Vec<Arc<TableFile>>, lower: &[Arc<TableFile>]) {
        let Some(range) = UserRange::spanning(upper.iter().chain(lower)) else { return };
        let wider: Vec<_> = self.version.overlapping(level, range).cloned().collect();
        let Some(reach) = UserRange::spanning(&wider) else { return };
        let bytes: u64 = wider.iter().chain(lower).map(|table| table.info.size).sum();
        let is_free = !wider.iter().any(|table| self.is_busy(table));
        let brings_none_in = self.version.overlapping(level + 1, reach).count() == lower.len();
        if is_free && brings_none_in && bytes <= 25 * self.options.table_bytes {
            *upper = wider;
        }
    }

    fn is_busy(&self, table: &TableFile) -> bool {
        self.busy.contains(&table.info.number)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a score needs no more than a few digits")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests;
