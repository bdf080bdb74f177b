//! The lines of the published comparison: per engine its times and sizes, and for two engines the
//! ratios of their means, which is all that the report's conclusions rest on.

use super::figures::grouped_decimal;
use super::summary::Summary;
use crate::results::Comparison;
use crate::workload::SizeChange;

/// What the published report told of one engine.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineLines {
    /// The engine's name.
    pub engine: String,
    /// The time of each insert loop in seconds.
    pub times: Vec<f64>,
    /// How much the directory grew in each run, in bytes, between the moments that the workload
    /// names: [`Spec::size_change`](crate::workload::Spec::size_change).
    pub size_changes: Vec<f64>,
    /// The same, taken right after the insert loop.
    pub size_changes_after_load: Vec<f64>,
}

impl EngineLines {
    /// The lines of every engine whose runs are without a problem, in the order of `summaries`.
    pub fn all(comparison: &Comparison, summaries: &[Summary<'_>]) -> Vec<Self> {
        let change = comparison.workload.workload.spec().size_change();
        let sound = summaries.iter().filter(|summary| summary.problem.is_none());
        sound.map(|summary| Self::new(summary, &change)).collect()
    }

    pub(crate) fn new(summary: &Summary<'_>, change: &SizeChange) -> Self {
        let grown = |to: &str| {
            let growth = summary.runs.iter().filter_map(|run| {
                let before = match change.from {
                    Some(phase) => run.disk_after(phase)?,
                    None => run.disk_before?,
                };
                let after = run.disk_after(to)?;
                Some(after.apparent_bytes as f64 - before.apparent_bytes as f64)
            });
            growth.collect()
        };
        Self {
            engine: summary.engine.to_owned(),
            times: summary.runs.iter().filter_map(|run| run.seconds("load")).collect(),
            size_changes: grown(&change.to),
            size_changes_after_load: grown("load"),
        }
    }

    /// The four lines of the published report; none for a workload without an insert loop.
    pub fn lines(&self) -> Vec<String> {
        if self.times.is_empty() {
            return Vec::new();
        }
        let times: Vec<String> = self.times.iter().map(|&time| grouped_decimal(time, 3)).collect();
        let sizes: Vec<String> =
            self.size_changes.iter().map(|&size| grouped_decimal(size, 0)).collect();
        let mean_time = mean(&self.times).map_or(NOT_THERE.into(), |time| grouped_decimal(time, 3));
        let mean_size =
            mean(&self.size_changes).map_or(NOT_THERE.into(), |size| grouped_decimal(size, 1));
        let listed = |list: Vec<String>| match list.is_empty() {
            true => NOT_THERE.to_owned(),
            false => list.join(" "),
        };
        vec![
            format!("times (s): {}", listed(times)),
            format!("mean time (s): {mean_time}"),
            format!("size changes (bytes): {}", listed(sizes)),
            format!("mean size change (bytes): {mean_size}"),
        ]
    }
}

/// Two engines side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairLines {
    /// `bitcask : lsm`
    pub title: String,
    /// `Disk space: 3.003 : 1.000` and `Time taken: 1.000 : 1.600`, measured here.
    pub measured: [String; 2],
    /// The disk line once more, by the sizes right after the load.
    pub after_load: String,
    /// The published lines, each with its number of items; empty for other pairs.
    pub published: Vec<(String, [String; 2])>,
}

impl PairLines {
    /// The lines of two engines among `engines`; one that is not there has no ratios.
    pub fn new(engines: &[EngineLines], first: &str, second: &str) -> Self {
        let line = |label: &str, samples: fn(&EngineLines) -> &[f64]| {
            let [a, b] = [first, second].map(|name| {
                let engine = engines.iter().find(|engine| engine.engine == name);
                engine.and_then(|engine| mean(samples(engine)))
            });
            ratio_line(label, a, b)
        };
        Self {
            title: format!("{first} : {second}"),
            measured: [
                line(DISK, |engine| &engine.size_changes),
                line(TIME, |engine| &engine.times),
            ],
            after_load: line(DISK, |engine| &engine.size_changes_after_load),
            published: published_lines(first, second),
        }
    }
}

const DISK: &str = "Disk space";
const TIME: &str = "Time taken";
const NOT_THERE: &str = "n/a";

