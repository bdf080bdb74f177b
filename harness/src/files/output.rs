//! Files that are written: whoever reads one finds the old content or the new one, whenever the
//! writing is interrupted.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use crate::measure::filesystem;
use crate::report::figures::grouped;
use crate::{Error, Result, interrupt};

/// Writes `text` to `path` as a whole: whoever reads the file, and whenever this is interrupted,
/// there is the old content or the new one.
///
/// # Errors
/// [`Error::Usage`] if something else than a file is there, [`Error::Io`] if it cannot be written.
pub fn replace(path: &Path, text: &str) -> Result<()> {
    replace_with(path, |mut file| file.write_all(text.as_bytes()).map_err(Error::io("write", path)))
}

/// [`replace`], by what `write` writes.
///
/// # Errors
/// As [`replace`], and what `write` returns.
pub fn replace_with(path: &Path, write: impl FnOnce(&fs::File) -> Result<()>) -> Result<()> {
    let path = &replaced(path)?;
    let file = temporary_beside(path)?;
    write(file.as_file())?;
    set_ordinary_permissions(&file, path)?;
    file.persist(path).map_err(|error| Error::io("write", path)(error.error))?;
    Ok(())
}

/// Copies all of `from` to `file`, which [`replace_with`] lent for `path`.
///
/// # Errors
/// [`Error::Usage`] if there is no room for it, [`Error::Io`].
pub fn copy(from: &Path, mut file: &fs::File, path: &Path) -> Result<()> {
    const AT_ONCE: u64 = 64 << 20;
    let mut reader = fs::File::open(from).map_err(Error::io("read", from))?;
    let length = reader.metadata().map_err(Error::io("read", from))?.len();
    check_room(path, length)?;
    let mut left = length;
    while left > 0 {
        interrupt::check()?;
        let mut part = (&mut reader).take(AT_ONCE.min(left));
        match io::copy(&mut part, &mut file).map_err(Error::io("write", path))? {
            0 => return Err(Error::io("read", from)(ErrorKind::UnexpectedEof.into())),
            copied => left -= copied,
        }
    }
    Ok(())
}

/// Tells before any work is done whether `bytes` more can be written for `path`.
///
/// # Errors
/// [`Error::Usage`] if not.
pub fn check_room(path: &Path, bytes: u64) -> Result<()> {
    let free = filesystem::free_bytes(folder(path))?;
    if free >= bytes {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{} takes {} MB at least, but {} MB are free there: choose another place or fewer operations",
        path.display(),
        grouped(bytes / 1_000_000),
        grouped(free / 1_000_000)
    )))
}

/// Tells before any work is done whether [`replace`] will be able to write `path`.
///
/// # Errors
/// As [`replace`].
pub fn check_writable(path: &Path) -> Result<()> {
    temporary_beside(&replaced(path)?).map(drop)
}

/// Whether two paths lead to one file, whether or not it is there yet: by links of either kind too.
///
/// # Errors
/// As [`replace`].
pub fn is_same_file(a: &Path, b: &Path) -> Result<bool> {
    let (a, b) = (replaced(a)?, replaced(b)?);
    match a.exists() && b.exists() {
        true => same_file::is_same_file(&a, &b).map_err(Error::io("read", &b)),
        false => Ok(absolute(&a)? == absolute(&b)?),
    }
}

fn absolute(path: &Path) -> Result<PathBuf> {
    let folder = folder(path);
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

fn folder(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

fn temporary_beside(path: &Path) -> Result<tempfile::NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".enginelab-")
        .tempfile_in(folder(path))
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
