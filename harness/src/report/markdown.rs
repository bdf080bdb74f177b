//! The report as Markdown, for a file that is kept.

use std::fmt::{Result as Written, Write};

use super::fairness;
use super::ratios::{self, EngineLines, PairLines};
use super::summary::Summary;
use super::tables::{self, Table};
use crate::results::Comparison;

/// The whole report; `pairs` as for the terminal.
pub fn render(comparison: &Comparison, pairs: &[(String, String)]) -> String {
    let summaries = Summary::all(comparison);
    let engines = EngineLines::all(comparison, &summaries);
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write_head(&mut out, comparison);
    for table in tables::all(comparison, &summaries) {
        let _ = write_table(&mut out, &table);
    }
    let _ = write_inequalities(&mut out, comparison);
    let _ = write_troubles(&mut out, comparison);
    for pair in ratios::pairs(comparison, &engines, pairs) {
        let _ = write_pair(&mut out, &pair, &ratios::pair_note(comparison));
    }
    let _ = write_engines(&mut out, &summaries, &engines);
    out
}

fn write_head(out: &mut String, comparison: &Comparison) -> Written {
    let machine = &comparison.machine;
    let day = machine.date.split('T').next().unwrap_or_default();
    writeln!(out, "# {}, {day}\n", comparison.workload.workload.title())?;
    writeln!(out, "{}.\n", machine.summary())?;
    writeln!(
        out,
        "Measured {} by enginelab {} ({}, {} build).\n",
        machine.date, machine.enginelab, machine.rustc, machine.build
    )?;
    writeln!(out, "| parameter | value |\n|---|---|")?;
    for (name, value) in tables::parameters(comparison) {
        writeln!(out, "| {name} | {value} |")?;
    }
    writeln!(out)
}

fn write_table(out: &mut String, table: &Table) -> Written {
    writeln!(out, "## {}\n", table.title)?;
    writeln!(out, "| {} |", table.head.join(" | "))?;
    writeln!(out, "|---|{}", "---:|".repeat(table.head.len().saturating_sub(1)))?;
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('\n', "<br>")).collect();
        writeln!(out, "| {} |", cells.join(" | "))?;
    }
    writeln!(out)?;
    for note in &table.notes {
        writeln!(out, "{note}")?;
    }
    writeln!(out)
}

fn write_inequalities(out: &mut String, comparison: &Comparison) -> Written {
    let lines = fairness::lint(comparison);
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "## What is not equal\n")?;
    for line in lines {
        writeln!(out, "- {line}")?;
    }
    writeln!(out)
}

fn write_troubles(out: &mut String, comparison: &Comparison) -> Written {
    let failed = comparison.problems().into_iter().map(|problem| format!("FAILED {problem}"));
    let skipped = comparison.skipped.iter().map(|skipped| format!("Not run: {}", skipped.reason));
    let stopped =
        comparison.interrupted.then(|| "Stopped before every run had finished".to_owned());
    let lines: Vec<String> = failed.chain(skipped).chain(stopped).collect();
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "## What is missing\n")?;
    for line in lines {
        writeln!(out, "- {line}")?;
    }
    writeln!(out)
}

fn write_pair(out: &mut String, pair: &PairLines, note: &str) -> Written {
    writeln!(out, "## {}\n\n```text", pair.title)?;
    for line in &pair.measured {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "right after the load, before any compaction: {}", pair.after_load)?;
    for (title, [disk, time]) in &pair.published {
        writeln!(out, "published, {title}: {disk}; {time}")?;
    }
    writeln!(out, "```\n\n{note}\n")
}

fn write_engines(out: &mut String, summaries: &[Summary<'_>], engines: &[EngineLines]) -> Written {
    writeln!(out, "## Engines\n")?;
    for summary in summaries {
        writeln!(out, "### {} {}\n", summary.engine, summary.version)?;
        if let Some(run) = summary.runs.first() {
            if !run.durability.is_empty() {
                writeln!(out, "- durability: {}", run.durability)?;
            }
            for (name, value) in &run.settings {
                writeln!(out, "- {name}: {value}")?;
            }
        }
        for lines in engines.iter().filter(|lines| lines.engine == summary.engine) {
            for line in lines.lines() {
                writeln!(out, "- {line}")?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}
