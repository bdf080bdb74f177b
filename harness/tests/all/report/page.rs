//! The page: well-formed, of nothing but itself, with what it has to tell.

use std::collections::BTreeMap;

use harness::measure::over_time::OverTime;
use harness::measure::resources::Memory;
use harness::report::html;
use harness::results::{Comparison, KindFigures, Latency, Traffic};
use harness::workload::op::Kind;

use super::{ITEMS, comparison};

/// A comparison with everything that a page shows, and a name that is an attack on it.
fn hostile() -> (Comparison, &'static str) {
    let mut comparison = comparison();
    let name = "<script src=\"//evil.example/x.js\">&'</script>";
    for (at, run) in comparison.runs.iter_mut().enumerate() {
        if run.engine == "lsm" {
            run.engine = name.into();
            run.settings.insert("</style><b>".into(), "\" onload=\"x".into());
        }
        let latency = |ns: u64| Latency {
            p50_ns: ns,
            p90_ns: 2 * ns,
            p99_ns: 3 * ns,
            p999_ns: 40 * ns,
            p9999_ns: 500 * ns,
            max_ns: 6_000 * ns,
            ..Latency::default()
        };
        run.own_memory = Some(Memory { own_bytes: 10_000_000, ..Memory::default() });
        run.phases[1].seen.over_time = OverTime {
            every_ms: 100,
            own_bytes: vec![20_000_000, 130_000_000, 90_000_000],
            disk_bytes: vec![1_000_000, 77_000_000, 40_000_000],
        };
        let kind = KindFigures { latency: latency(100 + at as u64), ..KindFigures::default() };
        run.phases[1].traffic = Some(Traffic {
            operations: ITEMS,
            kinds: BTreeMap::from([(Kind::Insert, kind)]),
            timeline: vec![10, 20, 0, 0, 30, 5],
            ..Traffic::default()
        });
    }
    (comparison, name)
}

#[test]
fn the_page_is_well_formed_and_needs_nothing_else() {
    let (comparison, _) = hostile();
    let page = html::render(&comparison, &[]).unwrap();
    let parsed = scraper::Html::parse_document(&page);
    assert!(parsed.errors.is_empty(), "{:?}", parsed.errors);
    let all = scraper::Selector::parse("*").unwrap();
    let mut ids = std::collections::HashSet::new();
    for element in parsed.select(&all).map(|found| found.value()) {
        assert!(!["script", "link", "img", "iframe", "image"].contains(&element.name()));
        for (name, value) in element.attrs() {
            assert!(!name.starts_with("on") && name != "src" && name != "xlink:href", "{name}");
            assert!(name != "href" || value.starts_with('#'), "{value}");
        }
        assert!(element.id().is_none_or(|id| ids.insert(id.to_owned())), "{:?}", element.id());
    }
    let style = page.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
    assert!(!style.contains("url(") && !style.contains("@import"), "{style}");
    let links = scraper::Selector::parse("a[href]").unwrap();
    for link in parsed.select(&links) {
        assert!(ids.contains(&link.attr("href").unwrap()[1..]), "{}", link.html());
    }
    for picture in parsed.select(&scraper::Selector::parse("svg").unwrap()) {
        assert_eq!(picture.attr("role"), Some("img"));
        for id in picture.attr("aria-labelledby").unwrap().split(' ') {
            assert!(ids.contains(id), "{id}");
        }
    }
    let figures = parsed.select(&scraper::Selector::parse("figure > figcaption").unwrap()).count();
    assert_eq!(figures, page.matches("<figure>").count());
    let captions = parsed.select(&scraper::Selector::parse("table > caption").unwrap()).count();
    assert_eq!(captions, page.matches("<table").count());
    let loose = scraper::Selector::parse("th:not([scope])").unwrap();
    assert_eq!(parsed.select(&loose).count(), 0);
}

#[test]
fn the_page_promises_an_interval_only_where_runs_give_one() {
    let promised = |comparison: &Comparison| {
        html::render(comparison, &[]).unwrap().matches("with its 95 % interval").count()
    };
    let mut comparison = comparison();
    assert!(promised(&comparison) > 0);
    comparison.runs.retain(|run| run.repeat == 1);
    assert_eq!(promised(&comparison), 0);
}

#[test]
fn the_page_names_every_engine_and_escapes_every_text() {
    let (comparison, name) = hostile();
    let page = html::render(&comparison, &[]).unwrap();
    assert!(!page.contains("<script") && !page.contains("</style><b>"), "{page}");
    let parsed = scraper::Html::parse_document(&page);
    let text: String = parsed.root_element().text().collect::<Vec<_>>().join("\n");
    for expected in ["bitcask", name, "raw-append", "sqlite", "rocksdb", "\" onload=\"x"] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
    let of_svg = |selector: &str| -> Vec<String> {
        let selector = scraper::Selector::parse(selector).unwrap();
        parsed.select(&selector).map(|found| found.text().collect::<String>()).collect()
    };
    let drawn = of_svg("svg text");
    assert!(drawn.iter().any(|text| text.trim() == name), "{drawn:?}");
    assert!(drawn.iter().any(|text| text.trim() == "1.60 (0.53..4.80)"), "{drawn:?}");
    // Two buckets of 100 ms without an operation.
    let told = of_svg("svg desc").join("\n");
    assert!(told.contains("bitcask: 1 stall, the longest 0.2 s"), "{told}");
    // 130 MB, of which the laboratory had 10 before; and the blocks of the directory.
    assert!(told.contains("bitcask: at most 120 MB"), "{told}");
    assert!(told.contains("bitcask: at most 77 MB"), "{told}");
}

/// The first is faster, the second smaller: each wins at a cost, and both are on the front.
#[test]
fn wins_stand_beside_their_costs() {
    let (comparison, name) = hostile();
    let page = html::render(&comparison, &[]).unwrap();
    let parsed = scraper::Html::parse_document(&page);
    let rows = |section: &str| -> Vec<Vec<String>> {
        let row = scraper::Selector::parse(&format!("#{section} tbody tr")).unwrap();
        let cell = scraper::Selector::parse("th, td").unwrap();
        let cells = |row: scraper::ElementRef<'_>| {
            row.select(&cell).map(|cell| cell.text().collect()).collect()
        };
        parsed.select(&row).map(cells).collect()
    };
    let wins = rows("wins");
    let win = |figure: &str| wins.iter().find(|row| row[0] == figure).unwrap();
    let load = win("load, time an operation");
    assert_eq!(load[1], "bitcask");
    assert!(load[3].contains("disk space in the end 3.00 ×"), "{load:?}");
    assert_eq!(win("disk space in the end")[1], name);
    let rum = rows("rum");
    assert_eq!(rum.len(), 2, "failed engines and reference points are not ranked: {rum:?}");
    assert_eq!(rum[0], ["bitcask", "1.00", "1.00", "3.00", "yes"]);
    assert_eq!(rum[1], [name, "1.60", "1.60", "1.00", "yes"]);
}
