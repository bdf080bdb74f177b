//! The page over the results of a suite: what each engine costs under each workload, against the
//! best there, with a link to the page of each.

use maud::html;
use serde::Serialize;

use super::findings;
use super::{list, page, section, table, wins};
use crate::report::summary::Summary;
use crate::report::tables::{Column, NOT_THERE, Table, head};
use crate::results::{Comparison, Run};

/// A comparison of a suite.
#[derive(Debug)]
pub struct Part {
    /// What its files are called.
    pub name: String,
    /// The command line that made it.
    pub command: String,
    /// The result.
    pub comparison: Comparison,
}

/// A comparison that could be in the suite and is not.
#[derive(Debug, Serialize)]
pub struct NotRun {
    /// What its files would be called.
    pub name: String,
    /// The command line that makes it.
    pub command: String,
    /// Why it is not there.
    pub reason: String,
}

/// The page; the parts' own pages lie beside it, as `NAME.html`.
pub fn render(parts: &[Part], not_run: &[NotRun]) -> String {
    let title = "Which embedded storage engine should hold my data?";
    let header = html! {
        h1 { (title) }
        @if let Some(part) = parts.first() {
            p { (part.comparison.machine.summary()) "." }
            p {
                "Measured from " (part.comparison.machine.date) " on by enginelab "
                (part.comparison.machine.enginelab) "."
            }
        }
    };
    let main = html! {
        (section("costs", "Time, space and memory", html! {
            @for (title, figure) in COSTS { (table(&matrix(parts, title, figure), true)) }
        }))
        @for part in parts {
            @let summaries = Summary::all(&part.comparison);
            @let figures = findings::figures(&part.comparison, &summaries);
            (section(&part.name, &part.comparison.workload.workload.title(), html! {
                p { a href={ (part.name) ".html" } { "All figures and pictures" } }
                p { code { "enginelab compare " (part.command) } }
                (list(&troubles(&part.comparison)))
                (table(&wins(&summaries, &figures), false))
            }))
        }
        @if !not_run.is_empty() {
            (section("not-run", "What was not run", html! {
                (table(&absent(not_run), false))
            }))
        }
    };
    page(title, &header, &main)
}

fn absent(not_run: &[NotRun]) -> Table {
    let row = |absent: &NotRun| {
        let command = format!("enginelab compare {}", absent.command);
        vec![absent.name.clone(), absent.reason.clone(), command]
    };
    Table {
        title: "Comparisons without a result here".into(),
        head: head(&["comparison", "why", "command"]),
        rows: not_run.iter().map(row).collect(),
        notes: Vec::new(),
    }
}

fn troubles(comparison: &Comparison) -> Vec<String> {
    comparison.problems().into_iter().map(|problem| format!("FAILED {problem}")).collect()
}

/// A figure of a run, of which less is better.
type Cost = fn(&Run) -> Option<f64>;

const COSTS: [(&str, Cost); 4] = [
    ("Time of all operations and of the background work after them", work_seconds),
    ("Time to read everything back", |run| run.seconds("verify")),
    ("Disk space in the end", |run| Some(run.grown_bytes()? as f64)),
    ("Peak memory of its own", |run| Some(run.peak_own_bytes()? as f64)),
];

fn work_seconds(run: &Run) -> Option<f64> {
    let phases = run.phases.iter().skip_while(|phase| phase.name == "open");
    let phases = phases.take_while(|phase| phase.name != "close" && phase.name != "reopen");
    run.verified.map(|_| phases.map(|phase| phase.seconds).sum())
}

/// Each engine under each workload, against the best there.
fn matrix(parts: &[Part], title: &str, cost: Cost) -> Table {
    let columns: Vec<(Vec<Summary<'_>>, Column)> = parts
        .iter()
        .map(|part| {
            let summaries = Summary::all(&part.comparison);
            let column = Column::new(&summaries, |summary| {
                summary.runs.iter().filter_map(|run| cost(run)).collect()
            });
            (summaries, column)
        })
        .collect();
    let mut engines: Vec<&str> = Vec::new();
    for summary in columns.iter().flat_map(|(summaries, _)| summaries) {
        if summary.kind != "reference" && !engines.contains(&summary.engine) {
            engines.push(summary.engine);
        }
    }
    let rows = engines.into_iter().map(|engine| {
        let cells = columns.iter().map(|(summaries, column)| {
            let at = summaries.iter().position(|summary| summary.engine == engine);
            let at = at.filter(|&at| summaries[at].is_ranked());
            let ratio = at.and_then(|at| column.ratio_to_best(at));
            ratio.map_or(NOT_THERE.to_owned(), |ratio| format!("{:.2}", ratio.ratio))
        });
        std::iter::once(engine.to_owned()).chain(cells).collect()
    });
    Table {
        title: title.to_owned(),
        rows: rows.collect(),
        head: std::iter::once("engine".to_owned())
            .chain(parts.iter().map(|part| part.name.clone()))
            .collect(),
        notes: vec!["Against the best of each workload, which has 1.00; less is better.".into()],
    }
}
