//! Reports of results that no short run gives: large figures, many repeats, failures.

use std::collections::BTreeMap;
use std::fs;

use harness::files::output;
use harness::measure::disk::DiskUsage;
use harness::measure::machine::Machine;
use harness::measure::over_time::OverTime;
use harness::measure::resources::Memory;
use harness::report::{csv, html, json, markdown, terminal};
use harness::results::{
    Client, Comparison, Conditions, KindFigures, Latency, Operations, Parameters, Phase, Run,
    SCHEMA, Settings, Skipped, Traffic, Verified,
};
use harness::workload::Workload;
use harness::workload::insert::Insert;
use harness::workload::op::Kind;
use harness::workload::values::{Corpus, Framing};

const ITEMS: u64 = 500_000;

fn run(engine: &str, kind: &str, repeat: u32, load: f64, bytes: u64) -> Run {
    let usage = |apparent_bytes: u64| DiskUsage {
        apparent_bytes,
        allocated_bytes: apparent_bytes.next_multiple_of(4_096),
    };
    let (grown, compacted) = (usage(4_096 + bytes * 2), usage(4_096 + bytes));
    let phases = [
        ("open", 0.01, usage(4_096)),
        ("load", load, grown),
        ("quiesce", load, grown),
        ("compact", load / 2.0, compacted),
        ("close", 0.1, compacted),
        ("reopen", 0.2, compacted),
        ("verify", load / 3.0, compacted),
        ("count", 1.0, compacted),
    ];
    let phases = phases.map(|(name, seconds, disk)| Phase {
        name: name.into(),
        seconds,
        wall_seconds: seconds * 1.1,
        disk,
        ..Phase::default()
    });
    Run {
        engine: engine.into(),
        kind: kind.into(),
        version: "1.2.3".into(),
        durability: "what it does to reach the level, at some length".into(),
        settings: BTreeMap::from([("write buffer".into(), "64 MiB".into())]),
        repeat,
        operations: Some(Operations { count: ITEMS, hash: "xxh3-sum:0123456789abcdef".into() }),
        disk_before: Some(usage(4_096)),
        phases: phases.into(),
        verified: Some(Verified { read_back: ITEMS, extra: Some(0), ..Verified::default() }),
        ..Run::default()
    }
}

fn comparison() -> Comparison {
    let insert = Insert {
        items: ITEMS.try_into().unwrap(),
        batch: 1.try_into().unwrap(),
        corpus: Corpus::Fixed,
        framing: Framing::Json,
        overwrites: 0.0,
        deletes: 0.0,
    };
    let mut runs = Vec::new();
    for repeat in 1..=3 {
        let more = f64::from(repeat);
        runs.push(run(
            "bitcask",
            "own",
            repeat,
            1_201.673 * more,
            4_886_613_449 / u64::from(repeat),
        ));
        runs.push(run("lsm", "own", repeat, 1_921.870 * more, 1_627_507_469 / u64::from(repeat)));
        runs.push(run("raw-append", "reference", repeat, 900.0, 4_886_613_449));
        runs.push(run("sqlite", "peer", repeat, 100.0, 1_000));
    }
    let lost =
        Verified { read_back: ITEMS - 3, lost: 2, wrong: 1, extra: Some(0), ..Verified::default() };
    runs.last_mut().unwrap().verified = Some(lost);
    let reason =
        "rocksdb is not available: its library is not here; apt-get install librocksdb-dev";
    Comparison {
        schema: SCHEMA.into(),
        machine: Machine {
            cpu: "A processor with a rather long name @ 3.21GHz".into(),
            date: "2026-03-01T10:00:00Z".into(),
            ..Machine::default()
        },
        workload: Parameters {
            workload: Workload::Insert(insert),
            client: Client { threads: 1.try_into().unwrap(), seed: u64::MAX, rate: None },
            settings: Settings::default(),
            conditions: Conditions::default(),
            repeats: 3,
        },
        engines: ["bitcask", "lsm", "raw-append", "sqlite"].map(str::to_owned).into(),
        runs,
        skipped: vec![Skipped { engine: "rocksdb".into(), reason: reason.into() }],
        interrupted: true,
    }
}

