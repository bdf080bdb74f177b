//! The runs of each engine taken together.

use crate::measure::disk::DiskUsage;
use crate::results::{Comparison, Run};

/// A figure over the repeats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The middle one, or the mean of the two middle ones.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// The spread of `samples`; `None` without any.
    pub fn of(samples: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut samples: Vec<f64> = samples.into_iter().collect();
        samples.sort_by(f64::total_cmp);
        let (&min, &max) = (samples.first()?, samples.last()?);
        let upper = samples.len() / 2;
        let lower = (samples.len() - 1) / 2;
        Some(Self { median: f64::midpoint(samples[lower], samples[upper]), min, max })
    }
}

/// One engine's runs.
#[derive(Debug, Clone)]
pub struct Summary<'a> {
    /// The engine's name.
    pub engine: &'a str,
    /// `own`, `peer` or `reference`.
    pub kind: &'a str,
    /// Its version; empty if it never opened.
    pub version: &'a str,
    /// Its runs.
    pub runs: Vec<&'a Run>,
    /// The first thing that was wrong, if anything was: it is not ranked then.
    pub problem: Option<String>,
    /// Whether every run read everything back.
    pub is_verified: bool,
}

impl<'a> Summary<'a> {
    /// Summaries of all engines: those that are ranked by load time, then the reference points,
    /// then those with a problem.
    pub fn all(comparison: &'a Comparison) -> Vec<Self> {
        let mut summaries: Vec<Self> = comparison
            .engines()
            .into_iter()
            .map(|engine| Self::new(engine, comparison.runs_of(engine).collect()))
            .collect();
        let key = |summary: &Self| {
            let group = match (summary.is_ranked(), summary.problem.is_some()) {
                (true, _) => 0,
                (false, false) => 1,
                (false, true) => 2,
            };
            (group, summary.seconds(&["load"]).map_or(f64::INFINITY, |load| load.median))
        };
        summaries.sort_by(|a, b| {
            let ((a_group, a_load), (b_group, b_load)) = (key(a), key(b));
            a_group.cmp(&b_group).then(a_load.total_cmp(&b_load))
        });
        summaries
    }

    fn new(engine: &'a str, runs: Vec<&'a Run>) -> Self {
        let opened = runs.iter().find(|run| !run.version.is_empty()).or(runs.first());
        Self {
            engine,
            kind: runs.first().map_or("", |run| &run.kind),
            version: opened.map_or("", |run| &run.version),
            problem: runs.iter().find_map(|run| run.problem()),
            is_verified: runs.iter().all(|run| run.verified.is_some_and(|v| v.is_whole())),
            runs,
        }
    }

    /// Whether it is compared with the best: a store that kept everything.
    pub fn is_ranked(&self) -> bool {
        self.kind != "reference" && self.problem.is_none() && self.is_verified
    }

    /// The time of the phases called `names` together, over the runs that have them all.
    pub fn seconds(&self, names: &[&str]) -> Option<Spread> {
        Spread::of(self.all_seconds(names))
    }

    /// The same, of each run.
    pub fn all_seconds(&self, names: &[&str]) -> Vec<f64> {
        let of = |run: &&Run| names.iter().map(|name| run.seconds(name)).sum::<Option<f64>>();
        self.runs.iter().filter_map(of).collect()
    }

    /// How much the directory grew until the end of the phase called `phase`.
    pub fn growth(&self, phase: &str, bytes: impl Fn(DiskUsage) -> u64) -> Option<Spread> {
        Spread::of(self.all_growths(phase, bytes))
    }

    /// The same, of each run.
    pub fn all_growths(&self, phase: &str, bytes: impl Fn(DiskUsage) -> u64) -> Vec<f64> {
        let of = |run: &&Run| {
            let (before, after) = (run.disk_before?, run.disk_after(phase)?);
            Some(bytes(after) as f64 - bytes(before) as f64)
        };
        self.runs.iter().filter_map(of).collect()
    }

    /// A figure over the runs that have it.
    pub fn figure(&self, figure: impl Fn(&Run) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.runs.iter().filter_map(|run| figure(run)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([3.0]), Some(Spread { median: 3.0, min: 3.0, max: 3.0 }));
        assert_eq!(Spread::of([9.0, 1.0, 4.0]), Some(Spread { median: 4.0, min: 1.0, max: 9.0 }));
        assert_eq!(Spread::of([4.0, 1.0]), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
    }
}
