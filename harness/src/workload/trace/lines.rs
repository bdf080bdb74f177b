//! The lines of a trace in text, plain or compressed by zstd.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::format::MAGIC;
use crate::{Error, Result};

/// The longest line.
const MOST_LINE_BYTES: u64 = 1 << 20;

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A file of lines.
pub(super) struct Lines {
    reader: Box<dyn BufRead>,
    path: PathBuf,
    number: u64,
    line: Vec<u8>,
}

/// Whether the file at `path` is one of our own. What it is, its first bytes tell, not its name.
pub(super) fn is_recorded(path: &Path) -> Result<bool> {
    Ok(first_bytes(path)?.starts_with(MAGIC))
}

fn first_bytes(path: &Path) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(Error::io("read", path))?;
    // What has been looked at once would be gone from a pipe.
    if !file.metadata().map_err(Error::io("read", path))?.is_file() {
        return Err(Error::Usage(format!("{} is not an ordinary file", path.display())));
    }
    let mut first = Vec::new();
    file.take(8).read_to_end(&mut first).map_err(Error::io("read", path))?;
    Ok(first)
}

impl Lines {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let is_compressed = first_bytes(path)?.starts_with(&ZSTD_MAGIC);
        let file = File::open(path).map_err(Error::io("read", path))?;
        let reader: Box<dyn BufRead> = match is_compressed {
            true => {
                let decoder = zstd::Decoder::new(file).map_err(Error::io("read", path))?;
                Box::new(BufReader::with_capacity(1 << 17, decoder))
            }
            false => Box::new(BufReader::with_capacity(1 << 17, file)),
        };
        Ok(Self { reader, path: path.to_owned(), number: 0, line: Vec::new() })
    }

    /// The next line that is not blank, without its end; `None` behind the last.
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::Usage`] for a line longer than any request.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>> {
        loop {
            self.line.clear();
            let mut limited = (&mut self.reader).take(MOST_LINE_BYTES + 1);
            let read = limited.read_until(b'\n', &mut self.line);
            self.number += 1;
            match read.map_err(Error::io("read", &self.path))? {
                0 => return Ok(None),
                bytes if bytes as u64 > MOST_LINE_BYTES => {
                    return Err(self.wrong("expected lines of at most 1 MiB"));
                }
                _ if self.line.trim_ascii().is_empty() => {}
                _ => break,
            }
        }
        Ok(Some(self.line.trim_ascii()))
    }

    /// What is wrong with the line that was read last.
    pub(super) fn wrong(&self, said: &str) -> Error {
        const SHOWN: usize = 80;
        let shown = String::from_utf8_lossy(&self.line[..self.line.len().min(SHOWN)]);
        let more = if self.line.len() > SHOWN { "…" } else { "" };
        let (file, number) = (self.path.display(), self.number);
        Error::Usage(format!("{file}, line {number}: {said}; found {:?}{more}", shown.trim()))
    }
}