#[test]
fn results_come_back_from_json_as_they_were() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("result.json");
    let comparison = comparison();
    output::replace(&path, &json::render(&comparison).unwrap()).unwrap();
    assert!(json::read(&path).unwrap() == comparison);
}

#[test]
fn fields_of_later_versions_are_passed_over_and_other_schemas_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("result.json");
    let text = json::render(&comparison()).unwrap();
    let later = text.replace("\"interrupted\"", "\"later\": {\"field\": 1},\n  \"interrupted\"");
    fs::write(&path, later).unwrap();
    assert!(json::read(&path).unwrap() == comparison());
    for (wrong, expected) in [
        (text.replace(SCHEMA, "enginelab.compare/1"), "\"enginelab.compare/1\""),
        ("{}".into(), "no field \"schema\""),
        ("{".into(), "EOF"),
        (text.replace("\"process\"", "\"fsync\""), "fsync"),
        (text.replace("500000", "0"), "nonzero"),
    ] {
        fs::write(&path, wrong).unwrap();
        let error = json::read(&path).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("result.json"), "{error}");
    }
}

#[test]
fn large_figures_fit_on_100_columns() {
    let printed = terminal::render(&comparison(), &[], false);
    for line in printed.lines() {
        assert!(line.chars().count() <= 100, "{}: {line}\n{printed}", line.chars().count());
    }
}

#[test]
fn the_published_ratios_stand_beside_ours() {
    let comparison = comparison();
    for report in [terminal::render(&comparison, &[], false), markdown::render(&comparison, &[])] {
        for expected in [
            "Disk space: 3.003 : 1.000\n",
            "Time taken: 1.000 : 1.599\n",
            "published, 5,000 items, 5 runs: Disk space: 1.113 : 1.000; Time taken: 1.000 : 1.016\n",
            "published, 500,000 items, 1 run: Disk space: 3.003 : 1.000; Time taken: 1.000 : 1.600\n",
        ] {
            assert!(report.contains(expected), "{expected:?} is not in:\n{report}");
        }
    }
}

#[test]
fn engines_stand_in_the_order_of_their_rank_with_medians() {
    let markdown = markdown::render(&comparison(), &[]);
    let rows: Vec<Vec<&str>> = markdown
        .lines()
        .skip_while(|line| !line.starts_with("## Time"))
        .skip(4)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let engines: Vec<&str> = rows.iter().map(|row| row[1]).collect();
    assert_eq!(engines, ["bitcask", "lsm", "raw-append", "sqlite", "rocksdb"], "{markdown}");
    assert!(rows[4][2..9].iter().all(|cell| *cell == "n/a"), "{markdown}");
    // Twice the first run is the middle of one, two and three times.
    assert_eq!(rows[0][2], "2,403.3<br>1,201.7..3,605.0");
    assert_eq!((rows[0][3], rows[1][3]), ("1.00", "1.60"));
    // The failed engine and the reference point are faster, and no standard.
    assert_eq!((rows[2][3], rows[3][3]), ("0.37", "0.04"));
}

/// Runs of one, two and three times a time are too few and too far apart to say anything.
#[test]
fn what_cannot_be_ranked_is_said() {
    let mut comparison = comparison();
    let printed = terminal::render(&comparison, &[], false);
    let row = |printed: &str| {
        let table = printed.split("How sure the ratios of times are").nth(1).unwrap();
        table.lines().find(|line| line.starts_with(" lsm")).unwrap().to_owned()
    };
    assert!(row(&printed).contains("too noisy"), "{printed}");
    // 1,921.87 / 3 / 1,201.673 and its counterpart.
    assert!(row(&printed).contains("0.53..4.80"), "{printed}");
    for run in &mut comparison.runs {
        let time = if run.engine == "lsm" { 160.0 } else { 100.0 };
        run.phases[1].seconds = time + f64::from(run.repeat);
    }
    let printed = terminal::render(&comparison, &[], false);
    let lsm = row(&printed);
    // The medians are 162 and 102; the bounds 161 / 103 and 163 / 101.
    assert!(lsm.contains("1.59") && lsm.contains("1.56..1.61"), "{printed}");
    assert!(lsm.contains("+1.00") && lsm.contains("more"), "{printed}");
    comparison.runs.retain(|run| run.repeat < 3);
    let printed = terminal::render(&comparison, &[], false);
    assert!(!printed.contains("How sure"), "{printed}");
}

