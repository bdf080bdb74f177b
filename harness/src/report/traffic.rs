//! The tables of operations and of what they took: latency by kind, processor, memory, device.

use super::figures::{grouped, grouped_decimal, megabytes, seconds};
use super::summary::{Spread, Summary};
use super::tables::{NOT_THERE, Table, head, middle};
use crate::results::{Comparison, KindFigures, Phase, Run, Traffic};
use crate::stats::steady::Steady;
use crate::workload::op::Kind;

/// Above this share of the clients' time, the laboratory is what is measured.
const CLIENT_BOUND: f64 = 0.2;

/// A table for each phase with operations and each kind of them.
pub fn latencies(comparison: &Comparison, summaries: &[Summary<'_>]) -> Vec<Table> {
    let mut tables = Vec::new();
    for (phase, kinds) in phases(comparison) {
        for kind in kinds {
            tables.push(latency(summaries, &phase, kind));
        }
    }
    tables
}

/// The phases with operations, in order, and the kinds of operations that any run had in them.
pub(super) fn phases(comparison: &Comparison) -> Vec<(String, Vec<Kind>)> {
    let mut found: Vec<(String, Vec<Kind>)> = Vec::new();
    for phase in comparison.runs.iter().flat_map(|run| &run.phases) {
        let Some(traffic) = &phase.traffic else { continue };
        let at = found.iter().position(|(name, _)| *name == phase.name).unwrap_or_else(|| {
            found.push((phase.name.clone(), Vec::new()));
            found.len() - 1
        });
        let missing: Vec<Kind> =
            traffic.kinds.keys().filter(|kind| !found[at].1.contains(kind)).copied().collect();
        found[at].1.extend(missing);
    }
    found
}

fn latency(summaries: &[Summary<'_>], phase: &str, kind: Kind) -> Table {
    let figure = |summary: &Summary<'_>, pick: &dyn Fn(&Phase, &KindFigures) -> f64| {
        summary.figure(|run| {
            let phase = run.phase(phase)?;
            Some(pick(phase, phase.traffic.as_ref()?.kinds.get(&kind)?))
        })
    };
    let rate = |summary: &Summary<'_>| {
        figure(summary, &|phase, figures| figures.operations as f64 / phase.seconds.max(1e-9))
    };
    let ranked = summaries.iter().filter(|summary| summary.is_ranked());
    let best = ranked.filter_map(rate).map(|rate| rate.median).reduce(f64::max);
    let rows = summaries.iter().map(|summary| {
        let us = |pick: &dyn Fn(&KindFigures) -> u64| {
            middle(figure(summary, &|_, figures| pick(figures) as f64 / 1e3), micros)
        };
        let ratio = rate(summary).zip(best).filter(|(rate, _)| rate.median > 0.0);
        vec![
            summary.engine.to_owned(),
            middle(rate(summary), |rate| grouped_decimal(rate, 0)),
            ratio.map_or(NOT_THERE.into(), |(rate, best)| format!("{:.2}", best / rate.median)),
            middle(figure(summary, &|_, figures| figures.latency.mean_ns / 1e3), micros),
            us(&|figures| figures.latency.p50_ns),
            us(&|figures| figures.latency.p99_ns),
            us(&|figures| figures.latency.p999_ns),
            us(&|figures| figures.latency.p9999_ns),
            us(&|figures| figures.latency.max_ns),
        ]
    });
    Table {
        title: format!("{phase}, {kind}: operations a second, and latency in microseconds"),
        head: head(&["engine", "a second", "×", "mean", "p50", "p99", "p99.9", "p99.99", "max"]),
        rows: rows.collect(),
        notes: notes(summaries, phase, kind),
    }
}

