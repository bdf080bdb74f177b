//! The published report beside the measured one, and what the differences between them are made of.
//! Every explanation is computed from figures of both.

use super::published::{PUBLISHED, Published};
use super::{Riak, record_bytes};
use crate::report::figures::grouped_decimal as decimal;
use crate::report::ratios::{EngineLines, mean};
use crate::report::summary::Summary;
use crate::report::tables::{NOT_THERE, Table, head};
use crate::workload::Spec;

/// What was measured of one engine.
struct Measured<'a> {
    lines: EngineLines,
    engine: &'a str,
    items: u64,
    /// Microseconds an item.
    item_us: Option<f64>,
    /// Bytes a copy when the engine was closed after the inserts.
    closed: Option<f64>,
    /// Bytes a copy after compaction; `None` where the directory is smaller than before the
    /// inserts, since files that were allocated ahead are gone.
    compacted: Option<f64>,
}

impl<'a> Measured<'a> {
    fn new(riak: &Riak, summary: &Summary<'a>) -> Self {
        let items = riak.items.get() as f64;
        let copies = items * f64::from(riak.ring.copies.get());
        let change = riak.size_change();
        let lines = EngineLines::new(summary, &change);
        let compacted = super::SizeChange { to: "compact".to_owned(), ..change };
        let compacted = EngineLines::new(summary, &compacted);
        Self {
            engine: summary.engine,
            items: riak.items.get(),
            item_us: mean(&lines.times).map(|seconds| seconds / items * 1e6),
            closed: mean(&lines.size_changes).map(|bytes| bytes / copies),
            compacted: mean(&compacted.size_changes)
                .map(|bytes| bytes / copies)
                .filter(|&bytes| bytes > 0.0),
            lines,
        }
    }

    /// How often shorter the data is after compaction, where it is shorter.
    fn compression(&self) -> Option<f64> {
        let compacted = self.compacted.filter(|&bytes| bytes < data_bytes())?;
        Some(data_bytes() / compacted)
    }

    /// The share of the data that had its own length still when the engine was closed, if the rest
    /// was as short as it is after compaction.
    fn uncompressed(&self) -> Option<f64> {
        self.compression()?;
        Some(uncompressed(self.closed?, self.compacted?, data_bytes()))
    }
}

/// Bytes of key and value.
fn data_bytes() -> f64 {
    record_bytes() as f64
}

/// The share of copies of `long` bytes, if the others have `short` and the mean is `mean`.
fn uncompressed(mean: f64, short: f64, long: f64) -> f64 {
    ((mean - short) / (long - short)).clamp(0.0, 1.0)
}

