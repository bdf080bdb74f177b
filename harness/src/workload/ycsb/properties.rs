//! Property files as YCSB's users have them: `name=value` lines, comments behind `#` or `!`, lines
//! that end with a backslash go on in the next one.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use crate::files::Inputs;
use crate::{Error, Result};

/// The largest file: more properties than there are.
const MOST_BYTES: u64 = 1 << 20;

/// Properties by name, each with the place it came from. The later one of a name wins.
#[derive(Debug, Clone, Default)]
pub(super) struct Properties(BTreeMap<String, Property>);

#[derive(Debug, Clone)]
struct Property {
    value: String,
    /// `workloada, line 3`, or the flag.
    place: String,
    is_used: bool,
}

impl Properties {
    /// Adds those of a file.
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::Usage`] with file and line for a line that is no property.
    pub(super) fn add_file(&mut self, path: &Path, inputs: &Inputs) -> Result<()> {
        let text = inputs.text(path, MOST_BYTES)?;
        self.add_text(&text, &path.display().to_string())
    }

    fn add_text(&mut self, text: &str, file: &str) -> Result<()> {
        let mut joined = String::new();
        let mut begun = 0;
        for (at, line) in text.lines().enumerate() {
            if joined.is_empty() {
                begun = at + 1;
            }
            let line = line.trim();
            if joined.is_empty() && (line.is_empty() || line.starts_with(['#', '!'])) {
                continue;
            }
            if let Some(part) = line.strip_suffix('\\') {
                joined.push_str(part);
                continue;
            }
            joined.push_str(line);
            self.add(&joined, format!("{file}, line {begun}"))?;
            joined.clear();
        }
        if joined.is_empty() { Ok(()) } else { self.add(&joined, format!("{file}, line {begun}")) }
    }

    /// Adds one from the command line.
    ///
    /// # Errors
    /// [`Error::Usage`] if it is no property.
    pub(super) fn add_flag(&mut self, text: &str) -> Result<()> {
        self.add(text, format!("-p {text}"))
    }

    fn add(&mut self, text: &str, place: String) -> Result<()> {
        let Some((name, value)) = text.split_once(['=', ':']) else {
            return Err(Error::Usage(format!("{place}: expected name=value, found {text:?}")));
        };
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() {
            return Err(Error::Usage(format!("{place}: a name is missing before {value:?}")));
        }
        let property = Property { value: value.to_owned(), place, is_used: false };
        self.0.insert(name.to_owned(), property);
        Ok(())
    }

    /// Replaces `current` by the value of `name`, if it is there.
    ///
    /// # Errors
    /// [`Error::Usage`] with its place for a value that is none of what is `expected`.
    pub(super) fn take<T: FromStr>(
        &mut self,
        name: &str,
        expected: impl Display,
        is_right: impl Fn(&T) -> bool,
        current: &mut T,
    ) -> Result<()> {
        let Some(property) = self.0.get_mut(name) else { return Ok(()) };
        property.is_used = true;
        match property.value.parse::<T>().ok().filter(is_right) {
            Some(value) => *current = value,
            None => {
                return Err(Error::Usage(format!(
                    "{}: {name} is {:?}, expected {expected}",
                    property.place, property.value
                )));
            }
        }
        Ok(())
    }

    /// The properties that nobody took.
    pub(super) fn unused(&self) -> impl Iterator<Item = &str> {
        let unused = self.0.iter().filter(|(_, property)| !property.is_used);
        unused.map(|(name, _)| name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(properties: &mut Properties, name: &str) -> Result<u64> {
        let mut number = 7;
        properties.take(name, "a number below 100", |&number| number < 100, &mut number)?;
        Ok(number)
    }

    #[test]
    fn files_are_read_as_java_reads_them() {
        let text =
            "# a comment\n! another\n\n  a = 1 \nb:2\r\nc=\\\n   3\na=4\nworkload=Core\nempty=\n";
        let mut properties = Properties::default();
        properties.add_text(text, "file").unwrap();
        properties.add_flag("b=5").unwrap();
        let numbers = ["a", "b", "c", "none"].map(|name| take(&mut properties, name).unwrap());
        assert_eq!(numbers, [4, 5, 3, 7]);
        assert_eq!(properties.unused().collect::<Vec<_>>(), ["empty", "workload"]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let mut properties = Properties::default();
        let error = properties.add_text("a=1\n\njust words\n", "w.txt").unwrap_err().to_string();
        assert_eq!(error, "w.txt, line 3: expected name=value, found \"just words\"");
        let error = properties.add_flag("=3").unwrap_err().to_string();
        assert!(error.contains("a name is missing"), "{error}");
        properties.add_text("x=1\na=many\nb=\\\n100", "w.txt").unwrap();
        for (name, expected) in [
            ("a", "w.txt, line 2: a is \"many\", expected a number below 100"),
            ("b", "w.txt, line 3: b is \"100\", expected a number below 100"),
        ] {
            assert_eq!(take(&mut properties, name).unwrap_err().to_string(), expected);
        }
    }
}
