//! db_bench's report: a table a benchmark with the engines beside each other, and the lines that
//! the original prints.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::Dbbench;
use super::bench::{self, Bench};
use crate::measure::told::COMMON;
use crate::report::figures::{grouped, grouped_decimal as decimal};
use crate::report::summary::Summary;
use crate::report::tables::{NOT_THERE, Table, middle};
use crate::results::{Comparison, Run};
use crate::workload::op::Kind;

/// Engines beside each other in 100 columns.
const ENGINES_A_TABLE: usize = 6;

/// What db_bench tells of a benchmark.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Figures {
    seconds: f64,
    threads: f64,
    /// Entries that were written, read or sought, or whatever else was done.
    done: u64,
    /// Bytes of keys and values.
    bytes: u64,
    not_found: u64,
    /// What the thread beside did meanwhile.
    beside: u64,
}

impl Figures {
    fn of(dbbench: &Dbbench, bench: Bench, name: &str, run: &Run) -> Option<Self> {
        let phase = run.phase(name)?;
        let mut figures = Self {
            seconds: phase.seconds,
            threads: 1.0,
            done: if bench == Bench::Open { dbbench.openings() } else { 1 },
            bytes: 0,
            not_found: 0,
            beside: 0,
        };
        let Some(traffic) = &phase.traffic else { return Some(figures) };
        // A walk is one call of one thread.
        let is_walk = matches!(bench, Bench::ReadSeq | Bench::ReadReverse);
        figures.threads = if is_walk { 1.0 } else { f64::from(traffic.threads) };
        // A sync is a part of its write.
        let kinds = || traffic.kinds.iter().filter(|(kind, _)| **kind != Kind::Sync);
        figures.done =
            kinds().map(|(_, kind)| if is_walk { kind.visited } else { kind.operations }).sum();
        figures.bytes = kinds().map(|(_, kind)| kind.written_bytes + kind.read_bytes).sum();
        figures.not_found = kinds().map(|(_, kind)| kind.not_found).sum();
        let beside = traffic.background.values();
        figures.beside = beside.map(|kind| kind.operations).sum();
        Some(figures)
    }

    /// Of one thread, as db_bench counts.
    fn micros(self) -> f64 {
        self.seconds * self.threads * 1e6 / self.done.max(1) as f64
    }

    fn megabytes_a_second(self) -> f64 {
        self.bytes as f64 / f64::from(1 << 20) / self.seconds.max(1e-9)
    }

    fn a_second(self) -> f64 {
        self.done as f64 / self.seconds.max(1e-9)
    }

    fn found(self) -> u64 {
        self.done.saturating_sub(self.not_found)
    }
}

