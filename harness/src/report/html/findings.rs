//! What the page concludes from the figures: who wins what at which cost, and who is on the front
//! of reading, updating and memory.

use crate::report::summary::Summary;
use crate::report::tables::Column;
use crate::report::traffic;
use crate::results::{Comparison, Run};

/// A figure of every engine, of which less is better.
pub(super) struct Figure {
    /// Its name, with what it is of.
    pub name: String,
    /// The figures.
    pub column: Column,
}

/// Everything that an engine can win.
pub(super) fn figures(comparison: &Comparison, summaries: &[Summary<'_>]) -> Vec<Figure> {
    let figure = |name: String, of: &dyn Fn(&Run) -> Option<f64>| Figure {
        name,
        column: Column::new(summaries, |summary| {
            summary.runs.iter().filter_map(|run| of(run)).collect()
        }),
    };
    let mut figures = Vec::new();
    for phase in phases(comparison) {
        figures.push(figure(format!("{phase}, time an operation"), &|run| {
            run.phase(&phase)?.throughput().map(|rate| 1.0 / rate)
        }));
    }
    figures.push(figure("load, quiesce and compact, time".into(), &|run| {
        ["load", "quiesce", "compact"].iter().map(|name| run.seconds(name)).sum()
    }));
    figures.push(figure("read back, time".into(), &|run| run.seconds("verify")));
    figures.push(figure("disk space in the end".into(), &|run| Some(run.grown_bytes()? as f64)));
    figures
        .push(figure("peak memory of its own".into(), &|run| Some(run.peak_own_bytes()? as f64)));
    figures.push(figure("processor time until closed".into(), &|run| {
        Some(run.until_closed().map(|phase| phase.usage.cpu_seconds()).sum())
    }));
    figures.retain(|figure| figure.column.best.is_some());
    figures
}

/// The names of the phases with operations, in order.
pub(super) fn phases(comparison: &Comparison) -> Vec<String> {
    traffic::phases(comparison).into_iter().map(|(name, _)| name).collect()
}

/// Costs that are smaller are no costs.
const LEAST_COST: f64 = 1.1;

/// What is best, who is, whom it cannot be told from, and where the winner is behind.
pub(super) fn wins(summaries: &[Summary<'_>], figures: &[Figure]) -> Vec<Vec<String>> {
    let rows = figures.iter().filter_map(|figure| {
        let best = figure.column.best?;
        let ties = ranked(summaries).filter(|&at| at != best);
        let ties = ties.filter(|&at| figure.column.ratio_to_best(at).is_some_and(|r| r.is_tie()));
        let ties: Vec<&str> = ties.map(|at| summaries[at].engine).collect();
        let mut costs: Vec<(f64, &str)> = figures
            .iter()
            .filter_map(|other| Some((other.column.ratio_to_best(best)?.ratio, &*other.name)))
            .filter(|(ratio, _)| *ratio >= LEAST_COST)
            .collect();
        costs.sort_by(|a, b| b.0.total_cmp(&a.0));
        let costs: Vec<String> =
            costs.iter().map(|(ratio, name)| format!("{name} {ratio:.2} ×")).collect();
        let or = |list: Vec<String>, nothing: &str| match list.is_empty() {
            true => nothing.to_owned(),
            false => list.join("; "),
        };
        Some(vec![
            figure.name.clone(),
            summaries[best].engine.to_owned(),
            or(ties.into_iter().map(str::to_owned).collect(), "nobody"),
            or(costs, "nothing that was measured"),
        ])
    });
    rows.collect()
}

fn ranked(summaries: &[Summary<'_>]) -> impl Iterator<Item = usize> {
    let ranked = summaries.iter().enumerate().filter(|(_, summary)| summary.is_ranked());
    ranked.map(|(at, _)| at)
}

/// An engine's overheads.
pub(super) struct Rum {
    pub engine: String,
    /// Reading, updating, memory: each by that of the best.
    pub overheads: [f64; 3],
    /// No other engine is as good in all three, and better in one.
    pub is_on_front: bool,
}

/// The overheads of the engines that are ranked and have all three.
pub(super) fn rum(summaries: &[Summary<'_>], figures: &[Figure]) -> Vec<Rum> {
    let column = |name: &str| figures.iter().find(|figure| figure.name == name);
    let columns = [READ, UPDATE, MEMORY].map(column);
    let mut cards: Vec<Rum> = ranked(summaries)
        .filter_map(|at| {
            let ratio = |figure: Option<&Figure>| Some(figure?.column.ratio_to_best(at)?.ratio);
            let [read, update, memory] = columns.map(ratio);
            Some(Rum {
                engine: summaries[at].engine.to_owned(),
                overheads: [read?, update?, memory?],
                is_on_front: true,
            })
        })
        .collect();
    let all: Vec<[f64; 3]> = cards.iter().map(|card| card.overheads).collect();
    for card in &mut cards {
        card.is_on_front = !all.iter().any(|other| dominates(other, &card.overheads));
    }
    cards
}

const READ: &str = "read back, time";
const UPDATE: &str = "load, quiesce and compact, time";
const MEMORY: &str = "disk space in the end";

fn dominates(a: &[f64; 3], b: &[f64; 3]) -> bool {
    a.iter().zip(b).all(|(a, b)| a <= b) && a != b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_is_what_nobody_dominates() {
        let all = [[1.0, 4.0, 2.0], [2.0, 1.0, 2.0], [2.0, 4.0, 2.0], [1.0, 4.0, 2.0]];
        let front = all.map(|one| !all.iter().any(|other| dominates(other, &one)));
        assert_eq!(front, [true, true, false, true]);
    }
}
