//! What is drawn of a comparison, and the tables beside the pictures that have none elsewhere.

use super::charts::{self, Bar, Curve, Picture};
use super::findings::{Figure, Rum};
use crate::Result;
use crate::report::figures::megabytes;
use crate::report::summary::Summary;
use crate::report::tables::{NOT_THERE, Table};
use crate::report::traffic;
use crate::results::{Comparison, Latency, Run};

/// A picture for each figure that engines can win.
pub(super) fn bars(summaries: &[Summary<'_>], figures: &[Figure]) -> Result<Vec<Picture>> {
    let pictures = figures.iter().map(|figure| {
        let bars = summaries.iter().enumerate().filter_map(|(at, summary)| {
            let ratio = figure.column.ratio_to_best(at)?;
            Some(Bar { name: labelled(summary), ratio: ratio.ratio, interval: ratio.interval })
        });
        let mut bars: Vec<Bar> = bars.collect();
        bars.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
        // Few runs have no intervals.
        let has_intervals = bars.iter().any(|bar| bar.interval.is_some());
        let interval = if has_intervals { ", with its 95 % interval" } else { "" };
        let title = format!("{}: ratio to the best{interval}; less is better", figure.name);
        charts::bars(title, &bars)
    });
    pictures.collect()
}

/// What is not ranked says so.
pub(super) fn labelled(summary: &Summary<'_>) -> String {
    match summary.is_ranked() {
        true => summary.engine.to_owned(),
        false => format!("({})", summary.engine),
    }
}

/// Picks a percentile in nanoseconds.
type Percentile = fn(&Latency) -> u64;

const PERCENTILES: [(&str, Percentile); 6] = [
    ("p50", |latency| latency.p50_ns),
    ("p90", |latency| latency.p90_ns),
    ("p99", |latency| latency.p99_ns),
    ("p99.9", |latency| latency.p999_ns),
    ("p99.99", |latency| latency.p9999_ns),
    ("max", |latency| latency.max_ns),
];

/// A picture for each phase and kind of operation.
pub(super) fn latencies(
    comparison: &Comparison,
    summaries: &[Summary<'_>],
) -> Result<Vec<Picture>> {
    let mut pictures = Vec::new();
    let places = PERCENTILES.map(|(name, _)| name.to_owned());
    for (phase, kinds) in traffic::phases(comparison) {
        for kind in kinds {
            let curves = summaries.iter().map(|summary| Curve {
                name: summary.engine.to_owned(),
                figures: PERCENTILES
                    .iter()
                    .map(|(_, of)| {
                        let latency = |run: &Run| {
                            let traffic = run.phase(&phase)?.traffic.as_ref()?;
                            Some(of(&traffic.kinds.get(&kind)?.latency) as f64 / 1e3)
                        };
                        Some(summary.figure(latency)?.median)
                    })
                    .collect(),
            });
            let curves: Vec<Curve> = curves.filter(Curve::is_known).collect();
            let title = format!("{phase}, {kind}: latency by percentile, medians of the runs");
            pictures.push(charts::curves(title, &places, "microseconds", true, &curves)?);
        }
    }
    Ok(pictures)
}

/// The phases after which the directory is looked at, of all engines together.
fn disk_phases<'a>(summaries: &[Summary<'a>]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for phase in summaries.iter().flat_map(|summary| &summary.runs).flat_map(|run| &run.phases) {
        let is_known = names.contains(&phase.name.as_str());
        if !is_known && !["verify", "count"].contains(&phase.name.as_str()) {
            names.push(&phase.name);
        }
    }
    names
}

fn grown(summary: &Summary<'_>, phase: &str) -> Option<f64> {
    Some(summary.growth(phase, |usage| usage.apparent_bytes)?.median)
}

/// How the directories grew and shrank.
pub(super) fn disk(summaries: &[Summary<'_>]) -> Result<Vec<Picture>> {
    let phases = disk_phases(summaries);
    let curves = summaries.iter().map(|summary| Curve {
        name: summary.engine.to_owned(),
        figures: phases.iter().map(|phase| Some(grown(summary, phase)? / 1e6)).collect(),
    });
    let curves: Vec<Curve> = curves.filter(Curve::is_known).collect();
    if curves.is_empty() || phases.len() < 2 {
        return Ok(Vec::new());
    }
    let places: Vec<String> = phases.iter().map(|&phase| phase.to_owned()).collect();
    let title = "Growth of the directory after each phase, in MB (10^6 bytes)".to_owned();
    Ok(vec![charts::curves(title, &places, "MB", false, &curves)?])
}

/// The same in figures, with the peak.
pub(super) fn disk_table(summaries: &[Summary<'_>]) -> Table {
    let phases = disk_phases(summaries);
    let cell = |figure: Option<f64>| figure.map_or(NOT_THERE.into(), megabytes);
    let rows = summaries.iter().map(|summary| {
        let mut row = vec![summary.engine.to_owned()];
        row.extend(phases.iter().map(|phase| cell(grown(summary, phase))));
        let peak = summary.figure(|run| Some(run.peak_disk_bytes() as f64));
        row.push(cell(peak.map(|peak| peak.median)));
        row
    });
    let head = ["engine"].into_iter().chain(phases.iter().copied()).chain(["peak blocks"]);
    Table {
        title: "Disk space in MB (10^6 bytes) after each phase".into(),
        head: head.map(str::to_owned).collect(),
        rows: rows.collect(),
        notes: vec![
            "Growth of the directory in lengths of files; peak blocks: the most that the file \
             system had given it at once. Medians of the runs."
                .into(),
        ],
    }
}

/// Reading against updating.
pub(super) fn rum(cards: &[Rum]) -> Result<Vec<Picture>> {
    if cards.is_empty() {
        return Ok(Vec::new());
    }
    let points: Vec<(String, [f64; 2])> = cards
        .iter()
        .map(|card| {
            let [read, update, _] = card.overheads;
            let front = if card.is_on_front { " *" } else { "" };
            (format!("{}{front}", card.engine), [read, update])
        })
        .collect();
    let title = "Overheads of reading and updating against the best; *: on the Pareto front of \
                 all three";
    Ok(vec![charts::points(title.into(), ["reading ×", "updating ×"], &points)?])
}

/// All three overheads.
pub(super) fn rum_table(cards: &[Rum]) -> Table {
    let rows = cards.iter().map(|card| {
        let mut row = vec![card.engine.clone()];
        row.extend(card.overheads.map(|overhead| format!("{overhead:.2}")));
        row.push(if card.is_on_front { "yes" } else { "no" }.to_owned());
        row
    });
    Table {
        title: "Overheads against the best: the RUM card".into(),
        head: ["engine", "read ×", "update ×", "memory ×", "on the front"]
            .map(str::to_owned)
            .into(),
        rows: rows.collect(),
        notes: vec![
            "read: the time to read everything back by key; update: the time of load, quiesce and \
             compact; memory, in the sense of that trade: the disk space in the end. On the front: \
             no other engine is as good in all three and better in one."
                .into(),
        ],
    }
}
