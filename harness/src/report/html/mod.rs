//! The report as one page of HTML that needs nothing else: no network, no script, no other file.
//!
//! `mod.rs` lays out the page, `findings.rs` concludes from the figures, `pictures.rs` and
//! `over_time.rs` choose what is drawn, `charts.rs` draws, `suite.rs` makes the page over several.
//! Every text passes through the template, which escapes it.

mod charts;
mod findings;
mod over_time;
mod pictures;
pub mod suite;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use self::charts::Picture;
use super::fairness;
use super::ratios::{self, EngineLines};
use super::summary::Summary;
use super::tables::{self, Table};
use crate::results::Comparison;
use crate::{Result, plain};

const STYLE: &str = include_str!("style.css");

/// The whole page; `pairs` as for the terminal.
///
/// # Errors
/// [`Error::Usage`](crate::Error::Usage) if a picture cannot be drawn, which all of ours can.
pub fn render(comparison: &Comparison, pairs: &[(String, String)]) -> Result<String> {
    let summaries = Summary::all(comparison);
    let figures = findings::figures(comparison, &summaries);
    let title = comparison.workload.workload.title();
    let rum = findings::rum(&summaries, &figures);
    let header = html! { (head(comparison, &title)) (contents()) };
    let main = html! {
        (troubles(comparison))
        (section("wins", "Who wins, at which cost", html! {
            (table(&wins(&summaries, &figures), false))
        }))
        (section("bars", "Times and sizes against the best", html! {
            (drawn("bar", &pictures::bars(&summaries, &figures)?))
        }))
        (section("tables", "All figures", html! {
            @for one in tables::all(comparison, &summaries) { (table(&one, true)) }
        }))
        (section("latency", "Latency", html! {
            (drawn("latency", &pictures::latencies(comparison, &summaries)?))
        }))
        (section("time", "Over time", html! {
            (drawn("time", &over_time::all(comparison, &summaries)?))
        }))
        (section("disk", "Disk by phase", html! {
            (drawn("disk", &pictures::disk(&summaries)?))
            (table(&pictures::disk_table(&summaries), true))
        }))
        (section("rum", "Reading, updating, memory", html! {
            (drawn("rum", &pictures::rum(&rum)?))
            (table(&pictures::rum_table(&rum), true))
        }))
        (inequalities(comparison))
        (published(comparison, &summaries, pairs))
        (engines(&summaries))
    };
    Ok(page(&title, &header, &main))
}

/// A page of that title.
fn page(title: &str, header: &Markup, main: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – enginelab" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#main" { "Skip to the results" }
                header { (header) }
                main #main { (main) }
            }
        }
    };
    plain::lines(&page.into_string()).into_owned()
}

fn head(comparison: &Comparison, title: &str) -> Markup {
    let machine = &comparison.machine;
    html! {
        h1 { (title) }
        p { (machine.summary()) "." }
        p {
            "Measured " (machine.date) " by enginelab " (machine.enginelab) " (" (machine.rustc)
            ", " (machine.build) " build)."
        }
        dl {
            @for (name, value) in tables::parameters(comparison) {
                div { dt { (name) } dd { (value) } }
            }
        }
    }
}

fn contents() -> Markup {
    let sections = [
        ("wins", "Wins and costs"),
        ("bars", "Against the best"),
        ("tables", "All figures"),
        ("latency", "Latency"),
        ("time", "Over time"),
        ("disk", "Disk"),
        ("rum", "Reading, updating, memory"),
        ("unequal", "What is not equal"),
        ("engines", "Engines"),
    ];
    html! {
        nav aria-label="Sections" {
            ul { @for (id, name) in sections { li { a href={ "#" (id) } { (name) } } } }
        }
    }
}

fn section(id: &str, title: &str, content: Markup) -> Markup {
    let heading = format!("{id}-heading");
    html! {
        section id=(id) aria-labelledby=(heading) { h2 id=(heading) { (title) } (content) }
    }
}

