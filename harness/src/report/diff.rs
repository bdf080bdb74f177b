//! What changed from one result to another, beyond noise.
//!
//! A change is told only if all of its 95 % interval is beyond the threshold, if it is large enough
//! to be measured at all, and if it is no chance among so many figures: see [`welch`]. With fewer
//! than three runs on a side there is no interval: then noise is taken to be half of the figure,
//! either way.

use serde::Serialize;

use crate::results::{Comparison, Phase, Run};
use crate::stats::{Ratio, effect_size, median, welch};

/// A figure that changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The engine.
    pub engine: String,
    /// What: `load seconds`, `run read p99`, `disk in the end`, …
    pub figure: String,
    /// The medians before and after, in the figure's unit.
    pub medians: [f64; 2],
    /// The unit: `s`, `us`, `bytes`.
    pub unit: &'static str,
    /// After by before: over 1 is worse.
    pub ratio: f64,
    /// The bounds of the ratio.
    pub interval: [f64; 2],
    /// Whether the bounds are of an assumption, for want of runs.
    pub assumed: bool,
    /// Cliff's delta of after against before.
    pub effect: f64,
    /// Worse, not better.
    pub is_regression: bool,
}

/// The outcome.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Diff {
    /// What changed, the worst first.
    pub changes: Vec<Change>,
    /// What left its interval, and may have done so by chance among so many figures.
    pub doubtful: Vec<Change>,
    /// Figures that were compared.
    pub compared: usize,
    /// What could not be compared, and what makes the comparison worth less.
    pub notes: Vec<String>,
}

/// The chance that we take of telling a single change that is none.
const ALPHA: f64 = 0.05;

/// Without an interval, a ratio is uncertain by this factor either way.
const ASSUMED_NOISE: f64 = 1.5;

/// A figure, its unit, and the least difference that is more than the clock or the page size.
struct Figure<'a> {
    name: String,
    unit: &'static str,
    least: f64,
    of: Box<Pick<'a>>,
}

/// Picks a figure of a run.
type Pick<'a> = dyn Fn(&Run) -> Option<f64> + 'a;

impl Diff {
    /// What changed from `before` to `after` by more than `threshold`: 0.05 is a twentieth.
    pub fn new(before: &Comparison, after: &Comparison, threshold: f64) -> Self {
        let mut diff = Self { notes: notes(before, after), ..Self::default() };
        let mut judged = Vec::new();
        for engine in before.engines() {
            let runs = |comparison: &Comparison| -> Vec<Run> {
                let runs = comparison.runs_of(engine).filter(|run| run.problem().is_none());
                runs.cloned().collect()
            };
            let (old, new) = (runs(before), runs(after));
            if new.is_empty() || old.is_empty() {
                diff.notes.push(format!("{engine}: no sound run in one of the two"));
                continue;
            }
            for figure in figures(&old) {
                judged.extend(judge(engine, &figure, &old, &new, threshold));
            }
        }
        for engine in after.engines() {
            if !before.engines().contains(&engine) {
                diff.notes.push(format!("{engine}: only in the second"));
            }
        }
        diff.compared = judged.len();
        let p_values: Vec<f64> = judged.iter().map(|judged| judged.p_value).collect();
        for (judged, is_there) in judged.into_iter().zip(welch::holm(&p_values, ALPHA)) {
            let Some(change) = judged.change else { continue };
            let told =
                if is_there || change.assumed { &mut diff.changes } else { &mut diff.doubtful };
            told.push(change);
        }
        diff.changes.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
        diff
    }

    /// Whether anything is worse.
    pub fn has_regression(&self) -> bool {
        self.changes.iter().any(|change| change.is_regression)
    }
}

/// A figure that was compared.
struct Judged {
    /// The chance of such a difference if there is none; 1 if there are too few runs.
    p_value: f64,
    change: Option<Change>,
}

