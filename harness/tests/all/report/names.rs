//! Names in results from elsewhere command nothing that shows them.

use std::collections::BTreeMap;

use harness::files::output;
use harness::report::{html, json, markdown, terminal};
use harness::results::{Comparison, KindFigures, Traffic};
use harness::workload::op::Kind;

use super::{ITEMS, comparison};

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
