//! Reading the file. What is wrong in it is told with file, line and key.

use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use toml::de::{DeTable, DeValue};

use super::check::{self, Step, Wrong};
use super::{Custom, Keys, Phase, Values};
use crate::files::Inputs;
use crate::{Error, Result};

/// The largest file: thousands of phases.
const MOST_BYTES: u64 = 1 << 20;

/// Reads and checks the file at `path`.
///
/// # Errors
/// [`Error::Io`], and [`Error::Usage`] for what makes no sense.
pub(super) fn read(path: &Path, inputs: &Inputs) -> Result<Custom> {
    let text = inputs.text(path, MOST_BYTES)?;
    parse(&text, &path.display().to_string())
}

/// [`Custom`] with nothing beside it: in results, other parameters stand there too.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    keys: Keys,
    values: Values,
    phases: Vec<Phase>,
}

/// Reads and checks `text`, which is that of `file`.
pub(super) fn parse(text: &str, file: &str) -> Result<Custom> {
    if let Some((span, said)) = no_table(text) {
        return Err(at(file, text, Some(span), &said));
    }
    let Whole { keys, values, phases } = toml::from_str(text)
        .map_err(|error| at(file, text, error.span(), &one_line(error.message())))?;
    let custom = Custom { keys, values, phases };
    check::check(&custom)
        .map_err(|Wrong { place, said }| at(file, text, find(text, &place), &said))?;
    Ok(custom)
}

fn at(file: &str, text: &str, span: Option<Range<usize>>, said: &str) -> Error {
    let Some(span) = span.filter(|span| span.end <= text.len()) else {
        return Error::Usage(format!("{file}: {said}"));
    };
    let before = &text.as_bytes()[..span.start];
    let number = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let line = text.lines().nth(number - 1).unwrap_or_default().trim();
    let is_one_line = !text[span].trim_end().contains('\n');
    let shown =
        if is_one_line && !line.is_empty() { format!(", in: {line}") } else { String::new() };
    Error::Usage(format!("{file}, line {number}: {said}{shown}"))
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(", ")
}

/// The places of tables; `*` is every item of an array.
const TABLES: [&[&str]; 5] =
    [&["keys"], &["values"], &["values", "sizes", "*"], &["phases", "*"], &["phases", "*", "mix"]];

/// What stands in the place of a table and is none: an array would be taken for one, its items for
/// the values of keys that nobody wrote.
fn no_table(text: &str) -> Option<(Range<usize>, String)> {
    let table = DeTable::parse(text).ok()?;
    TABLES.iter().find_map(|path| {
        let (name, rest) = path.split_first()?;
        let (span, value) = entry(table.get_ref(), name)?;
        no_table_at(name, span, value, rest)
    })
}

fn no_table_at(
    key: &str,
    span: Range<usize>,
    value: &DeValue<'_>,
    path: &[&str],
) -> Option<(Range<usize>, String)> {
    match (path, value) {
        ([], DeValue::Table(_)) => None,
        ([], other) => Some((span, format!("{key}: expected a table, found {}", kind(other)))),
        (["*", rest @ ..], DeValue::Array(items)) => {
            items.iter().find_map(|item| no_table_at(key, item.span(), item.get_ref(), rest))
        }
        ([name, rest @ ..], DeValue::Table(table)) => {
            let (span, value) = entry(table, name)?;
            no_table_at(name, span, value, rest)
        }
        _ => None,
    }
}

/// What a value is, in words.
fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

/// Where in the text `place` is, or the last part of the way there.
fn find(text: &str, place: &[Step]) -> Option<Range<usize>> {
    let table = DeTable::parse(text).ok()?;
    let mut found = None;
    let mut value: Option<&DeValue<'_>> = None;
    for step in place {
        let (span, next) = match (step, value) {
            (Step::Key(key), None) => entry(table.get_ref(), key)?,
            (Step::Key(key), Some(DeValue::Table(table))) => match entry(table, key) {
                Some(entry) => entry,
                None => break,
            },
            (Step::Item(item), Some(DeValue::Array(array))) => {
                let item = array.get(*item)?;
                (item.span(), item.get_ref())
            }
            _ => break,
        };
        (found, value) = (Some(span), Some(next));
    }
    found
}

