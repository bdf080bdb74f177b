//! Files that are read.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::output;
use crate::report::figures::{binary_size, grouped};
use crate::{Error, Result};

/// What a command may read: every ordinary file that it does not write. Whatever reads a file that
/// the user names opens it here, so that nothing is written over its own input.
#[derive(Debug, Default)]
pub struct Inputs {
    /// What is written, each with the flag that names it.
    outputs: Vec<(String, PathBuf)>,
}

impl Inputs {
    /// The inputs of a command that writes `outputs`, each with the flag that names it. Tells before
    /// any work is done whether all of them can be written, each to a file of its own.
    ///
    /// # Errors
    /// [`Error::Usage`] or [`Error::Io`] if not.
    pub fn beside<'a>(outputs: impl IntoIterator<Item = (&'a str, &'a Path)>) -> Result<Self> {
        let mut inputs = Self::default();
        for (flag, file) in outputs {
            output::check_writable(file)?;
            for (other, before) in &inputs.outputs {
                if output::is_same_file(before, file)? {
                    let file = before.display();
                    return Err(Error::Usage(format!("{other} and {flag} both name {file}")));
                }
            }
            inputs.outputs.push((flag.to_owned(), file.to_path_buf()));
        }
        Ok(inputs)
    }

    /// Opens the file at `path`.
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::Usage`] for what is no ordinary file, or is written.
    pub fn open(&self, path: &Path) -> Result<File> {
        let found = fs::metadata(path).map_err(Error::io("read", path))?;
        if !found.is_file() {
            let path = path.display();
            let why = match found.is_dir() {
                true => "it is a directory",
                false => "what it gives must be written to one first",
            };
            return Err(Error::Usage(format!("{path} is not an ordinary file: {why}")));
        }
        for (flag, file) in &self.outputs {
            if output::is_same_file(path, file)? {
                let file = file.display();
                return Err(Error::Usage(format!(
                    "{flag} {file} would write over what is read: choose another file"
                )));
            }
        }
        File::open(path).map_err(Error::io("read", path))
    }

    /// The text of the file at `path`, of at most `most_bytes`, without a byte order mark.
    ///
    /// # Errors
    /// As [`Inputs::open`], and [`Error::Usage`] for a larger file, or one that is not UTF-8.
    pub fn text(&self, path: &Path, most_bytes: u64) -> Result<String> {
        let mut bytes = Vec::new();
        let wrong = |said: String| Error::Usage(format!("{}: {said}", path.display()));
        let file = self.open(path)?;
        let length = file.metadata().map_err(Error::io("read", path))?.len();
        if length <= most_bytes {
            // It may be longer than the system says, as those in /proc are.
            file.take(most_bytes + 1).read_to_end(&mut bytes).map_err(Error::io("read", path))?;
        }
        if length.max(bytes.len() as u64) > most_bytes {
            return Err(wrong(format!("expected a file of at most {}", binary_size(most_bytes))));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + good.iter().filter(|&&byte| byte == b'\n').count() as u64;
            wrong(format!("line {}: expected text in UTF-8", grouped(line)))
        })?;
        Ok(match text.strip_prefix('\u{feff}') {
            Some(rest) => rest.to_owned(),
            None => text,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_bounded_and_begins_behind_its_mark() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("text");
        let read = |bytes: &[u8], most: u64| {
            fs::write(&path, bytes).unwrap();
            Inputs::default().text(&path, most).map_err(|error| error.to_string())
        };
        assert_eq!(read(b"12345678", 8).unwrap(), "12345678");
        assert!(
            read(b"123456789", 8)
                .unwrap_err()
                .ends_with("text: expected a file of at most 8 bytes")
        );
        assert_eq!(read(b"\xef\xbb\xbfa\xef\xbb\xbf", 9).unwrap(), "a\u{feff}");
        assert_eq!(read(b"", 9).unwrap(), "");
        let said = read(b"a\nb\n\xff\n", 9).unwrap_err();
        assert!(said.ends_with("text: line 3: expected text in UTF-8"), "{said}");
    }
}
