//! Results of several machines side by side: a table a phase.

use std::fmt::Write;

use super::figures::seconds;
use super::summary::Summary;
use super::tables::{NOT_THERE, Table};
use super::terminal;
use crate::results::Comparison;

/// The machines by number, and the time of each phase with operations on each of them.
pub fn render(results: &[Comparison]) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    for (number, result) in (1..).zip(results) {
        let line = format!("[{number}] {}: {}", result.machine.date, result.machine.summary());
        let _ = terminal::wrapped(&mut out, &line, "    ");
    }
    let _ = writeln!(out);
    let mut phases: Vec<&str> = Vec::new();
    let all = results.iter().flat_map(|result| &result.runs).flat_map(|run| &run.phases);
    for phase in all.filter(|phase| phase.traffic.is_some()) {
        if !phases.contains(&phase.name.as_str()) {
            phases.push(&phase.name);
        }
    }
    for phase in phases {
        let _ = terminal::write_table(&mut out, &table(results, phase), false);
    }
    out
}

fn table(results: &[Comparison], phase: &str) -> Table {
    let summaries: Vec<Vec<Summary<'_>>> = results.iter().map(Summary::all).collect();
    let mut engines: Vec<&str> = Vec::new();
    for summary in summaries.iter().flatten() {
        if !engines.contains(&summary.engine) {
            engines.push(summary.engine);
        }
    }
    let rows = engines.into_iter().map(|engine| {
        let mut row = vec![engine.to_owned()];
        for of_machine in &summaries {
            let best = of_machine.iter().filter(|summary| summary.is_ranked());
            let best = best.filter_map(|summary| summary.seconds(&[phase]));
            let best = best.map(|spread| spread.median).reduce(f64::min);
            let own = of_machine.iter().find(|summary| summary.engine == engine);
            let own = own.filter(|summary| summary.problem.is_none());
            let own = own.and_then(|summary| summary.seconds(&[phase]));
            row.push(own.map_or(NOT_THERE.into(), |own| seconds(own.median)));
            let ratio = own.zip(best).filter(|(_, best)| *best > 0.0);
            row.push(
                ratio.map_or(NOT_THERE.into(), |(own, best)| format!("{:.2}", own.median / best)),
            );
        }
        row
    });
    let mut head = vec!["engine".to_owned()];
    for number in 1..=results.len() {
        head.extend([format!("[{number}]"), "×".to_owned()]);
    }
    Table {
        title: format!("{phase}: seconds on each machine"),
        head,
        rows: rows.collect(),
        notes: vec!["×: against the best of that machine. Medians over the repeats.".into()],
    }
}
