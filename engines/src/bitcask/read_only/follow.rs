//! What a reader knows of each file, and how it reads what is new in one.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::bitcask::Damage;
use crate::bitcask::bulk::is_unmarked_tombstone;
use crate::bitcask::data_file::{DataFile, Next};
use crate::bitcask::hint;
use crate::bitcask::keydir::{Keydir, Location};
use crate::bitcask::load::Listing;
use crate::bitcask::names::{self, FileId};
use crate::bitcask::record::{HEADER_BYTES, Header};
use crate::fs::{Access, FileSystem};
use crate::{Error, Result};

/// The files that were taken in so far.
pub(super) type Followed = BTreeMap<FileId, File>;

/// A data file and how far it was read.
#[derive(Debug, Clone)]
pub(super) struct File {
    pub(super) data: Arc<DataFile>,
    /// A hint file vouches for all of it: it changes no more, and is mapped.
    pub(super) sealed: bool,
    /// Tells it from a later file of the same name.
    identity: Option<u64>,
    /// Whether it was taken in before.
    pub(super) known: bool,
    /// The length of the hint file that was looked at last.
    hint_length: Option<u64>,
    /// Where the last good record ends.
    pub(super) end: u64,
    /// The last good record: where it starts, and its header.
    last: Option<(u64, Header)>,
    /// Between good records.
    pub(super) damage: Vec<Damage>,
    /// Behind the last one: damage if nobody is about to write there.
    pub(super) tail: Vec<Damage>,
    /// What was found since the counters of `data` were last changed.
    pub(super) found: Found,
}

/// Counts of what was read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Found {
    pub(super) values: u64,
    pub(super) tombstones: u64,
    pub(super) tombstone_bytes: u64,
    pub(super) damaged_bytes: u64,
}

/// What reading on in a file came to.
pub(super) enum Step {
    /// Nothing new.
    Same,
    /// The file as it is known now.
    New(File),
    /// A record that was there is not: the writer took it back, or all files were merged away and
    /// this is another one.
    Replaced,
}

impl File {
    /// Opens a file that is new to the reader. `None` if it went away.
    pub(super) fn open(
        fs: &dyn FileSystem,
        directory: &Path,
        listing: &Listing,
        id: FileId,
    ) -> Result<Option<Self>> {
        let path = names::data(directory, id);
        let reader = match fs.open(&path, Access::Positioned) {
            Ok(reader) => reader,
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(Self {
            data: Arc::new(DataFile { id, path, reader, usage: Arc::default(), tail: None }),
            sealed: false,
            identity: listing.identity(id),
            known: false,
            hint_length: None,
            end: 0,
            last: None,
            damage: Vec::new(),
            tail: Vec::new(),
            found: Found::default(),
        }))
    }

    /// Reads what the file holds behind what is known of it, into `news`. Nothing else is changed.
    pub(super) fn read_on(
        &self,
        fs: &dyn FileSystem,
        listing: &Listing,
        news: &Keydir,
    ) -> Result<Step> {
        if self.identity != listing.identity(self.data.id) {
            return Ok(Step::Replaced);
        }
        if self.sealed {
            return Ok(Step::Same);
        }
        let length = self.data.reader.length()?;
        if length < self.end || !self.last_record_is_there()? {
            return Ok(Step::Replaced);
        }
        let hint_length = listing.hint_length(self.data.id);
        let mut file = Self { found: Found::default(), ..self.clone() };
        file.hint_length = hint_length;
        if !self.known && hint_length.is_some() && file.read_hints(fs, length, news)? {
            return Ok(Step::New(file));
        }
        let length = file.read_records(length, news)?;
        if file.end == length && hint_length.is_some() && hint_length != self.hint_length {
            let vouches = |content: Vec<u8>| hint::check(&content, length).is_ok();
            file.sealed = file.hints(fs).is_some_and(vouches) && file.map(fs, length);
        }
        let same = file.end == self.end
            && file.sealed == self.sealed
            && file.hint_length == self.hint_length
            && file.tail == self.tail;
        Ok(if same && self.known { Step::Same } else { Step::New(file) })
    }