/// A table whose first column names its rows; the others are figures, or texts.
fn table(table: &Table, figures: bool) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(table.title) {
            table.figures[figures] {
                caption { (table.title) }
                thead { tr { @for name in &table.head { th scope="col" { (name) } } } }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (at, cell) in row.iter().enumerate() {
                                @if at == 0 { th scope="row" { (cell) } }
                                @else { td { (lines(cell)) } }
                            }
                        }
                    }
                }
            }
        }
        @for note in &table.notes { p.note { (note) } }
    }
}

/// The second line of a cell is its spread.
fn lines(cell: &str) -> Markup {
    let (first, second) = cell.split_once('\n').unwrap_or((cell, ""));
    html! { (first) @if !second.is_empty() { br; small { (second) } } }
}

/// Pictures; `id` is what their titles are known by.
fn drawn(id: &str, pictures: &[Picture]) -> Markup {
    html! {
        @for (at, picture) in pictures.iter().enumerate() {
            (figure(&format!("{id}-{at}"), picture))
        }
        @if pictures.is_empty() { p { "Nothing of this was measured." } }
    }
}

fn figure(id: &str, picture: &Picture) -> Markup {
    let (title, description) = (format!("{id}-title"), format!("{id}-description"));
    let (width, height) = picture.size;
    html! {
        figure {
            figcaption { (picture.title) }
            div.scroll tabindex="0" role="region" aria-label=(picture.title) {
                svg role="img" viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height)
                    aria-labelledby={ (title) " " (description) } {
                    title id=(title) { (picture.title) }
                    desc id=(description) { (picture.description) }
                    (PreEscaped(&picture.body))
                }
            }
        }
    }
}

fn wins(summaries: &[Summary<'_>], figures: &[findings::Figure]) -> Table {
    Table {
        title: "The best in each figure, and where it is behind the best".into(),
        head: ["figure", "best", "cannot be told from it", "cost of the winner"]
            .map(str::to_owned)
            .into(),
        rows: findings::wins(summaries, figures),
        notes: vec![
            "Less is better in all of them. Cost: the figures in which the winner is a tenth or \
             more behind the best there. Whom an interval of 95 % does not tell from the winner \
             may be as good; with fewer than three runs there are no intervals."
                .into(),
        ],
    }
}

fn troubles(comparison: &Comparison) -> Markup {
    let failed = comparison.problems().into_iter().map(|problem| format!("FAILED {problem}"));
    let skipped = comparison.skipped.iter().map(|skipped| format!("Not run: {}", skipped.reason));
    let stopped =
        comparison.interrupted.then(|| "Stopped before every run had finished".to_owned());
    let lines: Vec<String> = failed.chain(skipped).chain(stopped).collect();
    html! { @if !lines.is_empty() { (section("missing", "What is missing", list(&lines))) } }
}

fn inequalities(comparison: &Comparison) -> Markup {
    let lines = fairness::lint(comparison);
    section(
        "unequal",
        "What is not equal",
        match lines.is_empty() {
            true => html! { p { "Nothing that the engines tell of their settings." } },
            false => list(&lines),
        },
    )
}

fn list(lines: &[String]) -> Markup {
    html! { ul { @for line in lines { li { (line) } } } }
}

fn published(
    comparison: &Comparison,
    summaries: &[Summary<'_>],
    pairs: &[(String, String)],
) -> Markup {
    let lines = EngineLines::all(comparison, summaries);
    html! {
        @for (at, pair) in ratios::pairs(comparison, &lines, pairs).iter().enumerate() {
            (section(&format!("pair-{at}"), &pair.title, html! {
                ul {
                    @for line in &pair.measured { li { (line) } }
                    li { "right after the load, before any compaction: " (pair.after_load) }
                    @for (title, [disk, time]) in &pair.published {
                        li { "published, " (title) ": " (disk) "; " (time) }
                    }
                }
                p.note { (ratios::pair_note(comparison)) }
            }))
        }
    }
}

fn engines(summaries: &[Summary<'_>]) -> Markup {
    section(
        "engines",
        "Engines and their settings",
        html! {
            @for summary in summaries {
                h3 { (summary.engine) " " (summary.version) }
                @if let Some(run) = summary.runs.first() {
                    dl {
                        div { dt { "durability" } dd { (run.durability) } }
                        @for (name, value) in &run.settings { div { dt { (name) } dd { (value) } } }
                    }
                }
            }
        },
    )
}
