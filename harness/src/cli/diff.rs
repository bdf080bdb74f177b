//! `enginelab diff`: what changed from one result to another.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;

use super::Ending;
use crate::cli::size;
use crate::report::diff::{Change, Diff};
use crate::report::figures::grouped_decimal;
use crate::report::json;
use crate::report::terminal::wrapped;
use crate::results::Parameters;
use crate::results::difference::Difference;
use crate::{Error, Result};

/// What can be chosen.
#[derive(Debug, Clone, Args)]
pub struct DiffArgs {
    /// The result to compare with, as --out wrote it, of at most 1 GiB
    pub before: PathBuf,

    /// The result to judge, of at most 1 GiB
    pub after: PathBuf,

    /// How much worse or better a figure must be to be told, in percent
    #[arg(
        long,
        value_name = "PERCENT",
        default_value = "5",
        value_parser = size::percent,
        allow_negative_numbers = true
    )]
    pub threshold: f64,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Compares two results; a regression ends badly.
///
/// # Errors
/// [`Error::Usage`] for what is no result, or of another workload.
pub fn diff(args: &DiffArgs) -> Result<Ending> {
    let (before, after) = (json::read(&args.before)?, json::read(&args.after)?);
    check_same_work(&before.workload, &after.workload)?;
    let diff = Diff::new(&before, &after, args.threshold / 100.0);
    super::print(&match args.json {
        true => json::render(&diff)?,
        false => in_words(&diff, args.threshold),
    })?;
    Ok(if diff.has_regression() { Ending::Badly } else { Ending::Well })
}

/// Repeats may differ, and everything else may not.
fn check_same_work(before: &Parameters, after: &Parameters) -> Result<()> {
    let before = Parameters { repeats: after.repeats, ..before.clone() };
    match Difference::first(&before, after) {
        None => Ok(()),
        Some(Difference { place, then, now }) => Err(Error::Usage(format!(
            "not the same work: {place} was {then} in the first, and is {now} in the second"
        ))),
    }
}

fn in_words(diff: &Diff, threshold: f64) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    for change in &diff.changes {
        let _ = wrapped(&mut text, &line(change), "  ");
    }
    if diff.changes.is_empty() {
        let _ = writeln!(
            text,
            "Nothing changed by more than {threshold} % beyond noise, of {} figures.",
            diff.compared
        );
    }
    if !diff.doubtful.is_empty() {
        let note = format!(
            "{} moved beyond the threshold too, as may happen by chance among {} figures; more \
             repeats tell: {}",
            diff.doubtful.len(),
            diff.compared,
            diff.doubtful.iter().map(in_short).collect::<Vec<_>>().join("; ")
        );
        let _ = wrapped(&mut text, &note, "  ");
    }
    for note in &diff.notes {
        let _ = wrapped(&mut text, &format!("note: {note}"), "  ");
    }
    text
}

fn in_short(change: &Change) -> String {
    format!("{} {} {:.2}", change.engine, change.figure, change.ratio)
}

fn line(change: &Change) -> String {
    let Change { engine, figure, ratio, interval: [low, high], .. } = change;
    let [was, is] = change.medians.map(|median| match change.unit {
        "s" if median < 1e-3 => format!("{:.3} us", median * 1e6),
        "s" => format!("{median:.3} s"),
        unit => format!("{} {unit}", grouped_decimal(median, 0)),
    });
    let word = if change.is_regression { "WORSE" } else { "better" };
    let interval = match change.assumed {
        true => format!("{low:.2} to {high:.2} assumed: too few runs to tell"),
        false => format!("95 %: {low:.2} to {high:.2}"),
    };
    format!("{word} {engine}, {figure}: {was} -> {is}, ratio {ratio:.2} ({interval})")
}
