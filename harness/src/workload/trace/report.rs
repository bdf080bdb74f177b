//! What is said of a trace.

use super::Trace;
use crate::report::figures::grouped;
use crate::report::summary::Summary;
use crate::report::tables::{NOT_THERE, Table, head};
use crate::results::Run;
use crate::workload::op::Kind;
use crate::workload::sized::Content;

pub(super) fn parameters(trace: &Trace) -> Vec<(&'static str, String)> {
    let facts = &trace.facts;
    let mut words =
        vec![("files", trace.files.join(", ")), ("format", facts.format.words().to_owned())];
    match &facts.recorded {
        Some(recorded) => {
            words.push(("recorded", recorded.workload.title()));
            words.push(("recorded seed", recorded.client.seed.to_string()));
        }
        None => {
            let puts = if trace.content == Content::Text { "text" } else { "random bytes" };
            words.push(("value", format!("sizes of the trace, {puts}")));
        }
    }
    if let Some(seconds) = facts.seconds {
        words.push(("span", format!("{} s", grouped(seconds))));
    }
    words.push((
        "speed",
        match trace.speed {
            Some(speed) => format!("{speed} times the recorded one, open loop"),
            None => "as fast as the engine can".to_owned(),
        },
    ));
    for (name, count) in
        [("time to live, not replayed", facts.expiring), ("lines skipped", facts.skipped_lines)]
    {
        if count > 0 {
            words.push((name, grouped(count)));
        }
    }
    words
}

pub(super) fn tables(trace: &Trace, summaries: &[Summary<'_>]) -> Vec<Table> {
    let mut tables = Vec::new();
    if trace.facts.recorded.is_none() {
        tables.push(requests(trace));
    }
    tables.push(found(trace, summaries));
    tables
}

fn percent(part: u64, whole: u64) -> String {
    match whole {
        0 => NOT_THERE.to_owned(),
        _ => format!("{:.2}", 100.0 * part as f64 / whole as f64),
    }
}

fn requests(trace: &Trace) -> Table {
    let row = |(word, count): (&String, &u64)| {
        vec![word.clone(), grouped(*count), percent(*count, trace.operations)]
    };
    Table {
        title: "Requests of the trace".into(),
        head: head(&["request", "count", "%"]),
        rows: trace.facts.requests.iter().map(row).collect(),
        notes: vec![format!(
            "{} bytes of values are put; all records with their largest values are {} bytes.",
            grouped(trace.facts.put_bytes),
            grouped(trace.facts.data_bytes)
        )],
    }
}

fn found(trace: &Trace, summaries: &[Summary<'_>]) -> Table {
    let rows = summaries.iter().map(|summary| {
        let (reads, missed) = summary.runs.first().map_or((0, 0), |run| reads(run));
        vec![
            summary.engine.to_owned(),
            grouped(reads),
            grouped(reads.saturating_sub(missed)),
            grouped(missed),
            percent(reads.saturating_sub(missed), reads),
        ]
    });
    let facts = &trace.facts;
    let note = format!(
        "In the trace itself, {} of such reads are of records written before, and {} are not: it \
         begins cold.",
        grouped(facts.hits),
        grouped(facts.misses)
    );
    Table {
        title: "Reads that found their record".into(),
        head: head(&["engine", "reads", "found", "not found", "found %"]),
        rows: rows.collect(),
        notes: if facts.recorded.is_some() { Vec::new() } else { vec![note] },
    }
}

/// The records that a run asked for, and those of them that were not there.
fn reads(run: &Run) -> (u64, u64) {
    let traffic = run.phases.iter().filter_map(|phase| phase.traffic.as_ref());
    let kinds = traffic.flat_map(|traffic| &traffic.kinds);
    let asks = |kind: &Kind| {
        matches!(kind, Kind::Read | Kind::BatchRead | Kind::UpdateField | Kind::ReadModifyWrite)
    };
    kinds.filter(|(kind, _)| asks(kind)).fold((0, 0), |(reads, missed), (_, figures)| {
        (reads + figures.operations, missed + figures.not_found)
    })
}