/// What the laboratory itself costs, and where it is too much.
fn notes(summaries: &[Summary<'_>], phase: &str, kind: Kind) -> Vec<String> {
    let traffic = |run: &Run| -> Option<(Traffic, f64)> {
        let phase = run.phase(phase)?;
        Some((phase.traffic.clone()?, phase.seconds))
    };
    let runs =
        || summaries.iter().flat_map(|summary| summary.runs.iter().map(move |run| (summary, *run)));
    let own = Spread::of(runs().filter_map(|(_, run)| traffic(run)?.0.own_ns));
    let mut notes: Vec<String> = own
        .map(|own| {
            format!(
                "The laboratory's own part of each: {:.0} ns, measured with an engine that does \
                 nothing.",
                own.median
            )
        })
        .into_iter()
        .collect();
    for summary in summaries {
        let share = Spread::of(summary.runs.iter().filter_map(|run| {
            let (traffic, seconds) = traffic(run)?;
            traffic.own_share(seconds)
        }));
        if let Some(share) = share.filter(|share| share.median > CLIENT_BOUND) {
            notes.push(format!(
                "Warning: {} waits for the client, which takes {:.0} % of the time: it may be \
                 faster than this shows.",
                summary.engine,
                (share.median * 100.0).min(100.0)
            ));
        }
    }
    notes.extend(summaries.iter().filter_map(|summary| unsteady(summary, phase)));
    notes.extend(found_otherwise(summaries, phase, kind));
    notes
}

/// Says so if records were there for some engines and not for others, as may be where several
/// threads use one record; where the operations determine what is found, it is a problem.
fn found_otherwise(summaries: &[Summary<'_>], phase: &str, kind: Kind) -> Option<String> {
    let runs = summaries.iter().flat_map(|summary| &summary.runs);
    let missed = runs.filter(|run| run.verified.is_some()).filter_map(|run| {
        let traffic = run.phase(phase)?.traffic.as_ref()?;
        let counts = !traffic.determined && !traffic.time_limited;
        Some(traffic.kinds.get(&kind).filter(|_| counts)?.not_found)
    });
    let missed: Vec<u64> = missed.collect();
    let (least, most) = (missed.iter().min()?, missed.iter().max()?);
    (least < most).then(|| {
        format!(
            "From {} to {} times the record was not there: nothing orders what several threads do \
             with one record, here or before, so that no two runs need to find the same.",
            grouped(*least),
            grouped(*most)
        )
    })
}

/// Says so if an engine did not come to a steady rate in any of its runs.
fn unsteady(summary: &Summary<'_>, phase: &str) -> Option<String> {
    let lines = summary.runs.iter().filter_map(|run| {
        let traffic = run.phase(phase)?.traffic.as_ref()?;
        Steady::of(&traffic.timeline)
    });
    let lines: Vec<Steady> = lines.collect();
    if lines.is_empty() || lines.iter().any(Steady::is_steady) {
        return None;
    }
    let drift = Spread::of(lines.iter().map(|line| line.drift * 100.0))?.median;
    Some(format!(
        "{} did not become steady: its second half had {drift:+.0} % operations against the first.",
        summary.engine
    ))
}

/// What each engine took from the machine, from opening to closing.
pub fn resources(summaries: &[Summary<'_>]) -> Table {
    let rows = summaries.iter().map(|summary| {
        let before_reopening = |run: &Run, pick: &dyn Fn(&Phase) -> Option<f64>| {
            run.until_closed().map(pick).sum::<Option<f64>>()
        };
        let most = |pick: fn(&Phase) -> Option<u64>| {
            let of_run = move |run: &Run| {
                run.until_closed().filter_map(pick).max().map(|bytes| bytes as f64)
            };
            middle(summary.figure(of_run), megabytes)
        };
        let times = |figure: fn(&Run) -> Option<f64>| {
            middle(summary.figure(figure), |ratio| grouped_decimal(ratio, 2))
        };
        let cpu =
            summary.figure(|run| before_reopening(run, &|phase| Some(phase.usage.cpu_seconds())));
        let written = summary.figure(|run| {
            before_reopening(run, &|phase| Some(phase.usage.device_written_bytes? as f64))
        });
        vec![
            summary.engine.to_owned(),
            middle(cpu, seconds),
            most(|phase| phase.seen.peak_own_bytes),
            most(|phase| phase.seen.peak_mapped_bytes),
            middle(written, megabytes),
            times(Run::write_amplification),
            times(Run::read_amplification),
            times(Run::space_amplification),
            middle(summary.figure(|run| Some(run.peak_disk_bytes() as f64)), megabytes),
        ]
    });
    Table {
        title: "What it took until it was closed: CPU in seconds, memory and device in MB".into(),
        head: head(&[
            "engine",
            "CPU",
            "memory",
            "mapped",
            "written",
            "write ×",
            "read ×",
            "space ×",
            "peak disk",
        ]),
        rows: rows.collect(),
        notes: vec![
            "memory: the most of the process's own, the laboratory's share included; mapped: of \
             files. write ×, read ×: device bytes for each byte that was put or read; space ×: \
             bytes of the directory in the end for each live byte."
                .into(),
        ],
    }
}

/// Microseconds with three significant places.
fn micros(micros: f64) -> String {
    match micros {
        ..10.0 => format!("{micros:.2}"),
        ..100.0 => format!("{micros:.1}"),
        _ => grouped_decimal(micros, 0),
    }
}