/// The key's place, so that the line is that of the key, and its value.
fn entry<'a, 'i>(table: &'a DeTable<'i>, key: &str) -> Option<(Range<usize>, &'a DeValue<'i>)> {
    let (key, value) = table.iter().find(|(name, _)| name.get_ref() == key)?;
    Some((key.span(), value.get_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::custom::EXAMPLE;

    #[test]
    fn the_example_is_right_and_comes_back_from_json() {
        let custom = parse(EXAMPLE, "example.toml").unwrap();
        let json = serde_json::to_string(&custom).unwrap();
        assert_eq!(serde_json::from_str::<Custom>(&json).unwrap(), custom);
    }

    /// Replaces one line of a file that is right. The number of the line is part of what is
    /// expected.
    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let right = "[keys]\ncount = 1000\nbytes = 8\n\n[values]\nbytes = 100\n\n\
                     [[phases]]\nname = 'load'\noperations = 900\nmix = { insert = 1 }\n\n\
                     [[phases]]\nname = 'run'\noperations = 10\n\
                     mix = { read = 0.5, update = 0.5 }\n\
                     distribution = 'zipfian'\n";
        parse(right, "w").unwrap();
        for (old, new, expected) in [
            (
                "bytes = 8",
                "bytes = 'a'",
                "w, line 3: invalid type: string \"a\", expected a nonzero u32, in: bytes = 'a'",
            ),
            (
                "bytes = 8",
                "bytes = 0",
                "w, line 3: invalid value: integer `0`, expected a nonzero u32",
            ),
            (
                "bytes = 8",
                "byts = 8",
                "w, line 3: unknown field `byts`, expected one of `count`, `bytes`",
            ),
            ("bytes = 8", "bytes = 8 8", "w, line 3: "),
            (
                "bytes = 8",
                "bytes = 2",
                "line 2: count: 1,000 keys, but a prefix of 0 and 2 digits behind it make 100, \
                 in: count = 1000",
            ),
            (
                "bytes = 8",
                "bytes = 8\nprefix = 'over eight'",
                "line 4: prefix: 10 bytes leave no digit",
            ),
            ("bytes = 8", "bytes = 70000", "line 3: bytes: at most 65,535"),
            ("count = 1000", "count = 0", "line 2: invalid value: integer `0`"),
            (
                "count = 1000",
                "count = 899",
                "line 10: operations: 900 records are inserted until here, but keys.count is 899",
            ),
            ("bytes = 100", "", "w, line 5: values: expected either bytes or sizes"),
            ("bytes = 100", "bytes = 99999999", "line 6: bytes: at most 16,777,216"),
            (
                "bytes = 100",
                "sizes = [{ bytes = [5, 4], share = 1 }]",
                "line 6: bytes: from 5 to 4",
            ),
            (
                "bytes = 100",
                "sizes = [{ bytes = [1, 4], share = 0.7 },\n{ bytes = [5, 6], share = 0.2 }]",
                "line 6: sizes: the shares sum up to 0.9, not 1",
            ),
            (
                "bytes = 100",
                "sizes = [{ bytes = [1, 2, 3], share = 1 }]",
                "line 6: invalid length 3, expected two numbers: the least, the most, in: sizes",
            ),
            (
                "bytes = 100",
                "sizes = [[1, 2]]",
                "line 6: sizes: expected a table, found an array, in: sizes = [[1, 2]]",
            ),
            ("bytes = 100", "sizes = [5]", "line 6: sizes: expected a table, found a number"),
            (
                "mix = { read = 0.5, update = 0.5 }",
                "mix = [0.5, 0, 0.5]",
                "line 16: mix: expected a table, found an array, in: mix = [0.5, 0, 0.5]",
            ),
            (
                "mix = { read = 0.5, update = 0.5 }",
                "mix = 1",
                "line 16: mix: expected a table, found a number, in: mix = 1",
            ),
            ("bytes = 100", "sizes = 5", "line 6: invalid type: integer `5`"),
            ("bytes = 100", "bytes = 2.5", "line 6: invalid type: floating point `2.5`"),
            ("name = 'run'", "name = 3", "line 14: invalid type: integer `3`"),
            ("bytes = 100", "sizes = [{ bytes = [1], share = 1 }]", "line 6: invalid length 1"),
            ("bytes = 100", "sizes = [{ bytes = [], share = 1 }]", "line 6: invalid length 0"),
            (
                "'zipfian'",
                "'zipfian'\nscan_lengths = [1, 2, 3]",
                "line 18: invalid length 3, expected two numbers: the least, the most, in: scan",
            ),
            (
                "bytes = 100",
                "bytes = 100\ncontent = 'zeros'",
                "line 7: unknown variant `zeros`, expected `text` or `random`",
            ),
            (
                "name = 'run'",
                "name = 'load'",
                "line 14: name: \"load\" is the name of an earlier phase",
            ),
            (
                "name = 'run'",
                "name = 'close before again'",
                "line 14: name: every run has a phase \"close before again\" of its own",
            ),
            (
                "name = 'run'",
                "name = 'verify'",
                "line 14: name: every run has a phase \"verify\" of its own",
            ),
            ("name = 'run'", "name = ''", "line 14: name: expected 1 to 40 characters"),
            ("name = 'run'\n", "", "line 13: missing field `name`"),
            (
                "operations = 10\n",
                "operations = -5\n",
                "line 15: invalid value: integer `-5`, expected a nonzero u64",
            ),
            ("operations = 10\n", "operations = 0\n", "line 15: invalid value: integer `0`"),
            ("operations = 10\n", "", "line 13: expected operations, seconds or both"),
            (
                "operations = 10\n",
                "seconds = 0\n",
                "line 15: seconds: expected a number over 0, at most 1,000,000,000",
            ),
            (
                "operations = 900",
                "operations = 900\nseconds = 1",
                "line 12: mix: inserts in a phase with seconds",
            ),
            (
                "read = 0.5,",
                "read = 0.7,",
                "line 16: mix: the shares sum up to 1.2, not 1: read 0.7, update 0.5, in: mix",
            ),
            (
                "read = 0.5,",
                "reads = 0.5,",
                "line 16: unknown field `reads`, expected one of `read`, `insert`",
            ),
            (
                "read = 0.5,",
                "read = -0.5,",
                "line 16: read: expected a share from 0 to 1, found -0.5",
            ),
            (
                "read = 0.5,",
                "read = 'half',",
                "line 16: invalid type: string \"half\", expected f64",
            ),
            (
                "'zipfian'",
                "'pareto'",
                "line 17: unknown variant `pareto`, expected one of `uniform`, `zipfian`, \
                 `latest`, `hotspot`, `sequential`, `exponential`",
            ),
            (
                "'zipfian'",
                "'latest'\ntheta = 0.9",
                "line 18: theta: means something for the distribution zipfian alone",
            ),
            (
                "'zipfian'",
                "'zipfian'\ntheta = 0",
                "line 18: theta: expected an exponent over 0, at most 10",
            ),
            (
                "'zipfian'",
                "'hotspot'\nhot_records = 1.5",
                "line 18: hot_records: expected a share from 0 to 1",
            ),
            (
                "'zipfian'",
                "'zipfian'\nhot_records = 0.5",
                "line 18: hot_records: means something for the distribution hotspot alone",
            ),
            (
                "'zipfian'",
                "'zipfian'\nrate = 0",
                "line 18: rate: expected operations a second from 0.001 to 1,000,000,000",
            ),
            ("'zipfian'", "'zipfian'\nrate = nan", "line 18: rate: "),
            ("'zipfian'", "'zipfian'\nthreads = 2000", "line 18: threads: at most 1,024"),
            ("'zipfian'", "'zipfian'\nbatch = 200000", "line 18: batch: at most 100,000"),
            (
                "'zipfian'",
                "'zipfian'\nscan_lengths = [1, 2]",
                "line 18: scan_lengths: there are no scans",
            ),
            (
                "'zipfian'",
                "'zipfian'\nkind = 'compact'",
                "line 15: operations: means nothing in a phase of kind compact",
            ),
            (
                "'zipfian'",
                "'zipfian'\nkind = 'wait'",
                "line 18: unknown variant `wait`, expected one of `operations`, `quiesce`, \
                 `compact`, `sync`, `reopen`",
            ),
            ("insert = 1 }", "update = 1 }", "line 11: mix: there is no record before this phase"),
        ] {
            assert!(right.contains(old), "{old}");
            let error = parse(&right.replacen(old, new, 1), "w").err();
            let error = error.unwrap_or_else(|| panic!("{new:?} is taken")).to_string();
            assert!(error.contains(expected), "{new:?}: {error}\nexpected: {expected}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
        // By position, the items of an array would be the values of keys.
        let (keys, values) = ("keys = { count = 9, bytes = 2 }\n", "values = { bytes = 1 }\n");
        let phases = "phases = [{ name = 'a', operations = 1, mix = { insert = 1 } }]\n";
        parse(&[keys, values, phases].concat(), "w").unwrap();
        for (text, expected) in [
            (["keys = [9, 2]\n", values, phases], "w, line 1: keys: expected a table"),
            (["keys = 9\n", values, phases], "w, line 1: keys: expected a table, found a number"),
            ([keys, "values = ['text', 1, []]\n", phases], "w, line 2: values: expected a table"),
            ([keys, values, "phases = [['a']]\n"], "w, line 3: phases: expected a table"),
            (
                [keys, values, "phases = [7]\n"],
                "w, line 3: phases: expected a table, found a number",
            ),
            ([keys, values, "phases = 7\n"], "w, line 3: invalid type: integer `7`"),
        ] {
            let error = parse(&text.concat(), "w").unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let without = right.split("[[phases]]").next().unwrap();
        let error = parse(without, "w").unwrap_err().to_string();
        assert!(error.contains("missing field `phases`"), "{error}");
        let error = parse(&format!("phases = []\n{without}"), "w").unwrap_err().to_string();
        assert!(error.contains("w, line 1: phases: expected one phase at least"), "{error}");
    }
}
