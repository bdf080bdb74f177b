//! The result as CSV, for programs that draw and compute: a row for each phase of each run.
//!
//! The first row names the columns; `results/README.md` tells what each means. First come the
//! columns of the run, the same in each of its rows, then those of the phase, then, for each kind of
//! operation that occurs in the result, those of `KINDS` behind the name of the kind, and once more
//! for the thread beside the clients, if there was one, behind `beside_` and the name. What was
//! not measured is empty. A run that ended before its first phase, and an engine that could not
//! take part, have one row without a phase. Time lines and whole histograms are in the JSON alone.

use std::collections::{BTreeMap, BTreeSet};

use crate::results::{Comparison, KindFigures, Phase, Run, Traffic};
use crate::workload::op::Kind;
use crate::{Error, Result};

/// The text of a cell; `None` where there is no figure.
type Cell = Option<String>;

/// A column: its name, and where its figure comes from.
struct Column<T: ?Sized>(&'static str, fn(&T) -> Cell);

const RUN: &[Column<Run>] = &[
    Column("engine", |run| cell(&run.engine)),
    Column("kind", |run| cell(&run.kind)),
    Column("version", |run| cell(&run.version)),
    Column("repeat", |run| (run.repeat > 0).then(|| run.repeat.to_string())),
    Column("problem", Run::problem),
    Column("not_applicable", |run| run.not_applicable.clone()),
    Column("records_read_back", |run| cell(run.verified?.read_back)),
    Column("records_lost", |run| cell(run.verified?.lost)),
    Column("records_wrong", |run| cell(run.verified?.wrong)),
    Column("records_extra", |run| cell(run.verified?.extra?)),
    Column("live_bytes", |run| cell(run.verified?.live_bytes)),
    Column("disk_before_apparent_bytes", |run| cell(run.disk_before?.apparent_bytes)),
    Column("disk_before_allocated_bytes", |run| cell(run.disk_before?.allocated_bytes)),
    Column("memory_before_own_bytes", |run| cell(run.own_memory?.own_bytes)),
    Column("memory_before_mapped_bytes", |run| cell(run.own_memory?.mapped_bytes)),
    Column("write_amplification_ratio", |run| cell(run.write_amplification()?)),
    Column("read_amplification_ratio", |run| cell(run.read_amplification()?)),
    Column("space_amplification_ratio", |run| cell(run.space_amplification()?)),
];

const PHASE: &[Column<Phase>] = &[
    Column("phase", |phase| cell(&phase.name)),
    Column("engine_seconds", |phase| cell(phase.seconds)),
    Column("wall_seconds", |phase| cell(phase.wall_seconds)),
    Column("user_cpu_seconds", |phase| cell(phase.usage.user_seconds)),
    Column("system_cpu_seconds", |phase| cell(phase.usage.system_seconds)),
    Column("voluntary_switches_count", |phase| cell(phase.usage.voluntary_switches)),
    Column("involuntary_switches_count", |phase| cell(phase.usage.involuntary_switches)),
    Column("minor_faults_count", |phase| cell(phase.usage.minor_faults)),
    Column("major_faults_count", |phase| cell(phase.usage.major_faults)),
    Column("device_read_bytes", |phase| cell(phase.usage.device_read_bytes?)),
    Column("device_written_bytes", |phase| cell(phase.usage.device_written_bytes?)),
    Column("call_read_bytes", |phase| cell(phase.usage.call_read_bytes?)),
    Column("call_written_bytes", |phase| cell(phase.usage.call_written_bytes?)),
    Column("peak_own_memory_bytes", |phase| cell(phase.seen.peak_own_bytes?)),
    Column("mean_own_memory_bytes", |phase| cell(phase.seen.mean_own_bytes?)),
    Column("peak_mapped_memory_bytes", |phase| cell(phase.seen.peak_mapped_bytes?)),
    Column("mean_mapped_memory_bytes", |phase| cell(phase.seen.mean_mapped_bytes?)),
    Column("peak_disk_bytes", |phase| cell(phase.seen.peak_disk_bytes)),
    Column("disk_apparent_bytes", |phase| cell(phase.disk.apparent_bytes)),
    Column("disk_allocated_bytes", |phase| cell(phase.disk.allocated_bytes)),
    Column("operations_count", |phase| cell(traffic(phase)?.operations)),
    Column("operations_per_second", |phase| cell(phase.throughput()?)),
    Column("operations_hash", |phase| cell(&traffic(phase)?.hash)),
    Column("time_limited", |phase| cell(traffic(phase)?.time_limited)),
    Column("determined", |phase| cell(traffic(phase)?.determined)),
    Column("threads_count", |phase| cell(traffic(phase)?.threads)),
    Column("asked_rate_per_second", |phase| cell(traffic(phase)?.rate?)),
    Column("own_ns", |phase| cell(traffic(phase)?.own_ns?)),
];

const KINDS: &[Column<KindFigures>] = &[
    Column("calls_count", |kind| cell(kind.calls)),
    Column("operations_count", |kind| cell(kind.operations)),
    Column("not_found_count", |kind| cell(kind.not_found)),
    Column("visited_count", |kind| cell(kind.visited)),
    Column("written_bytes", |kind| cell(kind.written_bytes)),
    Column("read_bytes", |kind| cell(kind.read_bytes)),
    Column("latency_total_seconds", |kind| cell(kind.latency.total_seconds)),
    Column("latency_mean_ns", |kind| cell(kind.latency.mean_ns)),
    Column("latency_min_ns", |kind| cell(kind.latency.min_ns)),
    Column("latency_p50_ns", |kind| cell(kind.latency.p50_ns)),
    Column("latency_p90_ns", |kind| cell(kind.latency.p90_ns)),
    Column("latency_p99_ns", |kind| cell(kind.latency.p99_ns)),
    Column("latency_p999_ns", |kind| cell(kind.latency.p999_ns)),
    Column("latency_p9999_ns", |kind| cell(kind.latency.p9999_ns)),
    Column("latency_max_ns", |kind| cell(kind.latency.max_ns)),
];

/// Some, so that a column can end a chain of what may be absent.
#[expect(clippy::unnecessary_wraps, reason = "it is the value of every column")]
fn cell(value: impl ToString) -> Cell {
    Some(value.to_string())
}

fn traffic(phase: &Phase) -> Option<&Traffic> {
    phase.traffic.as_ref()
}

/// The whole result.
///
/// # Errors
/// [`Error::Usage`] if the rows cannot be written as text, which none of ours is.
pub fn render(comparison: &Comparison) -> Result<String> {
    let kinds = kinds(comparison);
    let mut writer = csv::Writer::from_writer(Vec::new());
    let wrong = |error: String| Error::Usage(format!("a result that is no CSV: {error}"));
    let mut write =
        |row: Vec<String>| writer.write_record(row).map_err(|error| wrong(error.to_string()));
    write(head(&kinds))?;
    for run in &comparison.runs {
        for phase in &run.phases {
            write(row(run, Some(phase), &kinds))?;
        }
        if run.phases.is_empty() {
            write(row(run, None, &kinds))?;
        }
    }
    for skipped in &comparison.skipped {
        let error = Some(format!("not run: {}", skipped.reason));
        let run = Run { engine: skipped.engine.clone(), error, ..Run::default() };
        write(row(&run, None, &kinds))?;
    }
    let bytes = writer.into_inner().map_err(|error| wrong(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))
}

/// Whose operations the columns of a kind are about: what their names begin with, and where the
/// figures are.
type Who = (&'static str, fn(&Traffic) -> &BTreeMap<Kind, KindFigures>);

/// The clients, and the thread that worked beside them.
const WHO: [Who; 2] = [("", |traffic| &traffic.kinds), ("beside_", |traffic| &traffic.background)];

/// The kinds of operations that any phase has, of each of them.
fn kinds(comparison: &Comparison) -> Vec<(Who, Kind)> {
    let phases = || comparison.runs.iter().flat_map(|run| &run.phases).filter_map(traffic);
    let of_one = |who: Who| {
        let kinds: BTreeSet<Kind> =
            phases().flat_map(|traffic| (who.1)(traffic).keys()).copied().collect();
        kinds.into_iter().map(move |kind| (who, kind))
    };
    WHO.into_iter().flat_map(of_one).collect()
}

fn head(kinds: &[(Who, Kind)]) -> Vec<String> {
    let mut names: Vec<String> = RUN.iter().map(|column| column.0.to_owned()).collect();
    names.extend(PHASE.iter().map(|column| column.0.to_owned()));
    for ((who, _), kind) in kinds {
        let kind = kind.words().replace([' ', '-'], "_");
        names.extend(KINDS.iter().map(|column| format!("{who}{kind}_{}", column.0)));
    }
    names
}

fn row(run: &Run, phase: Option<&Phase>, kinds: &[(Who, Kind)]) -> Vec<String> {
    let mut cells = cells(RUN, Some(run));
    cells.extend(self::cells(PHASE, phase));
    for ((_, figures), kind) in kinds {
        let figures = phase.and_then(traffic).and_then(|traffic| figures(traffic).get(kind));
        cells.extend(self::cells(KINDS, figures));
    }
    cells
}

fn cells<T>(columns: &[Column<T>], of: Option<&T>) -> Vec<String> {
    columns.iter().map(|column| of.and_then(column.1).unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_explained_and_says_its_unit() {
        let readme = include_str!("../../../results/README.md");
        let section = readme.split("## The CSV").nth(1).unwrap();
        let names = RUN.iter().map(|column| column.0);
        let names = names.chain(PHASE.iter().map(|column| column.0));
        for name in names.chain(KINDS.iter().map(|column| column.0)) {
            assert!(section.contains(&format!("`{name}`")), "{name} is not explained");
        }
    }
}
