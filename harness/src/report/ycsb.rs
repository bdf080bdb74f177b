//! The lines that YCSB prints at the end of a run, for programs that read those.

use std::fmt::Write;

use crate::measure::figures::decode;
use crate::results::{Comparison, KindFigures, Phase, Run};
use crate::workload::op::Kind;

/// The lines of every run and phase, each block behind a comment that names them.
pub fn render(comparison: &Comparison) -> String {
    let mut out = String::new();
    for run in &comparison.runs {
        for phase in run.phases.iter().filter(|phase| phase.traffic.is_some()) {
            // Writing to a string does not fail.
            let _ = write_phase(&mut out, run, phase);
        }
    }
    out
}

fn write_phase(out: &mut String, run: &Run, phase: &Phase) -> std::fmt::Result {
    writeln!(out, "\n# {}, run {}, {}", run.engine, run.repeat, phase.name)?;
    writeln!(out, "[OVERALL], RunTime(ms), {}", (phase.seconds * 1e3).round())?;
    writeln!(out, "[OVERALL], Throughput(ops/sec), {}", phase.throughput().unwrap_or(0.0))?;
    let mut kinds = phase.traffic.iter().flat_map(|traffic| &traffic.kinds);
    kinds.try_for_each(|(kind, figures)| write_kind(out, name(*kind), figures))
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Insert => "INSERT",
        Kind::Update | Kind::UpdateField => "UPDATE",
        Kind::Delete => "DELETE",
        Kind::Read => "READ",
        Kind::Scan | Kind::ScanBack | Kind::ScanAll | Kind::Seek => "SCAN",
        Kind::ReadModifyWrite => "READ-MODIFY-WRITE",
        Kind::BatchWrite => "BATCH-INSERT",
        Kind::BatchRead => "BATCH-READ",
        Kind::Sync => "SYNC",
    }
}

fn write_kind(out: &mut String, name: &str, figures: &KindFigures) -> std::fmt::Result {
    let latency = &figures.latency;
    let us = |ns: u64| ns / 1_000;
    writeln!(out, "[{name}], Operations, {}", figures.operations)?;
    writeln!(out, "[{name}], AverageLatency(us), {}", latency.mean_ns / 1e3)?;
    writeln!(out, "[{name}], MinLatency(us), {}", us(latency.min_ns))?;
    writeln!(out, "[{name}], MaxLatency(us), {}", us(latency.max_ns))?;
    if let Some(histogram) = decode(&latency.histogram) {
        let p95 = us(histogram.value_at_quantile(0.95));
        writeln!(out, "[{name}], 95thPercentileLatency(us), {p95}")?;
    }
    writeln!(out, "[{name}], 99thPercentileLatency(us), {}", us(latency.p99_ns))?;
    let found = figures.operations.saturating_sub(figures.not_found);
    if found > 0 {
        writeln!(out, "[{name}], Return=OK, {found}")?;
    }
    if figures.not_found > 0 {
        writeln!(out, "[{name}], Return=NOT_FOUND, {}", figures.not_found)?;
    }
    Ok(())
}
