//! The report for a terminal, at most 100 columns wide.

use std::fmt::Write;

use comfy_table::{Cell, CellAlignment, Color, ContentArrangement, LineStyle, TableStyle};

use super::fairness;
use super::ratios::{self, EngineLines, PairLines};
use super::summary::Summary;
use super::tables::{self, Table};
use crate::plain;
use crate::results::Comparison;

/// The widest line.
pub const COLUMNS: u16 = 100;

/// The whole report. `pairs` are the ratios asked for; none asks for the published pair. `colour`
/// paints what failed; nothing else in it commands a terminal, whatever names there are.
pub fn render(comparison: &Comparison, pairs: &[(String, String)], colour: bool) -> String {
    let summaries = Summary::all(comparison);
    let engines = EngineLines::all(comparison, &summaries);
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write_head(&mut out, comparison);
    for engine in &engines {
        let summary = summaries.iter().find(|summary| summary.engine == engine.engine);
        let _ = write_engine(&mut out, engine, summary);
    }
    for pair in ratios::pairs(comparison, &engines, pairs) {
        let _ = write_pair(&mut out, &pair, &ratios::pair_note(comparison));
    }
    for table in tables::all(comparison, &summaries) {
        let _ = write_table(&mut out, &table, colour);
    }
    let _ = write_troubles(&mut out, comparison);
    out
}

type Written = std::fmt::Result;

fn write_head(out: &mut String, comparison: &Comparison) -> Written {
    let parameters = tables::parameters(comparison);
    let parameters: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{name} {value}")).collect();
    wrapped(
        out,
        &format!("{}: {}", comparison.workload.workload.title(), parameters.join("; ")),
        "  ",
    )?;
    let machine = &comparison.machine;
    wrapped(out, &format!("Machine: {}", machine.summary()), "  ")?;
    wrapped(
        out,
        &format!(
            "Measured: {} by enginelab {}, {}, {} build",
            machine.date, machine.enginelab, machine.rustc, machine.build
        ),
        "  ",
    )?;
    writeln!(out)
}

fn write_engine(out: &mut String, engine: &EngineLines, summary: Option<&Summary<'_>>) -> Written {
    let version = summary.map_or("", |summary| summary.version);
    let durability = summary.and_then(|summary| summary.runs.first()).map(|run| &run.durability);
    let durability = durability.map_or("", String::as_str);
    wrapped(out, &format!("{} {version}: {durability}", engine.engine), "  ")?;
    for line in engine.lines() {
        wrapped(out, &format!("  {line}"), "    ")?;
    }
    writeln!(out)
}

fn write_pair(out: &mut String, pair: &PairLines, note: &str) -> Written {
    wrapped(out, &pair.title, "  ")?;
    for line in &pair.measured {
        writeln!(out, "  {line}")?;
    }
    writeln!(out, "  right after the load, before any compaction: {}", pair.after_load)?;
    for (title, [disk, time]) in &pair.published {
        writeln!(out, "  published, {title}: {disk}; {time}")?;
    }
    wrapped(out, &format!("  {note}"), "  ")?;
    writeln!(out)
}

const UNDERLINED_HEAD: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

pub(super) fn write_table(out: &mut String, table: &Table, colour: bool) -> Written {
    let mut drawn = comfy_table::Table::new();
    drawn
        .load_style(UNDERLINED_HEAD)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(table.head.iter().map(|name| plain::lines(name)));
    if colour {
        drawn.enforce_styling();
    } else {
        drawn.force_no_tty();
    }
    for row in &table.rows {
        let failed = row.last().is_some_and(|verdict| verdict == "FAILED");
        drawn.add_row(row.iter().map(|text| match failed {
            true => Cell::new(plain::lines(text)).fg(Color::Red),
            false => Cell::new(plain::lines(text)),
        }));
    }
    for column in drawn.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    writeln!(out, "{}\n{}", plain::line(&table.title), drawn.trim_fmt())?;
    for note in &table.notes {
        wrapped(out, note, "")?;
    }
    writeln!(out)
}

fn write_troubles(out: &mut String, comparison: &Comparison) -> Written {
    for inequality in fairness::lint(comparison) {
        wrapped(out, &format!("unequal: {inequality}"), "  ")?;
    }
    for problem in comparison.problems() {
        wrapped(out, &format!("FAILED {problem}"), "  ")?;
    }
    for skipped in &comparison.skipped {
        wrapped(out, &format!("not run: {}", skipped.reason), "  ")?;
    }
    if comparison.interrupted {
        writeln!(out, "stopped before every run had finished")?;
    }
    Ok(())
}

/// Writes `text`, made plain, in lines of at most [`COLUMNS`], those after the first behind `indent`.
pub(crate) fn wrapped(out: &mut String, text: &str, indent: &str) -> Written {
    let text = plain::line(text);
    let mut line = String::new();
    for word in text.split_inclusive(' ') {
        let bare = word.trim_end();
        let is_full = plain::width(&line) + plain::width(bare) > usize::from(COLUMNS);
        if is_full && !line.trim().is_empty() {
            writeln!(out, "{}", line.trim_end())?;
            line = indent.to_owned();
        }
        line.push_str(word);
    }
    writeln!(out, "{}", line.trim_end())
}
