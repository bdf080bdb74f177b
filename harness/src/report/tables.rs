//! The tables of a comparison as plain text cells, which the formats then draw.

use super::figures::{binary_size, megabytes, seconds};
use super::summary::{Spread, Summary};
use super::traffic;
use crate::measure::disk::DiskUsage;
use crate::results::{Comparison, Skipped};
use crate::stats::{FEWEST, Ratio, effect_size};

/// A table.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// What it shows, in one line.
    pub title: String,
    /// The heads of the columns; all but the first column are figures.
    pub head: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
    /// What a reader must know to read it.
    pub notes: Vec<String>,
}

/// Both tables have as many.
const COLUMN_COUNT: usize = 8;

/// Stands for what was not measured.
pub const NOT_THERE: &str = "n/a";

/// What was done, in words: the parameters of the workload and of the engines.
pub fn parameters(comparison: &Comparison) -> Vec<(&'static str, String)> {
    let parameters = &comparison.workload;
    let (client, settings) = (&parameters.client, &parameters.settings);
    let mut words = parameters.workload.parameters();
    words.extend([
        ("threads", client.threads.to_string()),
        ("seed", client.seed.to_string()),
        ("durability", settings.durability.to_string()),
        ("memory", binary_size(settings.memory_bytes)),
        ("compression", settings.compression.to_string()),
        ("repeats", parameters.repeats.to_string()),
    ]);
    if let Some(rate) = client.rate {
        words.push(("rate", format!("{rate} operations a second, open loop")));
    }
    let conditions = &parameters.conditions;
    if conditions.cold {
        words.push(("page cache", "dropped before each run".to_owned()));
    }
    if let Some(cap) = conditions.memory_cap_bytes {
        words.push(("memory cap", format!("{}, page cache included", binary_size(cap))));
    }
    if let Some(limit) = conditions.time_limit_seconds {
        words.push(("time limit", format!("{limit} s a run")));
    }
    words
}