    fn last_record_is_there(&self) -> Result<bool> {
        let Some((offset, header)) = self.last else { return Ok(true) };
        match self.data.reader.read_at(offset, HEADER_BYTES, &mut Vec::new()) {
            Ok(bytes) => Ok(Header::parse(bytes) == Some(header)),
            Err(error) if error.is_corruption() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The content of the hint file.
    fn hints(&self, fs: &dyn FileSystem) -> Option<Vec<u8>> {
        let path = names::hint(self.data.path.parent()?, self.data.id);
        let hint_length = usize::try_from(self.hint_length?).ok()?;
        // Not mapped: another program's hint files may change.
        let file = fs.open(&path, Access::Positioned).ok()?;
        let mut content = Vec::new();
        file.read_at(0, hint_length, &mut content).ok()?;
        Some(content)
    }

    /// Takes everything from the hint file. `false` if it cannot be believed.
    fn read_hints(&mut self, fs: &dyn FileSystem, length: u64, news: &Keydir) -> Result<bool> {
        let Some(content) = self.hints(fs) else { return Ok(false) };
        let Ok(pieces) = hint::check(&content, length) else { return Ok(false) };
        if !self.map(fs, length) {
            return Ok(false);
        }
        let mut value = Vec::new();
        for piece in pieces {
            let entries = &content[piece.offset..piece.offset + piece.length];
            for hint in hint::entries(entries) {
                let is_tombstone =
                    hint.is_tombstone || is_unmarked_tombstone(&self.data, hint, &mut value);
                let location = self.count(hint.offset, hint.record_bytes, is_tombstone);
                news.insert_if_newer(hint.key, location)?;
            }
        }
        self.sealed = true;
        self.end = length;
        Ok(true)
    }

    /// Reads the file through a mapping from now on; `false` if that cannot be.
    fn map(&mut self, fs: &dyn FileSystem, length: u64) -> bool {
        let Ok(reader) = fs.open(&self.data.path, Access::Mapped) else { return false };
        if !reader.length().is_ok_and(|mapped| mapped == length) {
            return false;
        }
        self.data = Arc::new(self.data.with_reader(reader, None));
        true
    }

    /// Reads the records from the known end up to the last good one. Returns the length of the file
    /// at that time.
    fn read_records(&mut self, mut length: u64, news: &Keydir) -> Result<u64> {
        self.tail.clear();
        let data = self.data.clone();
        let mut records = data.records_from(self.end, length);
        loop {
            let (offset, problem, is_last) = match records.next() {
                // The file ends before: what lies behind the last record was cut off meanwhile, and
                // may have been looked at together with records.
                Err(error) if error.is_corruption() => {
                    length = data.reader.length()?.min(length.saturating_sub(1));
                    if length <= self.end {
                        return Ok(length);
                    }
                    records = data.records_from(self.end, length);
                    self.tail.clear();
                    continue;
                }
                Err(error) => return Err(error),
                Ok(Next::End) => return Ok(length),
                Ok(Next::Damage { offset, problem }) => (offset, problem, false),
                Ok(Next::Torn { offset, problem }) => (offset, problem, true),
                Ok(Next::Record { offset, header, record }) => {
                    if let Some(first) = self.tail.first()
                        && is_good_now(&data, first.offset, length)
                    {
                        records = data.records_from(first.offset, length);
                        self.tail.clear();
                        continue;
                    }
                    self.found.damaged_bytes += offset - self.end;
                    self.damage.append(&mut self.tail);
                    let size = u32::try_from(header.record_bytes()).unwrap_or(u32::MAX);
                    let location = self.count(offset, size, record.is_tombstone());
                    self.last = Some((offset, header));
                    self.end = offset + u64::from(size);
                    news.insert_if_newer(record.key, location)?;
                    continue;
                }
            };
            self.tail.push(Damage { file: data.path.clone(), offset, problem });
            if is_last {
                return Ok(length);
            }
        }
    }

    /// Counts a record, and says what the keydir holds of it.
    fn count(&mut self, offset: u64, size: u32, is_tombstone: bool) -> Location {
        let file = self.data.id;
        if is_tombstone {
            self.found.tombstones += 1;
            self.found.tombstone_bytes += u64::from(size);
            Location { file, offset, size: 0 }
        } else {
            self.found.values += 1;
            Location { file, offset, size }
        }
    }
}

/// Whether a good record lies at `offset`, where none was a moment ago.
fn is_good_now(data: &DataFile, offset: u64, length: u64) -> bool {
    matches!(data.records_from(offset, length).next(), Ok(Next::Record { .. }))
}

fn is_gone(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
}