/// Compares a figure; nothing if it is not there on both sides.
fn judge(
    engine: &str,
    figure: &Figure<'_>,
    old: &[Run],
    new: &[Run],
    threshold: f64,
) -> Option<Judged> {
    let samples = |runs: &[Run]| -> Vec<f64> { runs.iter().filter_map(&figure.of).collect() };
    let (old, new) = (samples(old), samples(new));
    let (was, is) = (median(&old)?, median(&new)?);
    let Ratio { ratio, interval } = Ratio::new(&new, &old)?;
    let p_value = interval.and_then(|_| welch::p_value(&new, &old)).unwrap_or(1.0);
    let [low, high] = interval.unwrap_or([ratio / ASSUMED_NOISE, ratio * ASSUMED_NOISE]);
    let is_regression = low > 1.0 + threshold;
    let is_better = high < 1.0 / (1.0 + threshold);
    let is_change = (is - was).abs() >= figure.least && (is_regression || is_better);
    let change = is_change.then(|| Change {
        engine: engine.to_owned(),
        figure: figure.name.clone(),
        medians: [was, is],
        unit: figure.unit,
        ratio,
        interval: [low, high],
        assumed: interval.is_none(),
        effect: effect_size(&new, &old).unwrap_or(0.0),
        is_regression,
    });
    Some(Judged { p_value, change })
}

/// What is compared of an engine: the phases and kinds of its first run tell.
fn figures(runs: &[Run]) -> Vec<Figure<'_>> {
    let mut figures = Vec::new();
    let Some(first) = runs.first() else { return figures };
    for phase in &first.phases {
        let name = &phase.name;
        // What is limited in time takes as long as it may: its operations are what counts.
        let limited = phase.traffic.as_ref().is_some_and(|traffic| traffic.time_limited);
        figures.push(Figure {
            name: format!("{name} seconds{}", if limited { " an operation" } else { "" }),
            unit: "s",
            least: if limited { 0.0 } else { 0.02 },
            of: Box::new(move |run| seconds(run.phase(name)?, limited)),
        });
        let kinds = phase.traffic.iter().flat_map(|traffic| traffic.kinds.keys());
        for kind in kinds {
            figures.push(Figure {
                name: format!("{name} {kind} p99"),
                unit: "us",
                least: 5.0,
                of: Box::new(move |run| {
                    let traffic = run.phase(name)?.traffic.as_ref()?;
                    Some(traffic.kinds.get(kind)?.latency.p99_ns as f64 / 1e3)
                }),
            });
        }
    }
    figures.push(Figure {
        name: "disk in the end".into(),
        unit: "bytes",
        least: 100_000.0,
        of: Box::new(|run| Some(run.disk_after("reopen")?.apparent_bytes as f64)),
    });
    figures.push(Figure {
        name: "peak memory".into(),
        unit: "bytes",
        least: 16e6,
        of: Box::new(|run| {
            let peaks = run.phases.iter().filter_map(|phase| phase.seen.peak_own_bytes);
            Some(peaks.max()? as f64)
        }),
    });
    figures
}

fn seconds(phase: &Phase, limited: bool) -> Option<f64> {
    match (limited, phase.throughput()) {
        (true, rate) => rate.map(|rate| 1.0 / rate),
        (false, _) => Some(phase.seconds),
    }
}

/// What makes two results hard to compare.
fn notes(before: &Comparison, after: &Comparison) -> Vec<String> {
    let mut notes = Vec::new();
    let mut same = |what: &str, a: &str, b: &str| {
        if a != b {
            notes.push(format!("{what} differs: {a}, {b}"));
        }
    };
    let (a, b) = (&before.machine, &after.machine);
    same("processor", &a.cpu, &b.cpu);
    same("cores", &a.cores.to_string(), &b.cores.to_string());
    same("kernel", &a.kernel, &b.kernel);
    same("file system", &a.file_system.kind, &b.file_system.kind);
    same("build", &a.build, &b.build);
    notes
}