/// A table of the published report: its ratios as they were printed, Bitcask before LevelDB.
struct Published {
    title: &'static str,
    disk: [&'static str; 2],
    time: [&'static str; 2],
}

/// Measured with Riak around each engine and three copies of every record.
const PUBLISHED: [Published; 2] = [
    Published { title: "5,000 items, 5 runs", disk: ["1.113", "1.000"], time: ["1.000", "1.016"] },
    Published { title: "500,000 items, 1 run", disk: ["3.003", "1.000"], time: ["1.000", "1.600"] },
];

fn published_lines(first: &str, second: &str) -> Vec<(String, [String; 2])> {
    // The published LevelDB is what both our tree in its format and the original stand for.
    let is_tree = |name: &str| name == "lsm" || name == "leveldb";
    let line = |label: &str, [bitcask, leveldb]: [&str; 2]| match (first, second) {
        ("bitcask", tree) if is_tree(tree) => Some(format!("{label}: {bitcask} : {leveldb}")),
        (tree, "bitcask") if is_tree(tree) => Some(format!("{label}: {leveldb} : {bitcask}")),
        _ => None,
    };
    let lines = PUBLISHED.iter().filter_map(|table| {
        Some((table.title.to_owned(), [line(DISK, table.disk)?, line(TIME, table.time)?]))
    });
    lines.collect()
}

/// `Disk space: 3.003 : 1.000`: both divided by the smaller.
pub fn ratio_line(label: &str, a: Option<f64>, b: Option<f64>) -> String {
    match (a, b) {
        (Some(a), Some(b)) if a > 0.0 && b > 0.0 => {
            let smaller = a.min(b);
            format!("{label}: {:.3} : {:.3}", a / smaller, b / smaller)
        }
        _ => format!("{label}: {NOT_THERE}"),
    }
}

/// The pairs that a report shows: those asked for, or the published one where both ran.
pub fn pairs(
    comparison: &Comparison,
    engines: &[EngineLines],
    asked: &[(String, String)],
) -> Vec<PairLines> {
    let published = [("bitcask".to_owned(), "lsm".to_owned())];
    let ran = comparison.engines();
    let is_published = comparison.workload.workload.spec().is_published_comparison();
    let default = is_published && ran.contains(&"bitcask") && ran.contains(&"lsm");
    let wanted = match asked {
        [] if default => published.as_slice(),
        asked => asked,
    };
    wanted.iter().map(|(a, b)| PairLines::new(engines, a, b)).collect()
}

/// Which time and which size the ratios are of, in a sentence or two.
pub fn pair_note(comparison: &Comparison) -> String {
    format!(
        "Of the means of all repeats, as published; the tables show medians. Time is the insert \
         loop alone. {}",
        comparison.workload.workload.spec().size_change().note
    )
}

/// The mean; `None` of nothing.
pub fn mean(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| samples.iter().sum::<f64>() / samples.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::riak::published;

    fn engine(name: &str, times: &[f64], sizes: &[f64]) -> EngineLines {
        EngineLines {
            engine: name.to_owned(),
            times: times.to_vec(),
            size_changes: sizes.to_vec(),
            size_changes_after_load: sizes.to_vec(),
        }
    }

    /// The published runs of so many items: Bitcask's and LevelDB's.
    fn published(items: u32) -> [EngineLines; 2] {
        [("bitcask", "Bitcask"), ("lsm", "LevelDB")].map(|(name, of)| {
            let runs = published::PUBLISHED;
            let runs = runs.iter().find(|runs| runs.engine == of && runs.items == items).unwrap();
            engine(name, runs.seconds, runs.size_changes)
        })
    }

    /// The last of the four published ratios does not follow from the published times:
    /// 1,921.870 / 1,201.673 is 1.5993, printed as 1.600 then.
    #[test]
    fn the_published_runs_give_the_published_ratios() {
        let small = PairLines::new(&published(5_000), "bitcask", "lsm");
        assert_eq!(
            small.measured,
            ["Disk space: 1.113 : 1.000", "Time taken: 1.000 : 1.016"].map(str::to_owned)
        );
        let large = PairLines::new(&published(500_000), "bitcask", "lsm");
        assert_eq!(
            large.measured,
            ["Disk space: 3.003 : 1.000", "Time taken: 1.000 : 1.599"].map(str::to_owned)
        );
    }

    #[test]
    fn the_published_runs_give_the_published_means() {
        let [bitcask, lsm] = published(5_000);
        assert_eq!(
            bitcask.lines(),
            [
                "times (s): 12.416 11.906 12.328 11.584 11.949",
                "mean time (s): 12.037",
                "size changes (bytes): 48,871,379 48,871,763 48,871,616 48,871,697 48,871,487",
                "mean size change (bytes): 48,871,588.4",
            ]
        );
        assert_eq!(lsm.lines()[1], "mean time (s): 12.227");
        assert_eq!(lsm.lines()[3], "mean size change (bytes): 43,904,935.2");
    }

    #[test]
    fn the_published_ratios_stand_beside_the_published_pair_and_no_other() {
        let expected = [
            ("5,000 items, 5 runs", "Disk space: 1.113 : 1.000", "Time taken: 1.000 : 1.016"),
            ("500,000 items, 1 run", "Disk space: 3.003 : 1.000", "Time taken: 1.000 : 1.600"),
        ]
        .map(|(title, disk, time)| (title.to_owned(), [disk.to_owned(), time.to_owned()]));
        assert_eq!(published_lines("bitcask", "lsm"), expected);
        let turned = published_lines("lsm", "bitcask");
        assert_eq!(turned[1].1[0], "Disk space: 1.000 : 3.003");
        assert!(published_lines("bitcask", "sled").is_empty());
    }

    #[test]
    fn what_was_not_measured_has_no_ratio() {
        let engines = [engine("memory", &[1.0], &[]), engine("null", &[2.0], &[0.0])];
        let pair = PairLines::new(&engines, "memory", "null");
        assert_eq!(
            pair.measured,
            ["Disk space: n/a", "Time taken: 1.000 : 2.000"].map(str::to_owned)
        );
        let failed = PairLines::new(&engines, "memory", "lsm");
        assert_eq!(failed.measured[1], "Time taken: n/a");
        assert_eq!(engines[0].lines()[2], "size changes (bytes): n/a");
    }
}