/// Both tables.
pub(super) fn tables(riak: &Riak, summaries: &[Summary<'_>]) -> Vec<Table> {
    let sound = summaries.iter().filter(|summary| summary.problem.is_none());
    let measured: Vec<Measured<'_>> = sound.map(|summary| Measured::new(riak, summary)).collect();
    vec![report(&measured), differences(&measured)]
}

fn report(measured: &[Measured<'_>]) -> Table {
    let list = |figures: &[f64], decimals| {
        let figures: Vec<String> =
            figures.iter().map(|&figure| decimal(figure, decimals)).collect();
        if figures.is_empty() { NOT_THERE.to_owned() } else { figures.join("\n") }
    };
    let rows = measured.iter().map(|measured| {
        let lines = &measured.lines;
        vec![
            measured.engine.to_owned(),
            list(&lines.times, 3),
            figure(mean(&lines.times), 3),
            list(&lines.size_changes, 0),
            figure(mean(&lines.size_changes), 1),
            figure(measured.closed, 0),
        ]
    });
    let published = PUBLISHED.iter().map(|published| {
        vec![
            published.name(),
            list(published.seconds, 3),
            decimal(published.mean_seconds, 3),
            list(published.size_changes, 0),
            decimal(published.mean_size_change, 1),
            decimal(published.copy_bytes(), 0),
        ]
    });
    Table {
        title: "Riak's report: insert times in seconds, size changes in bytes".into(),
        head: head(&["", "times", "mean time", "size changes", "mean size change", "a copy"]),
        rows: rows.chain(published).collect(),
        notes: vec![
            "A copy: the mean size change by items and copies. Sums of the lengths of files and \
             folders, from before the inserts until the engines were closed, nothing compacted. An \
             engine that allocates its files ahead grows by less than it holds."
                .into(),
        ],
    }
}

fn differences(measured: &[Measured<'_>]) -> Table {
    let rows = measured.iter().map(|measured| {
        let counterpart = Published::counterpart(measured.engine, measured.items);
        let share = measured.item_us.zip(counterpart).map(|(us, of)| us / of.item_us() * 100.0);
        vec![
            measured.engine.to_owned(),
            figure(measured.item_us, 2),
            figure(share, 2),
            figure(measured.closed, 0),
            figure(measured.closed.map(|bytes| bytes - data_bytes()), 0),
            figure(measured.compacted, 0),
            figure(measured.compression(), 2),
            figure(measured.uncompressed().map(|share| share * 100.0), 0),
        ]
    });
    let published = PUBLISHED.iter().map(|published| {
        vec![
            published.name(),
            decimal(published.item_us(), 2),
            decimal(100.0, 2),
            decimal(published.copy_bytes(), 0),
            decimal(published.copy_bytes() - data_bytes(), 0),
            NOT_THERE.to_owned(),
            NOT_THERE.to_owned(),
            figure(published_uncompressed(published).map(|share| share * 100.0), 0),
        ]
    });
    let mut notes = vec![format!(
        "us: microseconds an item, with all its copies. %: of the published time. more: bytes of a \
         copy beyond the {} of key and value. compacted: bytes of a copy after compaction. \
         shorter: how often, by compression. long: the percentage of the data that had its full \
         length when it was closed, if the rest was as short as after compaction; for Riak's \
         LevelDB with 5,000 items, if its copies were as long as Bitcask's in the log and as short \
         as those of 500,000 items in tables.",
        decimal(data_bytes(), 0)
    )];
    notes.extend(measured.iter().flat_map(explanations));
    Table {
        title: "What the differences are made of".into(),
        head: head(&["", "us", "%", "a copy", "more", "compacted", "shorter", "long %"]),
        rows: rows.chain(published).collect(),
        notes,
    }
}

/// Of the published LevelDB that was still mostly in its logs.
fn published_uncompressed(published: &Published) -> Option<f64> {
    let [bitcask, small, _, large] = &PUBLISHED;
    (published.engine == small.engine && published.items == small.items)
        .then(|| uncompressed(small.copy_bytes(), large.copy_bytes(), bitcask.copy_bytes()))
}

/// What the lab can say of an engine beside its published counterpart.
fn explanations(measured: &Measured<'_>) -> Vec<String> {
    let engine = measured.engine;
    let Some(published) = Published::counterpart(engine, measured.items) else { return Vec::new() };
    let name = published.name();
    let mut said = Vec::new();
    if let Some(us) = measured.item_us.filter(|&us| us > 0.0) {
        said.push(format!(
            "Time: {engine} took {} us an item, and {name} items, {}: {} times as much. What is not \
             here is a server, a network and a quorum; and the machine was another.",
            decimal(us, 2),
            decimal(published.item_us(), 0),
            decimal(published.item_us() / us, 1),
        ));
    }
    if let Some(closed) = measured.closed {
        let causes = match measured.compression() {
            None => "here it is key and value alone.",
            Some(_) => {
                "here it is key and value alone; and not the same part of the data had been \
                 compressed when the directory was measured."
            }
        };
        said.push(format!(
            "Space: a copy took {} bytes in {engine}, and {} in {name} items: {} bytes apart. Riak \
             stores an object, with bucket, vector clock and metadata around the value; {causes}",
            decimal(closed, 0),
            decimal(published.copy_bytes(), 0),
            decimal((published.copy_bytes() - closed).abs(), 0),
        ));
    }
    if let (Some(times), Some(share)) = (measured.compression(), measured.uncompressed()) {
        said.push(format!(
            "Compression: compacted, {engine} holds key and value in {} of their bytes ({} times \
             shorter), and {} % of the data had not come so far when it was closed.",
            decimal(1.0 / times, 2),
            decimal(times, 2),
            decimal(share * 100.0, 0),
        ));
    }
    said
}

fn figure(figure: Option<f64>, decimals: usize) -> String {
    figure.map_or(NOT_THERE.into(), |figure| decimal(figure, decimals))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the published report itself and its readers have them: 2.4 ms an item, 3,258 bytes a copy
    /// in Bitcask, and in LevelDB 1,085 of 500,000 items and 2,927 of 5,000.
    #[test]
    fn the_published_figures_agree_with_each_other() {
        let bytes = PUBLISHED.map(|published| decimal(published.copy_bytes(), 0));
        assert_eq!(bytes, ["3,258", "2,927", "3,258", "1,085"]);
        let us = PUBLISHED.map(|published| decimal(published.item_us(), 0));
        assert_eq!(us, ["2,407", "2,445", "2,403", "3,844"]);
        for published in PUBLISHED {
            let seconds = mean(published.seconds).unwrap();
            assert!((seconds - published.mean_seconds).abs() < 0.001, "{seconds}");
            assert_eq!(mean(published.size_changes).unwrap(), published.mean_size_change);
        }
    }

    /// By hand: (2,927 − 1,085) / (3,258 − 1,085) is 0.848.
    #[test]
    fn the_small_published_runs_were_in_the_logs_for_the_most() {
        let shares = PUBLISHED.map(|published| published_uncompressed(&published));
        assert_eq!((shares[0], shares[2], shares[3]), (None, None, None));
        assert!((shares[1].unwrap() - 0.848).abs() < 0.001, "{shares:?}");
        assert_eq!(uncompressed(50.0, 100.0, 300.0), 0.0);
        assert_eq!(uncompressed(400.0, 100.0, 300.0), 1.0);
    }

    #[test]
    fn an_engine_is_held_against_its_own_kind_only() {
        let items = |engine, items| Published::counterpart(engine, items).map(Published::name);
        assert_eq!(items("bitcask", 5_000).unwrap(), "Riak's Bitcask, 5,000");
        assert_eq!(items("leveldb", 300).unwrap(), "Riak's LevelDB, 5,000");
        assert_eq!(items("lsm", 500_000).unwrap(), "Riak's LevelDB, 500,000");
        assert_eq!(items("rocksdb", 500_000), None);
    }
}
