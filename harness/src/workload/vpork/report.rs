//! VPork's report, line by line, beside the two that were published.

use super::PHASE;
use crate::report::figures::{grouped, grouped_decimal as decimal};
use crate::report::summary::Summary;
use crate::report::tables::{NOT_THERE, Table, head};
use crate::results::{KindFigures, Run};
use crate::workload::op::Kind;

/// Line, published with 30 threads, published with 100.
const PUBLISHED: [[&str; 3]; 19] = [
    ["writes", "48,072", "159,855"],
    ["write failures", "0", "0"],
    ["write latency mean (ms)", "35.79", "85.94"],
    ["write latency 99 % (ms)", "230.00", "319.00"],
    ["bytes written (MB)", "1,100.28", "3,658.79"],
    ["thread write throughput (KB/ms)", "0.65", "0.27"],
    ["total write throughput (KB/ms)", "17.50", "24.29"],
    ["reads", "5,889", "19,872"],
    ["read failures", "0", "0"],
    ["read latency mean (ms)", "28.05", "70.36"],
    ["read latency 99 % (ms)", "218.00", "298.00"],
    ["not found", "21", "12"],
    ["not found (%)", "0.36", "0.06"],
    ["bytes read (MB)", "134.15", "453.94"],
    ["thread read throughput (KB/ms)", "0.84", "0.33"],
    ["total read throughput (KB/ms)", "2.13", "3.01"],
    ["time (s)", "", ""],
    ["writes a second", "", ""],
    ["reads a second", "", ""],
];

/// The report of an engine's first run.
pub(super) fn table(summary: &Summary<'_>, data_size: u32) -> Table {
    let measured = summary.runs.first().and_then(|run| lines(run, data_size));
    let rows = PUBLISHED.iter().enumerate().map(|(at, [line, thirty, hundred])| {
        let measured = measured.as_ref().map_or(NOT_THERE, |lines| lines[at].as_str());
        let published = |text: &str| if text.is_empty() { NOT_THERE } else { text }.to_owned();
        vec![(*line).to_owned(), measured.to_owned(), published(thirty), published(hundred)]
    });
    Table {
        title: format!("VPork's report of {}, run 1, beside those of Voldemort", summary.engine),
        head: head(&["", "measured", "30 threads", "100 threads"]),
        rows: rows.collect(),
        notes: vec![
            "MB: 2^20 bytes of values. Thread throughput: over the sum of all calls' times; total: \
             over the time that passed. A failure ends a run here. Voldemort's figures are of a \
             cluster of 5 nodes over a network, with every value on 3 of them."
                .into(),
        ],
    }
}

fn lines(run: &Run, data_size: u32) -> Option<[String; PUBLISHED.len()]> {
    let phase = run.phase(PHASE)?;
    let traffic = phase.traffic.as_ref()?;
    let none = KindFigures::default();
    let kind = |kind| traffic.kinds.get(&kind).unwrap_or(&none);
    let (writes, reads) = (kind(Kind::Insert), kind(Kind::Read));
    let milliseconds = phase.seconds * 1e3;
    let written = writes.operations as f64 * f64::from(data_size);
    let [written_mb, thread_write, total_write] = throughput(written, writes, milliseconds);
    let [read_mb, thread_read, total_read] =
        throughput(reads.read_bytes as f64, reads, milliseconds);
    let [write_mean, write_p99] = latency(writes);
    let [read_mean, read_p99] = latency(reads);
    let percent = reads.not_found as f64 * 100.0 / reads.operations.max(1) as f64;
    let a_second =
        |kind: &KindFigures| decimal(kind.operations as f64 / phase.seconds.max(1e-9), 0);
    Some([
        grouped(writes.operations),
        "0".to_owned(),
        write_mean,
        write_p99,
        written_mb,
        thread_write,
        total_write,
        grouped(reads.operations),
        "0".to_owned(),
        read_mean,
        read_p99,
        grouped(reads.not_found),
        decimal(percent, 2),
        read_mb,
        thread_read,
        total_read,
        decimal(phase.seconds, 3),
        a_second(writes),
        a_second(reads),
    ])
}

/// Megabytes; kilobytes a millisecond of all calls' times, and of the time that passed.
fn throughput(bytes: f64, figures: &KindFigures, milliseconds: f64) -> [String; 3] {
    let in_calls = figures.latency.total_seconds * 1e3;
    let rate = |time: f64| match time > 0.0 {
        true => decimal(bytes / 1_024.0 / time, 2),
        false => NOT_THERE.to_owned(),
    };
    [decimal(bytes / f64::from(1 << 20), 2), rate(in_calls), rate(milliseconds)]
}

fn latency(figures: &KindFigures) -> [String; 2] {
    let digits = |ms: f64| decimal(ms, if ms < 10.0 { 4 } else { 2 });
    [digits(figures.latency.mean_ns / 1e6), digits(figures.latency.p99_ns as f64 / 1e6)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Latency, Phase, Traffic};

    fn kind(calls: u64, mean_ms: f64, p99_ms: u64) -> KindFigures {
        let latency = Latency {
            total_seconds: calls as f64 * mean_ms / 1e3,
            mean_ns: mean_ms * 1e6,
            p99_ns: p99_ms * 1_000_000,
            ..Latency::default()
        };
        KindFigures { calls, operations: calls, latency, ..KindFigures::default() }
    }

    /// A run with the published counts, mean latencies and elapsed time has the published sizes and
    /// throughputs.
    #[test]
    fn the_lines_are_the_published_ones() {
        for (column, seconds, writes, read, read_bytes) in [
            (1, 64.38, kind(48_072, 35.79, 230), kind(5_889, 28.05, 218), 5_861),
            (2, 154.24, kind(159_855, 85.94, 319), kind(19_872, 70.36, 298), 19_833),
        ] {
            let not_found = if column == 1 { 21 } else { 12 };
            let reads = KindFigures { not_found, read_bytes: read_bytes * 24_000, ..read };
            let kinds = [(Kind::Insert, writes), (Kind::Read, reads)].into();
            let traffic = Some(Traffic { kinds, ..Traffic::default() });
            let phase = Phase { name: PHASE.into(), seconds, traffic, ..Phase::default() };
            let run = Run { phases: vec![phase], ..Run::default() };
            let lines = lines(&run, 24_000).unwrap();
            for (line, published) in lines.iter().zip(PUBLISHED) {
                let expected = published[column];
                // Published with two places: 134.15 MB are 5,861 records, of which each call of
                // the 5,889 takes a little less than printed.
                let near = |a: &str, b: &str| {
                    let number = |text: &str| text.replace(',', "").parse::<f64>().unwrap();
                    (number(a) - number(b)).abs() < 0.0151
                };
                assert!(
                    expected.is_empty() || near(line, expected),
                    "{}: {line}, not {expected}",
                    published[0]
                );
            }
        }
    }
}
