//! The tables of a comparison as plain text cells, which the formats then draw.

use super::figures::{binary_size, megabytes, seconds};
use super::summary::{Spread, Summary};
use crate::measure::disk::DiskUsage;
use crate::results::{Comparison, Skipped};

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

/// Times of all engines against the best.
pub fn times(summaries: &[Summary<'_>], skipped: &[Skipped]) -> Table {
    let load = Column::new(summaries, |summary| summary.seconds(&["load"]));
    let whole = Column::new(summaries, |summary| summary.seconds(&["load", "quiesce", "compact"]));
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

/// Directory sizes of all engines against the best.
pub fn sizes(summaries: &[Summary<'_>], skipped: &[Skipped]) -> Table {
    fn apparent(usage: DiskUsage) -> u64 {
        usage.apparent_bytes
    }
    fn allocated(usage: DiskUsage) -> u64 {
        usage.allocated_bytes
    }
    let grown = |phase: &'static str| {
        Column::new(summaries, move |summary| summary.growth(phase, apparent))
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
    let rows = rows.chain(without_figures(skipped));
    Table {
        title: "Disk space in MB (10^6 bytes), growth of the directory".into(),
        head: head(&[
            "engine", "load", "×", "compact", "×", "reopen", "blocks", "verified",
        ]),
        rows: rows.collect(),
        notes: vec![
            "Sizes are lengths of files and folders; blocks: what the file system gave them at the end."
                .into(),
        ],
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
struct Column {
    figures: Vec<Option<Spread>>,
    best: Option<f64>,
}

impl Column {
    fn new(summaries: &[Summary<'_>], figure: impl Fn(&Summary<'_>) -> Option<Spread>) -> Self {
        let figures: Vec<_> = summaries.iter().map(figure).collect();
        let ranked = summaries.iter().zip(&figures).filter(|(summary, _)| summary.is_ranked());
        let best = ranked.filter_map(|(_, figure)| *figure).map(|f| f.median).reduce(f64::min);
        Self { figures, best }
    }

    fn cell(&self, at: usize, write: fn(f64) -> String) -> String {
        cell(self.figures[at], write)
    }

    fn ratio(&self, at: usize) -> String {
        match (self.figures[at], self.best) {
            (Some(figure), Some(best)) if best > 0.0 => format!("{:.2}", figure.median / best),
            _ => NOT_THERE.into(),
        }
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
fn middle(figure: Option<Spread>, write: fn(f64) -> String) -> String {
    figure.map_or(NOT_THERE.into(), |figure| write(figure.median))
}

fn head(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}
