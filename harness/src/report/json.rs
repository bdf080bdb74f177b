//! Results as JSON: what `--out` and `--json` write, described in `results/README.md`.

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::results::{Comparison, SCHEMA};
use crate::{Error, Result};

/// The comparison as JSON, with a newline at the end.
///
/// # Errors
/// [`Error::Usage`] for a figure that JSON cannot hold, which no measurement is.
pub fn render(comparison: &Comparison) -> Result<String> {
    let text = serde_json::to_string_pretty(comparison)
        .map_err(|error| Error::Usage(format!("a result that is no JSON: {error}")))?;
    Ok(text + "\n")
}

/// Reads a comparison back.
///
/// # Errors
/// [`Error::Io`], and [`Error::Usage`] if it is no JSON or of another schema.
pub fn read(path: &Path) -> Result<Comparison> {
    let text = fs::read_to_string(path).map_err(Error::io("read", path))?;
    let wrong = |problem: String| Error::Usage(format!("{}: {problem}", path.display()));
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    match value.get("schema").and_then(|schema| schema.as_str()) {
        Some(SCHEMA) => serde_json::from_value(value).map_err(|error| wrong(error.to_string())),
        Some(other) => Err(wrong(format!("schema {other:?}, this program reads {SCHEMA:?}"))),
        None => Err(wrong(format!("no field \"schema\"; expected {SCHEMA:?}"))),
    }
}

/// Writes `text` to `path` as a whole: whoever reads the file, and whenever this is interrupted,
/// there is the old content or the new one.
///
/// # Errors
/// [`Error::Io`] if it cannot be written.
pub fn replace_file(path: &Path, text: &str) -> Result<()> {
    let mut file = temporary_beside(path)?;
    file.write_all(text.as_bytes()).map_err(Error::io("write", path))?;
    set_ordinary_permissions(&file, path)?;
    file.persist(path).map_err(|error| Error::io("write", path)(error.error))?;
    Ok(())
}

/// Tells before any work is done whether [`replace_file`] will be able to write `path`.
///
/// # Errors
/// [`Error::Usage`] if `path` is a directory, [`Error::Io`] if nothing can be written beside it.
pub fn check_writable(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Err(Error::Usage(format!("cannot write {}: it is a directory", path.display())));
    }
    temporary_beside(path).map(drop)
}

fn temporary_beside(path: &Path) -> Result<tempfile::NamedTempFile> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    tempfile::Builder::new()
        .prefix(".enginelab-")
        .tempfile_in(parent.unwrap_or(Path::new(".")))
        .map_err(Error::io("write", path))
}

/// Temporary files are for the owner's eyes only; results are not.
#[cfg(unix)]
fn set_ordinary_permissions(file: &tempfile::NamedTempFile, path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let ordinary = fs::Permissions::from_mode(0o644);
    file.as_file().set_permissions(ordinary).map_err(Error::io("write", path))
}

#[cfg(not(unix))]
fn set_ordinary_permissions(_: &tempfile::NamedTempFile, _: &Path) -> Result<()> {
    Ok(())
}