/// A table for each benchmark, of `ENGINES_A_TABLE` engines each.
pub(super) fn tables(dbbench: &Dbbench, summaries: &[Summary<'_>]) -> Vec<Table> {
    let mut tables = Vec::new();
    for (bench, name) in bench::phases(&dbbench.benchmarks) {
        for some in summaries.chunks(ENGINES_A_TABLE) {
            let rows = match bench {
                Bench::Stats => told(&name, some),
                _ => figures(dbbench, bench, &name, some),
            };
            let mut head = vec![String::new()];
            head.extend(some.iter().map(|summary| summary.engine.to_owned()));
            tables.push(Table { title: name.clone(), head, rows, notes: reasons(&name, some) });
        }
    }
    if let Some(last) = tables.last_mut() {
        last.notes.push(
            "micros/op: of one thread. MB: 2^20 bytes of keys and values that were written, and of \
             those that were read. Nothing waits for background work between two benchmarks, as in \
             db_bench, unless waitforcompaction is among them."
                .into(),
        );
    }
    tables
}

fn figures(
    dbbench: &Dbbench,
    bench: Bench,
    name: &str,
    summaries: &[Summary<'_>],
) -> Vec<Vec<String>> {
    let row = |label: &str, of: &dyn Fn(Figures) -> Option<f64>, write: fn(f64) -> String| {
        let mut row = vec![label.to_owned()];
        row.extend(summaries.iter().map(|summary| {
            let figure = summary.figure(|run| of(Figures::of(dbbench, bench, name, run)?));
            middle(figure, write)
        }));
        row
    };
    let whole = |figure: f64| decimal(figure, 0);
    let mut rows = vec![
        row("micros/op", &|figures| Some(figures.micros()), |micros| decimal(micros, 3)),
        row("ops/s", &|figures| Some(figures.a_second()), whole),
        row(
            "MB/s",
            &|figures| Some(figures.megabytes_a_second()).filter(|rate| *rate > 0.0),
            |rate| decimal(rate, 1),
        ),
        row("ops", &|figures| Some(figures.done as f64), whole),
        row("found", &|figures| Some(figures.found() as f64), whole),
        row("ops beside", &|figures| Some(figures.beside as f64), whole),
    ];
    let is_told = |row: &Vec<String>| match row[0].as_str() {
        "MB/s" => row[1..].iter().any(|cell| cell != NOT_THERE),
        "found" => bench.tells_found() || matches!(bench, Bench::ReadHot | Bench::ReadMissing),
        "ops beside" => row[1..].iter().any(|cell| cell != "0" && cell != NOT_THERE),
        _ => true,
    };
    rows.retain(is_told);
    rows
}

/// What engines told of themselves: a row a name, of the first run of each. What only one engine
/// has a name for is in the result, and in the lines.
fn told(phase: &str, summaries: &[Summary<'_>]) -> Vec<Vec<String>> {
    let row = |name: &str| {
        let mut row = vec![name.to_owned()];
        row.extend(summaries.iter().map(|summary| {
            let told = summary.runs.first().and_then(|run| run.stats.get(phase)?.get(name));
            told.and_then(|number| number.parse().ok()).map_or(NOT_THERE.into(), grouped)
        }));
        row
    };
    COMMON.into_iter().map(row).collect()
}

/// Why engines left the benchmark out.
fn reasons(name: &str, summaries: &[Summary<'_>]) -> Vec<String> {
    let reasons: BTreeSet<&String> = summaries
        .iter()
        .flat_map(|summary| &summary.runs)
        .filter_map(|run| run.left_out.get(name).or(run.not_applicable.as_ref()))
        .collect();
    reasons.into_iter().map(|reason| format!("n/a: {reason}.")).collect()
}

/// The lines that db_bench prints, of every run.
pub(super) fn lines(dbbench: &Dbbench, comparison: &Comparison) -> String {
    let mut out = String::new();
    for run in &comparison.runs {
        // Writing to a string does not fail.
        let _ = write_run(&mut out, dbbench, run);
    }
    out
}

fn write_run(out: &mut String, dbbench: &Dbbench, run: &Run) -> std::fmt::Result {
    writeln!(out, "\n# {}, run {}", run.engine, run.repeat)?;
    let compressed = f64::from(dbbench.value_size) * dbbench.compression_ratio;
    writeln!(out, "Keys:       {} bytes each", super::KEY_BYTES)?;
    writeln!(
        out,
        "Values:     {} bytes each ({compressed:.0} bytes after compression)",
        dbbench.value_size
    )?;
    writeln!(out, "Entries:    {}", dbbench.num)?;
    writeln!(out, "{}", "-".repeat(48))?;
    for (bench, name) in bench::phases(&dbbench.benchmarks) {
        match Figures::of(dbbench, bench, &name, run) {
            Some(_) if bench == Bench::Stats => {
                writeln!(out)?;
                let told = run.stats.get(&name).into_iter().flatten();
                for (name, value) in told {
                    writeln!(out, "{name}: {value}")?;
                }
            }
            Some(figures) => writeln!(out, "{}", line(dbbench, bench, figures))?,
            None => writeln!(out, "{bench:<12} : n/a")?,
        }
    }
    Ok(())
}

fn line(dbbench: &Dbbench, bench: Bench, figures: Figures) -> String {
    let mut extra = String::new();
    if bench.counts_bytes() && figures.bytes > 0 {
        extra += &format!(" {:6.1} MB/s", figures.megabytes_a_second());
    }
    if bench.tells_found() {
        extra += &format!(" ({} of {} found)", figures.found(), figures.done);
    } else if dbbench.writes(bench) > 0 && figures.done != dbbench.num {
        extra += &format!(" ({} ops)", figures.done);
    }
    format!("{bench:<12} : {:11.3} micros/op;{extra}", figures.micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dbbench() -> Dbbench {
        Dbbench {
            benchmarks: Vec::new(),
            num: 1_000_000,
            reads: 1_000_000,
            value_size: 100,
            compression_ratio: 0.5,
        }
    }

    /// Lines that LevelDB 1.23's db_bench printed, from the figures that stand in them.
    #[test]
    fn the_lines_are_the_originals() {
        let figures = |micros: f64, done: u64, bytes, not_found| Figures {
            seconds: micros * done as f64 / 1e6,
            threads: 1.0,
            done,
            bytes,
            not_found,
            beside: 0,
        };
        let all = 116 * 1_000_000;
        for (bench, figures, expected) in [
            (
                Bench::FillSeq,
                figures(13.025, 1_000_000, all, 0),
                "fillseq      :      13.025 micros/op;    8.5 MB/s",
            ),
            (
                Bench::FillSync,
                figures(1_378.532, 1_000, 116 * 1_000, 0),
                "fillsync     :    1378.532 micros/op;    0.1 MB/s (1000 ops)",
            ),
            (
                Bench::ReadRandom,
                figures(77.688, 1_000_000, 100 * 864_322, 1_000_000 - 864_322),
                "readrandom   :      77.688 micros/op; (864322 of 1000000 found)",
            ),
            (
                Bench::Fill100K,
                figures(307.030, 1_000, 100_016 * 1_000, 0),
                "fill100K     :     307.030 micros/op;  310.7 MB/s (1000 ops)",
            ),
            (Bench::Compact, figures(211.0, 1, 0, 0), "compact      :     211.000 micros/op;"),
        ] {
            assert_eq!(line(&dbbench(), bench, figures), expected);
        }
    }

    /// By hand: two threads for a second, 500 operations each.
    #[test]
    fn micros_are_those_of_a_thread() {
        let figures = Figures {
            seconds: 1.0,
            threads: 2.0,
            done: 1_000,
            bytes: 3 << 20,
            not_found: 10,
            beside: 0,
        };
        assert_eq!((figures.micros(), figures.a_second()), (2_000.0, 1_000.0));
        assert_eq!((figures.megabytes_a_second(), figures.found()), (3.0, 990));
    }
}