#[test]
fn what_is_missing_is_said() {
    for report in
        [terminal::render(&comparison(), &[], false), markdown::render(&comparison(), &[])]
    {
        let report = report.replace("\n  ", " ");
        assert!(report.contains("FAILED sqlite, run 3: records: 2 lost, 1 changed"), "{report}");
        assert!(report.contains("apt-get install librocksdb-dev"), "{report}");
        assert!(
            report.to_lowercase().contains("stopped before every run had finished"),
            "{report}"
        );
    }
}

/// The comparison with operations in `load`, the same for all.
fn with_traffic() -> Comparison {
    let mut comparison = comparison();
    for run in &mut comparison.runs {
        let hash = "xxh3-sum:0123".to_owned();
        load(run).traffic = Some(Traffic { operations: ITEMS, hash, ..Traffic::default() });
    }
    comparison
}

fn load(run: &mut Run) -> &mut Phase {
    run.phases.iter_mut().find(|phase| phase.name == "load").unwrap()
}

/// Whatever else differs between the runs: an engine that left another phase out, or one that time
/// ended, is held to the phases that it went through.
#[test]
fn engines_that_did_other_things_are_not_compared_in_silence() {
    let known = with_traffic().problems();
    type Change = fn(&mut Run);
    let changes: [(Change, bool); 6] = [
        (|_| (), false),
        (|run| load(run).traffic.as_mut().unwrap().hash = "xxh3-sum:ffff".into(), true),
        (|run| load(run).traffic.as_mut().unwrap().operations -= 1, true),
        (|run| run.phases.retain(|phase| phase.name != "load"), false),
        (
            |run| {
                let traffic = load(run).traffic.as_mut().unwrap();
                (traffic.operations, traffic.time_limited) = (7, true);
                traffic.hash = "xxh3-sum:ffff".into();
            },
            false,
        ),
        (|run| load(run).traffic = None, false),
    ];
    for (at, (change, is_told)) in changes.into_iter().enumerate() {
        for is_left_out in [false, true] {
            let mut comparison = with_traffic();
            let run = &mut comparison.runs[1];
            change(run);
            run.operations.as_mut().unwrap().count -= 1;
            if is_left_out {
                run.left_out.insert("scans".into(), "lsm has no ordered scan".into());
            }
            let mut told = comparison.problems();
            told.retain(|problem| !known.contains(problem));
            let expected = "lsm, run 1: did not execute the operations that bitcask did in load";
            let expected = if is_told { vec![expected.to_owned()] } else { Vec::new() };
            assert_eq!(told, expected, "change {at}, {is_left_out}");
        }
    }
}

