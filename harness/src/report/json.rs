//! Results as JSON: what `--out` and `--json` write, described in `results/README.md`.

use std::path::Path;

use serde::Serialize;

use crate::files::{Inputs, output};
use crate::results::{Comparison, SCHEMA};
use crate::{Error, Result};

/// A comparison, or what else is told, as JSON, with a newline at the end.
///
/// # Errors
/// [`Error::Usage`] for a figure that JSON cannot hold, which no measurement is.
pub fn render(value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Error::Usage(format!("a result that is no JSON: {error}")))?;
    Ok(text + "\n")
}

/// Writes [`render`]ed JSON to `path`.
///
/// # Errors
/// As [`render`] and [`output::replace`].
pub fn save(comparison: &Comparison, path: &Path) -> Result<()> {
    output::replace(path, &render(comparison)?)
}

/// The largest result that is read: tens of thousands of runs.
pub const MOST_BYTES: u64 = 1 << 30;

/// Reads a comparison back.
///
/// # Errors
/// [`Error::Io`], and [`Error::Usage`] if it is no JSON or of another schema.
pub fn read(path: &Path) -> Result<Comparison> {
    read_beside(&Inputs::default(), path)
}

/// [`read`], in a command that writes files.
///
/// # Errors
/// As [`read`], and [`Error::Usage`] if it is one of the files that are written.
pub fn read_beside(inputs: &Inputs, path: &Path) -> Result<Comparison> {
    let text = inputs.text(path, MOST_BYTES)?;
    let wrong = |problem: String| Error::Usage(format!("{}: {problem}", path.display()));
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| wrong(format!("{NO_RESULT}: {error}")))?;
    match value.get("schema").and_then(|schema| schema.as_str()) {
        Some(SCHEMA) => serde_json::from_value(value).map_err(|error| wrong(error.to_string())),
        Some(other) => Err(wrong(format!(
            "schema {other:?}, this program reads {SCHEMA:?}; an enginelab of its time reads it"
        ))),
        None => Err(wrong(format!("{NO_RESULT}: no field \"schema\"; expected {SCHEMA:?}"))),
    }
}

const NO_RESULT: &str = "expected a result that --out wrote";
