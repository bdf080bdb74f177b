//! What a trace is kept in while it is compiled: temporary files that nobody else sees.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;

use super::format::TraceWriter;
use crate::{Error, Result, interrupt};

/// A temporary file that is written once and read once; nobody else sees it.
pub(super) struct Scratch(BufWriter<File>);

impl Scratch {
    pub(super) fn new(directory: &Path) -> Result<Self> {
        let file = tempfile::tempfile_in(directory)
            .map_err(Error::io("make a temporary file in", directory))?;
        Ok(Self(BufWriter::with_capacity(1 << 16, file)))
    }

    pub(super) fn write(&mut self, bytes: &[u8], directory: &Path) -> Result<()> {
        self.0.write_all(bytes).map_err(Error::io("write a temporary file in", directory))
    }

    pub(super) fn read(self, directory: &Path) -> Result<BufReader<File>> {
        let file = self.0.into_inner().map_err(|error| error.into_error());
        let file = file.and_then(|mut file| file.rewind().map(|()| file));
        let file = file.map_err(Error::io("write a temporary file in", directory))?;
        Ok(BufReader::with_capacity(1 << 16, file))
    }
}

/// The keys by number.
pub(super) struct KeyTable {
    ends: Scratch,
    text: Scratch,
    pub(super) count: u64,
    pub(super) bytes: u64,
}

impl KeyTable {
    pub(super) fn new(directory: &Path) -> Result<Self> {
        let (ends, text) = (Scratch::new(directory)?, Scratch::new(directory)?);
        Ok(Self { ends, text, count: 0, bytes: 0 })
    }

    /// The number of a new key.
    pub(super) fn add(&mut self, key: &[u8], directory: &Path) -> Result<u64> {
        self.text.write(key, directory)?;
        self.bytes += key.len() as u64;
        self.ends.write(&self.bytes.to_le_bytes(), directory)?;
        self.count += 1;
        Ok(self.count - 1)
    }

    pub(super) fn copy_to(self, writer: &mut TraceWriter<'_>, directory: &Path) -> Result<()> {
        let mut buffer = vec![0; 1 << 16];
        for scratch in [self.ends, self.text] {
            let mut reader = scratch.read(directory)?;
            loop {
                interrupt::check()?;
                let read = reader.read(&mut buffer);
                let read = read.map_err(Error::io("read a temporary file in", directory))?;
                if read == 0 {
                    break;
                }
                writer.bytes(&buffer[..read])?;
            }
        }
        Ok(())
    }
}