/// Every row has a place for every column, and what goes in comes out, whatever is in a name.
#[test]
fn csv_has_a_row_for_each_phase_of_each_run() {
    let mut comparison = comparison();
    let name = "a \"quoted\", name\nof two lines";
    comparison.runs[0].engine = name.into();
    comparison.runs[0].phases[1].traffic = Some(Traffic {
        operations: 12,
        kinds: BTreeMap::from([(
            Kind::ReadModifyWrite,
            KindFigures {
                latency: Latency { p99_ns: 77, ..Latency::default() },
                ..KindFigures::default()
            },
        )]),
        background: BTreeMap::from([(
            Kind::Update,
            KindFigures { calls: 33, ..KindFigures::default() },
        )]),
        ..Traffic::default()
    });
    comparison.runs[2].phases.clear();
    comparison.runs[2].error = Some("died".into());
    let text = csv::render(&comparison).unwrap();
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let rows: Vec<BTreeMap<String, String>> =
        reader.deserialize().collect::<std::result::Result<_, _>>().unwrap();
    // Twelve runs of eight phases, of which one has none and one row for that; one engine skipped.
    assert_eq!(rows.len(), 11 * 8 + 1 + 1);
    let load = &rows[1];
    let told = |column: &str| load[column].as_str();
    assert_eq!((told("engine"), told("repeat"), told("phase")), (name, "1", "load"));
    assert_eq!(told("engine_seconds"), "1201.673");
    assert_eq!(told("disk_apparent_bytes"), (4_096u64 + 2 * 4_886_613_449).to_string());
    assert_eq!(told("operations_count"), "12");
    assert_eq!(told("read_modify_write_latency_p99_ns"), "77");
    assert_eq!(told("beside_update_calls_count"), "33");
    assert_eq!(rows[0]["beside_update_calls_count"], "");
    assert!(!load.contains_key("update_calls_count"), "the clients had none");
    assert_eq!(told("device_read_bytes"), "", "absent is not zero");
    assert_eq!(rows[0]["read_modify_write_latency_p99_ns"], "");
    assert_eq!((rows[16]["phase"].as_str(), rows[16]["problem"].as_str()), ("", "died"));
    assert_eq!(rows[16]["engine_seconds"], "");
    let last = rows.last().unwrap();
    assert!(last["engine"] == "rocksdb" && last["problem"].contains("librocksdb-dev"), "{last:?}");
    let lost = rows.iter().find(|row| row["engine"] == "sqlite" && row["repeat"] == "3").unwrap();
    assert_eq!((lost["records_lost"].as_str(), lost["records_wrong"].as_str()), ("2", "1"));
}

#[test]
fn a_saved_result_is_reported_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let saved = json::render(&comparison()).unwrap();
    fs::write(path("r.json"), &saved).unwrap();
    let report = |flags: &[&str]| {
        let mut command = assert_cmd::Command::cargo_bin("enginelab").unwrap();
        command.current_dir(directory.path()).arg("report").arg("r.json").args(flags);
        command.assert()
    };
    report(&["--csv", "r.csv", "--markdown", "r.md"]).success().stdout("");
    assert_eq!(fs::read_to_string(path("r.csv")).unwrap(), csv::render(&comparison()).unwrap());
    let markdown = markdown::render(&comparison(), &[]);
    assert_eq!(fs::read_to_string(path("r.md")).unwrap(), markdown);
    report(&[]).success().stdout(terminal::render(&comparison(), &[], false));
    let said = |flags: &[&str]| {
        let output = report(flags).code(2).get_output().stderr.clone();
        String::from_utf8(output).unwrap()
    };
    assert!(said(&["--csv", "r.json"]).contains("--csv r.json would write over what is read"));
    assert!(said(&["--csv", "a", "--markdown", "a"]).contains("--markdown and --csv both name a"));
    assert!(said(&["--pair", "lsm,lmdb"]).contains("lmdb, which did not run"));
    assert!(!path("a").exists());
    assert_eq!(fs::read_to_string(path("r.json")).unwrap(), saved);
}

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

/// Names with everything that a terminal, a page or Markdown could obey.
fn commanding() -> (Comparison, &'static str) {
    let mut comparison = comparison();
    let name = "\x1b[2J\x1b]0;t\x07a|`b`\r\n```\n## <i>漢字\u{9b}1m\u{202e}";
    comparison.machine.cpu = name.into();
    comparison.skipped[0].reason = name.into();
    for run in &mut comparison.runs {
        if run.engine == "lsm" || run.engine == "sqlite" {
            run.engine += name;
        }
        run.version = name.into();
        run.durability = name.into();
        run.settings.insert(name.into(), name.into());
        run.error = (run.engine == "raw-append").then(|| name.into());
        run.phases[2].name = name.into();
        run.phases[1].traffic = Some(Traffic {
            operations: ITEMS,
            kinds: BTreeMap::from([(Kind::Insert, KindFigures::default())]),
            ..Traffic::default()
        });
        run.phases[2].traffic = run.phases[1].traffic.clone();
    }
    (comparison, name)
}

/// Control characters, and what turns the direction of text.
fn commands(text: &str) -> Vec<char> {
    let commands = |character: &char| {
        (character.is_control() && *character != '\n') || *character == '\u{202e}'
    };
    text.chars().filter(commands).collect()
}