/// Every table of a report.
pub fn all(comparison: &Comparison, summaries: &[Summary<'_>]) -> Vec<Table> {
    let skipped = &comparison.skipped;
    let mut tables = comparison.workload.workload.spec().tables(comparison, summaries);
    if summaries.iter().flat_map(|summary| &summary.runs).any(|run| run.phase("load").is_some()) {
        tables.push(times(summaries, skipped));
        tables.extend(certainty(summaries));
    }
    tables.push(sizes(comparison, summaries));
    tables.extend(traffic::latencies(comparison, summaries));
    tables.push(traffic::resources(summaries));
    tables
}

/// Times of all engines against the best.
pub fn times(summaries: &[Summary<'_>], skipped: &[Skipped]) -> Table {
    let load = Column::new(summaries, |summary| summary.all_seconds(&["load"]));
    let whole =
        Column::new(summaries, |summary| summary.all_seconds(&["load", "quiesce", "compact"]));
    let rows = summaries.iter().enumerate().map(|(at, summary)| {
        let median = |phase: &str| middle(summary.seconds(&[phase]), seconds);
        vec![
            summary.engine.to_owned(),
            load.cell(at, seconds),
            load.ratio(at),
            median("quiesce"),
            median("compact"),
            whole.cell(at, seconds),
            whole.ratio(at),
            median("verify"),
        ]
    });
    let rows = rows.chain(without_figures(skipped));
    Table {
        title: "Time in seconds".into(),
        head: head(&["engine", "load", "×", "quiesce", "compact", "all three", "×", "read back"]),
        rows: rows.collect(),
        notes: repeats_note(summaries),
    }
}

/// What the ratios of times are worth; there where an engine ran often enough.
fn certainty(summaries: &[Summary<'_>]) -> Option<Table> {
    let load = Column::new(summaries, |summary| summary.all_seconds(&["load"]));
    let whole =
        Column::new(summaries, |summary| summary.all_seconds(&["load", "quiesce", "compact"]));
    let rows: Vec<Vec<String>> = summaries
        .iter()
        .enumerate()
        .map(|(at, summary)| {
            let mut row = vec![summary.engine.to_owned()];
            for column in [&load, &whole] {
                row.push(column.ratio(at));
                row.extend(column.judged(at));
            }
            row
        })
        .collect();
    let is_judged = summaries.iter().any(|summary| summary.runs.len() >= FEWEST);
    is_judged.then(|| Table {
        title: "How sure the ratios of times are".into(),
        head: head(&[
            "engine",
            "load ×",
            "95 %",
            "effect",
            "verdict",
            "all ×",
            "95 %",
            "effect",
            "verdict",
        ]),
        rows,
        notes: vec![
            "95 %: the bootstrap interval of the ratio of medians. effect: Cliff's delta, how much \
             more often a run was slower than one of the best than faster, from -1 to +1. all: load, \
             quiesce and compact together. Too noisy to rank: the interval has 1 in it."
                .into(),
        ],
    })
}

/// Directory sizes of all engines against the best.
pub fn sizes(comparison: &Comparison, summaries: &[Summary<'_>]) -> Table {
    fn apparent(usage: DiskUsage) -> u64 {
        usage.apparent_bytes
    }
    fn allocated(usage: DiskUsage) -> u64 {
        usage.allocated_bytes
    }
    let grown = |phase: &'static str| {
        Column::new(summaries, move |summary| summary.all_growths(phase, apparent))
    };
    let (load, compact) = (grown("load"), grown("compact"));
    let rows = summaries.iter().enumerate().map(|(at, summary)| {
        vec![
            summary.engine.to_owned(),
            load.cell(at, megabytes),
            load.ratio(at),
            compact.cell(at, megabytes),
            compact.ratio(at),
            middle(summary.growth("reopen", apparent), megabytes),
            middle(summary.growth("reopen", allocated), megabytes),
            verdict(summary),
        ]
    });
    let rows = rows.chain(without_figures(&comparison.skipped));
    let mut notes = vec![
        "Sizes are lengths of files and folders; blocks: what the file system gave them at the end."
            .to_owned(),
    ];
    if let Some(phase) = comparison.workload.workload.spec().size_change().from {
        notes.push(format!(
            "Growth is counted from before the engine was opened; the size changes and ratios of \
             the published kind are counted from after {phase:?}, as they were."
        ));
    }
    Table {
        title: "Disk space in MB (10^6 bytes), growth of the directory".into(),
        head: head(&["engine", "load", "×", "compact", "×", "reopen", "blocks", "verified"]),
        rows: rows.collect(),
        notes,
    }
}

/// Engines that could not take part stand in the tables too: they are not forgotten.
fn without_figures(skipped: &[Skipped]) -> impl Iterator<Item = Vec<String>> {
    skipped.iter().map(|skipped| {
        let mut row = vec![skipped.engine.clone()];
        row.resize(COLUMN_COUNT, NOT_THERE.to_owned());
        row
    })
}

fn verdict(summary: &Summary<'_>) -> String {
    match (&summary.problem, summary.is_verified) {
        (Some(_), _) => "FAILED".into(),
        (None, true) => "all".into(),
        (None, false) => NOT_THERE.into(),
    }
}

fn repeats_note(summaries: &[Summary<'_>]) -> Vec<String> {
    let mut notes = vec![
        "×: against the best own engine or peer that kept everything. Reference points and failed \
         engines stand last."
            .to_owned(),
    ];
    if summaries.iter().any(|summary| summary.runs.len() > 1) {
        notes.push("Medians over the repeats, with the smallest and the largest below.".into());
    }
    notes
}

/// One figure of every engine, and the best among those that are ranked.
pub(super) struct Column {
    samples: Vec<Vec<f64>>,
    figures: Vec<Option<Spread>>,
    /// The place of the best.
    pub(super) best: Option<usize>,
}

impl Column {
    pub(super) fn new(
        summaries: &[Summary<'_>],
        samples: impl Fn(&Summary<'_>) -> Vec<f64>,
    ) -> Self {
        let samples: Vec<Vec<f64>> = summaries.iter().map(samples).collect();
        let figures: Vec<_> = samples.iter().map(|of| Spread::of(of.iter().copied())).collect();
        let ranked = summaries.iter().zip(&figures).enumerate();
        let ranked = ranked.filter(|(_, (summary, _))| summary.is_ranked());
        let ranked = ranked.filter_map(|(at, (_, figure))| Some((at, figure.as_ref()?.median)));
        let best = ranked.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(at, _)| at);
        Self { samples, figures, best }
    }

    fn cell(&self, at: usize, write: fn(f64) -> String) -> String {
        cell(self.figures[at], write)
    }

    fn ratio(&self, at: usize) -> String {
        self.ratio_to_best(at).map_or(NOT_THERE.into(), |ratio| format!("{:.2}", ratio.ratio))
    }

    /// Engine number `at` against the best.
    pub(super) fn ratio_to_best(&self, at: usize) -> Option<Ratio> {
        Ratio::new(&self.samples[at], &self.samples[self.best?])
    }

    /// The ratio's interval, the size of the effect, and what can be concluded.
    fn judged(&self, at: usize) -> [String; 3] {
        let not_there = || NOT_THERE.to_owned();
        let (Some(best), Some(Ratio { interval: Some([low, high]), .. })) =
            (self.best, self.ratio_to_best(at))
        else {
            return [not_there(), not_there(), not_there()];
        };
        let effect = effect_size(&self.samples[at], &self.samples[best]).unwrap_or(0.0);
        let verdict = match (at == best, low, high) {
            (true, ..) => "best",
            (_, low, _) if low > 1.0 => "more",
            (_, _, high) if high < 1.0 => "less",
            _ => "too noisy",
        };
        [format!("{low:.2}..{high:.2}"), format!("{effect:+.2}"), verdict.to_owned()]
    }
}

fn cell(figure: Option<Spread>, write: fn(f64) -> String) -> String {
    match figure {
        None => NOT_THERE.into(),
        Some(Spread { median, min, max }) => match (write(min), write(max)) {
            (min, max) if min == max => write(median),
            (min, max) => format!("{}\n{min}..{max}", write(median)),
        },
    }
}

/// The median alone.
pub(crate) fn middle(figure: Option<Spread>, write: fn(f64) -> String) -> String {
    figure.map_or(NOT_THERE.into(), |figure| write(figure.median))
}

/// The heads of a table's columns.
pub(crate) fn head(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}
