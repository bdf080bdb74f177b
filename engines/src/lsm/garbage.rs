//! How much of level 0 is garbage: overwrites something, or is overwritten itself.
//!
//! It is what tells an engine that is being filled from one that is being updated. Of the first,
//! level 0 may grow, since merging it gives nothing back; of the second it must not.

use std::sync::Arc;

use super::key_count::KeySketch;
use super::version::{TableFile, Version};

/// Of more tables than these no sketches are kept: 4 KiB each, all looked through for every new
/// version.
pub(crate) const SKETCHED_TABLES_MAX: usize = 1000;

/// So much garbage beside what is to be kept is worth a merge, and from there on writes pay for it.
/// With half as much there would be twice as many merges. What is written until the merge is done
/// comes on top, and the logs of the memtables: about 0.4 in all, where updates come as fast as they
/// can.
pub(crate) const GARBAGE_MAX: f64 = 0.15;

/// The bytes in all tables for each one that would be left if level 0 were merged all the way down,
/// less 1; `None` if that is not known, because of tables that were there at open or of too many.
/// Bytes go by entries here: of a key that is written again the value is taken to be as large as
/// before.
pub(crate) fn estimate(version: &Version) -> Option<f64> {
    let level0 = union(version.level(0))?;
    let mut all = union(version.tables().filter(|(level, _)| *level > 0).map(|(_, table)| table))?;
    let below = all.distinct();
    all.merge(&level0);
    let new_keys = (all.distinct() - below).max(0.0);
    let level0_bytes = bytes(version.level(0));
    let garbage = level0_bytes * (1.0 - (new_keys / level0.added().max(1.0))).max(0.0);
    let kept = bytes(version.tables().map(|(_, table)| table)) - garbage;
    Some(garbage / kept.max(1.0))
}

fn union<'a>(tables: impl IntoIterator<Item = &'a Arc<TableFile>>) -> Option<KeySketch> {
    let mut union = KeySketch::default();
    for table in tables {
        union.merge(table.keys.as_ref()?);
    }
    Some(union)
}

#[expect(clippy::cast_precision_loss, reason = "an estimate needs no more than a few digits")]
fn bytes<'a>(tables: impl IntoIterator<Item = &'a Arc<TableFile>>) -> f64 {
    tables.into_iter().map(|table| table.info.size).sum::<u64>() as f64
}