#[test]
fn no_name_commands_a_terminal_or_a_page() {
    let (comparison, _) = commanding();
    let pairs = [("bitcask".to_owned(), comparison.runs[1].engine.clone())];
    for text in [
        terminal::render(&comparison, &pairs, false),
        markdown::render(&comparison, &pairs),
        html::render(&comparison, &pairs).unwrap(),
    ] {
        assert_eq!(commands(&text), [], "{text:?}");
        assert!(text.contains("漢字\\u009b1m\\u202e") || text.contains("漢字\\\\u009b"), "{text}");
    }
    // Colours are the report's own.
    let coloured = terminal::render(&comparison, &pairs, true);
    let without: String = coloured
        .split("\x1b[")
        .enumerate()
        .map(|(at, part)| if at == 0 { part } else { part.split_once('m').unwrap().1 })
        .collect();
    assert!(coloured.contains("\x1b[38;5;9m") && commands(&without).is_empty(), "{coloured:?}");
    // The program, with results from elsewhere.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("\x1b[31mr.json");
    output::replace(&path, &json::render(&comparison).unwrap()).unwrap();
    let path = path.to_str().unwrap();
    for arguments in [
        &["report", path][..],
        &["merge", path, path],
        &["merge", path, path, "--json"],
        &["diff", path, path, "--json"],
        &["diff", path, path],
        &["report", path, "--pair", "\x1bc,b"],
        &["report", path, "--\x1bc"],
        &["diff", path, "\x1bc"],
        &["report", path, "--csv", path],
    ] {
        let output = crate::support::enginelab(arguments).output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(commands(&text), [], "{arguments:?}: {text:?}");
        assert!(!text.is_empty(), "{arguments:?}");
    }
}

/// Read by a reader of Markdown that others wrote.
#[test]
fn no_name_is_taken_for_markdown() {
    use pulldown_cmark::{Event, Options, Parser, TagEnd};

    let of = |comparison: &Comparison| {
        let markdown = markdown::render(comparison, &[]);
        let (mut shape, mut text) = (Vec::new(), String::new());
        for event in Parser::new_ext(&markdown, Options::ENABLE_TABLES) {
            match event {
                Event::Text(part) => text += &part,
                Event::InlineHtml(html) if &*html == "<br>" => text.push('\n'),
                Event::Start(tag) => shape.push(tag.to_end()),
                Event::End(TagEnd::TableCell | TagEnd::Item | TagEnd::Heading(_)) => {
                    text.push('\n')
                }
                Event::End(_) | Event::SoftBreak => {}
                other => panic!("{other:?} in {markdown}"),
            }
        }
        assert!(shape.contains(&TagEnd::TableRow));
        (shape, text)
    };
    let (comparison, name) = commanding();
    let mut plain = comparison.clone();
    let tamed = |text: &str| text.replace(name, "name");
    plain.machine.cpu = tamed(&plain.machine.cpu);
    plain.skipped[0].reason = tamed(&plain.skipped[0].reason);
    for run in &mut plain.runs {
        run.engine = tamed(&run.engine);
        run.version = tamed(&run.version);
        run.durability = tamed(&run.durability);
        run.settings =
            run.settings.iter().map(|(name, value)| (tamed(name), tamed(value))).collect();
        run.error = run.error.as_deref().map(tamed);
        run.phases[2].name = tamed(&run.phases[2].name);
    }
    let (shape, text) = of(&comparison);
    assert_eq!(shape, of(&plain).0);
    assert!(text.contains("a|`b`") && text.contains("## <i>漢字"), "{text}");
}

/// Each takes two columns, which the lines have to reckon with.
#[test]
fn wide_characters_fit_on_100_columns() {
    let mut comparison = comparison();
    comparison.machine.cpu = "漢字 ".repeat(60);
    let printed = terminal::render(&comparison, &[], false);
    for line in printed.lines() {
        let wide = line.chars().filter(|character| "漢字".contains(*character)).count();
        assert!(line.chars().count() + wide <= 100, "{line}");
    }
}
