//! Results as JSON: what `--out` and `--json` write, described in `results/README.md`.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

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
        Some(other) => Err(wrong(format!(
            "schema {other:?}, this program reads {SCHEMA:?}; an enginelab of its time reads it"
        ))),
        None => Err(wrong(format!("no field \"schema\"; expected {SCHEMA:?}"))),
    }
}

/// Writes `text` to `path` as a whole: whoever reads the file, and whenever this is interrupted,
/// there is the old content or the new one.
///
/// # Errors
/// [`Error::Usage`] if something else than a file is there, [`Error::Io`] if it cannot be written.
pub fn replace_file(path: &Path, text: &str) -> Result<()> {
    replace_with(path, |mut file| file.write_all(text.as_bytes()).map_err(Error::io("write", path)))
}

/// [`replace_file`], by what `write` writes.
///
/// # Errors
/// As [`replace_file`], and what `write` returns.
pub fn replace_with(path: &Path, write: impl FnOnce(&fs::File) -> Result<()>) -> Result<()> {
    let path = &replaced(path)?;
    let file = temporary_beside(path)?;
    write(file.as_file())?;
    set_ordinary_permissions(&file, path)?;
    file.persist(path).map_err(|error| Error::io("write", path)(error.error))?;
    Ok(())
}

/// Tells before any work is done whether [`replace_file`] will be able to write `path`.
///
/// # Errors
/// As [`replace_file`].
pub fn check_writable(path: &Path) -> Result<()> {
    temporary_beside(&replaced(path)?).map(drop)
}

/// Whether two paths lead to one file, whether or not it is there yet.
///
/// # Errors
/// As [`replace_file`].
pub fn is_same_file(a: &Path, b: &Path) -> Result<bool> {
    Ok(absolute(&replaced(a)?)? == absolute(&replaced(b)?)?)
}

fn absolute(path: &Path) -> Result<PathBuf> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let folder = folder.canonicalize().map_err(Error::io("look at", folder))?;
    Ok(path.file_name().map_or_else(|| folder.clone(), |name| folder.join(name)))
}

/// The file in whose place the new one comes: a link stays, and its target is replaced. A device
/// or a pipe is refused, because the new file would take its name away.
fn replaced(path: &Path) -> Result<PathBuf> {
    let what = match fs::metadata(path) {
        Ok(found) if found.is_file() => {
            return fs::canonicalize(path).map_err(Error::io("write", path));
        }
        Ok(found) if found.is_dir() => "a directory",
        Ok(_) => "not an ordinary file",
        Err(error) if error.kind() == ErrorKind::NotFound && !path.is_symlink() => {
            return Ok(path.to_path_buf());
        }
        Err(error) => return Err(Error::io("write", path)(error)),
    };
    Err(Error::Usage(format!("cannot write {}: it is {what}", path.display())))
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
