//! The check of the distribution by itself: what the stream really asks for.

use std::collections::HashMap;
use std::fmt::Write;

use super::YcsbJob;
use super::stream::YcsbStream;
use crate::report::figures::grouped;
use crate::results::Comparison;
use crate::workload::job::Stream;
use crate::workload::op::Kind;

/// What the first operations of a run ask for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SelfCheck {
    /// Requests looked at: operations that are no inserts.
    pub requests: u64,
    /// Different records among them.
    pub unique: u64,
    /// The share of the requests that the most popular record has.
    pub hottest: f64,
    /// The share that the most popular hundredth of all records has.
    pub hot_hundredth: f64,
    /// The exponent of a zipfian distribution that falls as the most popular records do; absent
    /// where too few were asked for more than a few times.
    pub skew: Option<f64>,
}

/// Operations looked at: as many as say enough, and fit into memory.
const MOST: u64 = 1_000_000;

/// Ranks that the skew is fitted to, and requests that the last of them must have.
const RANKS: usize = 100;
const FEWEST: u64 = 20;

impl SelfCheck {
    /// Goes through the operations of `job` without an engine.
    pub fn of(job: &YcsbJob) -> Self {
        let mut stream = YcsbStream::new(&job.ycsb, job.seed);
        let mut counts: HashMap<u64, u64> = HashMap::new();
        let (mut ops, mut requests) = (Vec::new(), 0u64);
        for step in 0..job.ycsb.operations.min(MOST) {
            ops.clear();
            stream.step(step, step, &mut ops);
            for op in ops.iter().filter(|op| op.kind != Kind::Insert) {
                *counts.entry(op.record).or_default() += 1;
                requests += 1;
            }
        }
        let mut counts: Vec<u64> = counts.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let share = |count: u64| count as f64 / requests.max(1) as f64;
        let hundredth = usize::try_from(job.ycsb.records.div_ceil(100)).unwrap_or(usize::MAX);
        Self {
            requests,
            unique: counts.len() as u64,
            hottest: share(counts.first().copied().unwrap_or(0)),
            hot_hundredth: share(counts.iter().take(hundredth).sum()),
            skew: skew(&counts),
        }
    }

    /// For a report, with the hit rates of the runs.
    pub fn in_words(&self, comparison: &Comparison) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "Distribution of the first {} requests: {} different records;\nthe most popular one has \
             {:.2} %, the most popular hundredth of all records {:.1} %{}.",
            grouped(self.requests),
            grouped(self.unique),
            self.hottest * 100.0,
            self.hot_hundredth * 100.0,
            self.skew.map_or(String::new(), |skew| format!("; fitted exponent {skew:.2}")),
        );
        for engine in comparison.engines() {
            let (mut reads, mut missing) = (0, 0);
            for phase in comparison.runs_of(engine).flat_map(|run| &run.phases) {
                for (kind, figures) in phase.traffic.iter().flat_map(|traffic| &traffic.kinds) {
                    let reads_one =
                        [Kind::Read, Kind::UpdateField, Kind::ReadModifyWrite].contains(kind);
                    reads += if reads_one { figures.operations } else { 0 };
                    missing += figures.not_found;
                }
            }
            if reads > 0 {
                let hits = 100.0 * (reads - missing.min(reads)) as f64 / reads as f64;
                let _ = writeln!(text, "  {engine}: {hits:.3} % of its reads found their record");
            }
        }
        text
    }
}

/// The slope of the logarithm of the counts over the logarithm of the ranks, by least squares.
fn skew(counts: &[u64]) -> Option<f64> {
    let top: Vec<(f64, f64)> = counts
        .iter()
        .take(RANKS)
        .take_while(|&&count| count >= FEWEST)
        .zip(1u32..)
        .map(|(&count, rank)| (f64::from(rank).ln(), (count as f64).ln()))
        .collect();
    if top.len() < 10 {
        return None;
    }
    let count = top.len() as f64;
    let (x, y) = top.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    let (x, y) = (x / count, y / count);
    let slope: f64 = top.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let spread: f64 = top.iter().map(|point| (point.0 - x).powi(2)).sum();
    Some(-slope / spread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::ycsb::{Distribution, Mix, Ycsb};
    use crate::workload::zipf::zeta;

    fn check(distribution: Distribution) -> SelfCheck {
        let mix = Mix { read: 0.9, update: 0.0, insert: 0.1, scan: 0.0, read_modify_write: 0.0 };
        let ycsb =
            Ycsb { records: 10_000, operations: 300_000, mix, distribution, ..Ycsb::default() };
        SelfCheck::of(&YcsbJob::new(&ycsb, 42))
    }

    #[test]
    fn the_skew_that_was_asked_for_is_found() {
        let found = check(Distribution::TrueZipfian);
        assert!((found.skew.unwrap() - 0.99).abs() < 0.05, "{found:?}");
        assert!((found.requests as f64 - 270_000.0).abs() < 1_000.0, "{found:?}");
        let top = zeta(100, 0.99) / zeta(10_000, 0.99);
        assert!((found.hot_hundredth - top).abs() < 0.01, "{found:?} {top}");
        let uniform = check(Distribution::Uniform);
        assert!(uniform.skew.unwrap() < 0.2 && uniform.hot_hundredth < 0.03, "{uniform:?}");
        assert_eq!(uniform.unique, 10_000);
    }
}
