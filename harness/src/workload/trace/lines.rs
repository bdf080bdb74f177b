//! The lines of a trace in text, plain or compressed by zstd.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use super::format::MAGIC;
use crate::{Error, Result, interrupt};

/// The longest line.
pub(super) const MOST_LINE_BYTES: usize = 1 << 20;

/// UTF-8's, which some editors put at the beginning.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A file of lines.
pub(super) struct Lines {
    reader: Box<dyn BufRead>,
    path: PathBuf,
    number: u64,
    line: Vec<u8>,
}

/// Whether the file at `path` is one of our own. What it is, its first bytes tell, not its name.
pub(super) fn is_recorded(file: &File, path: &Path) -> Result<bool> {
    Ok(first_bytes(file, path)?.starts_with(MAGIC))
}

fn first_bytes(file: &File, path: &Path) -> Result<Vec<u8>> {
    let mut first = Vec::new();
    file.take(8).read_to_end(&mut first).map_err(Error::io("read", path))?;
    Ok(first)
}

impl Lines {
    pub(super) fn new(mut file: File, path: &Path) -> Result<Self> {
        let is_compressed = first_bytes(&file, path)?.starts_with(&ZSTD_MAGIC);
        file.rewind().map_err(Error::io("read", path))?;
        let reader: Box<dyn BufRead> = match is_compressed {
            true => {
                let decoder = zstd::Decoder::new(file).map_err(Error::io("read", path))?;
                Box::new(BufReader::with_capacity(1 << 17, decoder))
            }
            false => Box::new(BufReader::with_capacity(1 << 17, file)),
        };
        Ok(Self { reader, path: path.to_owned(), number: 0, line: Vec::new() })
    }

    /// The next line that is not blank, without its end, or as much of it as a request can have and
    /// a byte more; `None` behind the last.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>> {
        loop {
            interrupt::check()?;
            self.line.clear();
            let mut limited = (&mut self.reader).take(MOST_LINE_BYTES as u64 + 1);
            let read = limited.read_until(b'\n', &mut self.line);
            let bytes = read.map_err(Error::io("read", &self.path))?;
            self.number += 1;
            if bytes == 0 {
                return Ok(None);
            }
            if bytes > MOST_LINE_BYTES && !self.line.ends_with(b"\n") {
                self.skip_rest()?;
                return Ok(Some(&self.line));
            }
            if self.number == 1 && self.line.starts_with(BYTE_ORDER_MARK) {
                self.line.drain(..BYTE_ORDER_MARK.len());
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(Some(self.line.trim_ascii()));
            }
        }
    }

    /// Reads up to the end of the line.
    fn skip_rest(&mut self) -> Result<()> {
        loop {
            interrupt::check()?;
            let part = self.reader.fill_buf().map_err(Error::io("read", &self.path))?;
            let end = part.iter().position(|&byte| byte == b'\n');
            let skipped = end.map_or(part.len(), |end| end + 1);
            let is_over = end.is_some() || part.is_empty();
            self.reader.consume(skipped);
            if is_over {
                return Ok(());
            }
        }
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
