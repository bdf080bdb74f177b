//! What compactions that somebody asks for do.
//!
//! A full one merges everything into one level. One over a range of keys takes two steps, because
//! the tables of level 0 mostly span all keys:
//! 1. The tables of level 0 that hold keys of the range, and those that overlap these, are merged
//!    into level 1.
//! 2. Of the levels below, the tables that hold keys of the range go to the deepest level that has
//!    such a table, and with them, level by level, what they overlap.
//!
//! So for no key anything older is left above something newer. All tables of the output level
//! between the smallest and the largest key of step 2 take part: each table that takes part
//! overlaps the range or one above it that does, so together they leave no gap.

use std::sync::Arc;

use super::{Choice, Merge, target_bytes};
use crate::KeyRange;
use crate::lsm::edit::LEVEL_COUNT;
use crate::lsm::options::Options;
use crate::lsm::version::{TableFile, UserRange, Version};

/// The level into which everything is merged when all is to be compacted: deep enough that it
/// does not outgrow its size, and not above what is there.
pub(crate) fn full_compaction_level(version: &Version, options: &Options) -> usize {
    let total = version.tables().map(|(_, table)| table.info.size).sum();
    fitting_level(total, options).max(version.deepest_level().unwrap_or(1))
}

/// The first level below 0 that `bytes` fit into.
pub(crate) fn fitting_level(bytes: u64, options: &Options) -> usize {
    let fits = |level: &usize| target_bytes(options, *level) >= bytes;
    (1..LEVEL_COUNT).find(fits).unwrap_or(LEVEL_COUNT - 1)
}

/// What a full compaction does: rewrite each group of tables that share a range of keys, and take
/// along as it is what stands alone and has nothing to reclaim.
pub(crate) fn plan_full_compaction(version: &Version, options: &Options) -> Vec<Choice> {
    let tables = version.tables().map(|(level, table)| (level, Arc::clone(table))).collect();
    plan(tables, full_compaction_level(version, options))
}

fn plan(mut tables: Vec<(usize, Arc<TableFile>)>, output_level: usize) -> Vec<Choice> {
    tables.sort_by(|a, b| a.1.smallest().cmp(b.1.smallest()));
    let mut plan = Plan { output_level, ..Plan::default() };
    let mut group: Vec<(usize, Arc<TableFile>)> = Vec::new();
    for (level, table) in tables {
        let joins = group.iter().any(|(_, member)| member.largest() >= table.smallest());
        if !joins {
            plan.add(std::mem::take(&mut group));
        }
        group.push((level, table));
    }
    plan.add(group);
    plan.finish()
}

/// What brings the keys of `range` in level 0 to level 1.
pub(crate) fn plan_level0(version: &Version, range: KeyRange<'_>) -> Option<Choice> {
    let mut upper: Vec<_> = holding(version, 0, range).cloned().collect();
    let mut span = UserRange::spanning(&upper)?;
    let wider = loop {
        let wider: Vec<_> = version.overlapping(0, span).cloned().collect();
        if wider.len() == upper.len() {
            break wider;
        }
        upper = wider;
        span = UserRange::spanning(&upper)?;
    };
    let lower: Vec<_> = version.overlapping(1, span).cloned().collect();
    if lower.is_empty() && wider.len() == 1 {
        return Some(Choice::Move { from: 0, to: 1, tables: wider });
    }
    let inputs = wider.into_iter().map(|table| (0, table));
    let inputs = inputs.chain(lower.into_iter().map(|table| (1, table))).collect();
    Some(Choice::Merge(Merge { inputs, output_level: 1 }))
}

/// What brings the keys of `range` below level 0 to the deepest level that has some.
pub(crate) fn plan_below_level0(version: &Version, range: KeyRange<'_>) -> Vec<Choice> {
    let has_some = |level: &usize| holding(version, *level, range).next().is_some();
    let Some(output_level) = (1..LEVEL_COUNT).rev().find(has_some) else { return Vec::new() };
    let mut taken: Vec<(usize, Arc<TableFile>)> = Vec::new();
    for level in 1..=output_level {
        let joins = |table: &&Arc<TableFile>| {
            holds(table, range)
                || taken.iter().any(|(_, above)| above.range().overlaps(table.range()))
        };
        let joining: Vec<_> = version.level(level).iter().filter(joins).cloned().collect();
        taken.extend(joining.into_iter().map(|table| (level, table)));
    }
    plan(taken, output_level)
}

fn holding<'a>(
    version: &'a Version,
    level: usize,
    range: KeyRange<'a>,
) -> impl Iterator<Item = &'a Arc<TableFile>> {
    version.level(level).iter().filter(move |table| holds(table, range))
}

/// Whether the table may hold keys of the range.
fn holds(table: &TableFile, range: KeyRange<'_>) -> bool {
    !range.is_before(table.largest()) && !range.is_after(table.smallest())
}

/// A compaction under way of being planned.
#[derive(Default)]
struct Plan {
    output_level: usize,
    choices: Vec<Choice>,
    /// Groups to rewrite that have nothing between them that stays.
    merging: Vec<(usize, Arc<TableFile>)>,
}

impl Plan {
    /// The next group by key.
    fn add(&mut self, group: Vec<(usize, Arc<TableFile>)>) {
        match group.as_slice() {
            [] => {}
            [(level, table)] if table.is_clean => {
                self.end_merge();
                if *level != self.output_level {
                    let tables = vec![Arc::clone(table)];
                    self.choices.push(Choice::Move { from: *level, to: self.output_level, tables });
                }
            }
            _ => self.merging.extend(group),
        }
    }

    fn end_merge(&mut self) {
        if !self.merging.is_empty() {
            let inputs = std::mem::take(&mut self.merging);
            self.choices.push(Choice::Merge(Merge { inputs, output_level: self.output_level }));
        }
    }

    fn finish(mut self) -> Vec<Choice> {
        self.end_merge();
        self.choices
    }
}
