//! The report as Markdown, for a file that is kept. Every text in it is `escaped`, so that it says
//! what it says anywhere else.

use std::fmt::{Result as Written, Write};

use super::fairness;
use super::ratios::{self, EngineLines, PairLines};
use super::summary::Summary;
use super::tables::{self, Table};
use crate::plain;
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
    plain::lines(&out).into_owned()
}

fn write_head(out: &mut String, comparison: &Comparison) -> Written {
    let machine = &comparison.machine;
    let day = machine.date.split('T').next().unwrap_or_default();
    writeln!(out, "# {}, {}\n", escaped(&comparison.workload.workload.title()), escaped(day))?;
    writeln!(out, "{}.\n", escaped(&machine.summary()))?;
    let measured = format!(
        "Measured {} by enginelab {} ({}, {} build).",
        machine.date, machine.enginelab, machine.rustc, machine.build
    );
    writeln!(out, "{}\n", escaped(&measured))?;
    writeln!(out, "| parameter | value |\n|---|---|")?;
    for (name, value) in tables::parameters(comparison) {
        writeln!(out, "| {} | {} |", escaped(name), escaped(&value))?;
    }
    writeln!(out)
}

fn write_table(out: &mut String, table: &Table) -> Written {
    let cells = |texts: &[String]| -> String {
        texts.iter().map(|text| escaped(text)).collect::<Vec<_>>().join(" | ")
    };
    writeln!(out, "## {}\n", escaped(&table.title))?;
    writeln!(out, "| {} |", cells(&table.head))?;
    writeln!(out, "|---|{}", "---:|".repeat(table.head.len().saturating_sub(1)))?;
    for row in &table.rows {
        writeln!(out, "| {} |", cells(row))?;
    }
    writeln!(out)?;
    for note in &table.notes {
        writeln!(out, "{}", escaped(note))?;
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
        writeln!(out, "- {}", escaped(&line))?;
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
        writeln!(out, "- {}", escaped(&line))?;
    }
    writeln!(out)
}

fn write_pair(out: &mut String, pair: &PairLines, note: &str) -> Written {
    writeln!(out, "## {}\n\n```text", escaped(&pair.title))?;
    for line in &pair.measured {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "right after the load, before any compaction: {}", pair.after_load)?;
    for (title, [disk, time]) in &pair.published {
        writeln!(out, "published, {title}: {disk}; {time}")?;
    }
    writeln!(out, "```\n\n{}\n", escaped(note))
}

fn write_engines(out: &mut String, summaries: &[Summary<'_>], engines: &[EngineLines]) -> Written {
    writeln!(out, "## Engines\n")?;
    for summary in summaries {
        writeln!(out, "### {} {}\n", escaped(summary.engine), escaped(summary.version))?;
        if let Some(run) = summary.runs.first() {
            if !run.durability.is_empty() {
                writeln!(out, "- durability: {}", escaped(&run.durability))?;
            }
            for (name, value) in &run.settings {
                writeln!(out, "- {}: {}", escaped(name), escaped(value))?;
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

/// `text` such that Markdown shows it as it is, in a paragraph, a heading, a list or the cell of a
/// table. What is not taken for markup where it stands is left alone, so that it can be read as text.
fn escaped(text: &str) -> String {
    let text = text.trim();
    let mut markdown = String::with_capacity(text.len());
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        let next = rest.peek().copied();
        let is_in_word = |side: Option<char>| side.is_some_and(char::is_alphanumeric);
        let is_markup = match character {
            '\\' | '`' | '*' | '[' | ']' | '<' | '|' | '~' | '$' => true,
            '_' => !(is_in_word(before) && is_in_word(next)),
            '&' => next.is_some_and(|next| next == '#' || next.is_alphabetic()),
            // What makes a heading, a quotation, a list or a line at the beginning.
            '#' | '>' | '=' => before.is_none(),
            '+' | '-' => before.is_none() && !is_in_word(next),
            '.' | ')' if next.is_none_or(char::is_whitespace) => {
                !markdown.is_empty() && markdown.chars().all(|digit| digit.is_ascii_digit())
            }
            _ => false,
        };
        match character {
            '\n' => markdown.push_str("<br>"),
            _ if is_markup => markdown.extend(['\\', character]),
            _ => markdown.push(character),
        }
        before = Some(character);
    }
    markdown
}

#[cfg(test)]
mod tests {
    use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

    use super::*;
    use crate::workload::rng::SplitMix64;

    /// The texts of `markdown` within each `begin` and `end`, as a reader of Markdown sees them.
    fn seen(markdown: &str, is_begin: fn(&Tag<'_>) -> bool, end: TagEnd) -> Vec<String> {
        let (mut texts, mut inside) = (Vec::<String>::new(), false);
        for event in Parser::new_ext(markdown, Options::all() - Options::ENABLE_SMART_PUNCTUATION) {
            match event {
                Event::Start(tag) if is_begin(&tag) => {
                    texts.push(String::new());
                    inside = true;
                }
                Event::End(tag) if tag == end => inside = false,
                Event::Text(text) if inside => texts.last_mut().unwrap().push_str(&text),
                Event::InlineHtml(html) if inside && &*html == "<br>" => {
                    texts.last_mut().unwrap().push('\n');
                }
                event if inside => panic!("{event:?} in {markdown:?}"),
                _ => {}
            }
        }
        texts
    }

    /// By a reader of Markdown that others wrote, at every place where texts stand.
    #[test]
    fn what_is_written_is_what_is_read() {
        const PARTS: [&str; 30] = [
            "a", "b2", "Ä", " ", "\n", "\\", "`", "```", "*", "**", "_", "__", "[", "]", "](x)",
            "<b>", "<", ">", "|", "~", "~~", "$", "&", "&lt;", "#", "- ", "+", "=", "1. ", "2)",
        ];
        let mut rng = SplitMix64::new(7);
        for number in 0..20_000 {
            let parts = (0..=rng.below(9)).map(|_| PARTS[rng.below(PARTS.len())]);
            let text: String = parts.collect();
            let text = text.trim();
            if text.is_empty() {
                continue;
            }
            let written = escaped(text);
            for (what, markdown, is_begin, end) in [
                (
                    "paragraph",
                    format!("{written}\n"),
                    (|tag: &Tag<'_>| matches!(tag, Tag::Paragraph)) as fn(&Tag<'_>) -> bool,
                    TagEnd::Paragraph,
                ),
                ("item", format!("- {written}\n"), |tag| matches!(tag, Tag::Item), TagEnd::Item),
                (
                    "cell",
                    format!("| h | i |\n|---|---:|\n| {written} | j |\n"),
                    |tag| matches!(tag, Tag::TableCell),
                    TagEnd::TableCell,
                ),
            ] {
                let texts = seen(&markdown, is_begin, end);
                let at = if what == "cell" { 2 } else { 0 };
                assert_eq!(texts[at], text, "{number}: {what} {markdown:?}");
                assert_eq!(texts.len(), if what == "cell" { 4 } else { 1 }, "{markdown:?}");
            }
        }
    }

    #[test]
    fn what_is_no_markup_is_left_alone() {
        for text in
            ["max_open_files", "0.000", "0.37..1.20", "-0.40", "×", "10^6 bytes", "a & b", "3.1"]
        {
            assert_eq!(escaped(text), text);
        }
    }
}
