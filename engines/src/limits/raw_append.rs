//! The bytes appended to one file, one plain write call a record: what level `process` costs
//! without any engine, and the mark that the logs of the engines are held against.
//!
//! The file `raw-append.data` holds records, all integers little-endian:
//! ```text
//! magic u8 = 0xa5 | operation u8 (0 delete, 1 put) | key length u32 | value length u64 | key | value
//! ```
//! The head is 14 bytes, as Bitcask's is, so that both write equally many bytes. There is no
//! checksum: this is no store to trust, and a record that a crash cut short is dropped at open.
//!
//! A put frames the record and writes it, and does nothing else: no space is reserved, and the map
//! from keys to values is brought up to date by the first read that follows, which walks what was
//! appended meanwhile.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock, RwLockUpgradableReadGuard};

use crate::engine::Visitor;
use crate::fs::{Access, FileSystem, LockGuard, ReadFile, RealFs};
use crate::{
    Batch, Capabilities, Description, Direction, Durability, Engine, Error, KeyRange, OpenOptions,
    Operation, Result, Stats,
};

pub(super) const NAME: &str = "raw-append";

const DATA_FILE: &str = "raw-append.data";
const LOCK_FILE: &str = "raw-append.lock";

const MAGIC: u8 = 0xa5;
const DELETE: u8 = 0;
const PUT: u8 = 1;
const HEAD_BYTES: usize = 14;

/// At level `buffered`, how many bytes wait in the process for one write call.
const BUFFER_BYTES: usize = 64 << 10;

/// One file, appended to.
pub struct RawAppend {
    path: PathBuf,
    durability: Durability,
    appender: Mutex<Appender>,
    index: RwLock<Index>,
    reader: Arc<dyn ReadFile>,
    _lock: Box<dyn LockGuard>,
}

impl RawAppend {
    /// Opens or creates the file, and drops a record that was cut short at its end.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Locked`], [`Error::NotADatabase`] without `create`, and
    /// [`Error::Corruption`] if something other than records lies in the file.
    pub fn open(directory: &Path, options: &OpenOptions) -> Result<Self> {
        let path = directory.join(DATA_FILE);
        if !options.create && !path.is_file() {
            return Err(Error::NotADatabase {
                directory: directory.to_path_buf(),
                problem: format!("there is no {DATA_FILE}"),
            });
        }
        fs::create_dir_all(directory).map_err(Error::io("create directory", directory))?;
        let lock = RealFs.lock(&directory.join(LOCK_FILE))?.ok_or_else(|| Error::Locked {
            directory: directory.to_path_buf(),
            holder: "another raw-append has it open".to_owned(),
        })?;
        let file = File::options()
            .append(true)
            .create(true)
            .open(&path)
            .map_err(Error::io("open", &path))?;
        let length = file.metadata().map_err(Error::io("look at", &path))?.len();
        let mut index = Index::default();
        index.walk(&path, length)?;
        if index.walked_bytes < length {
            file.set_len(index.walked_bytes).map_err(Error::io("truncate", &path))?;
        }
        let reader = RealFs.open(&path, Access::Positioned)?;
        let appender =
            Appender { file, buffer: Vec::new(), written_bytes: index.walked_bytes, failed: None };
        Ok(Self {
            path,
            durability: options.durability,
            appender: Mutex::new(appender),
            index: RwLock::new(index),
            reader,
            _lock: lock,
        })
    }

    /// Appends operations with one write call; at level `buffered` once enough of them wait.
    ///
    /// The lock is held across the write: the order of the records is the order of the calls.
    fn append<'a>(&self, operations: impl IntoIterator<Item = Operation<'a>>) -> Result<()> {
        let mut appender = self.appender.lock();
        for operation in operations {
            push_record(&mut appender.buffer, operation)?;
        }
        if self.durability == Durability::Buffered && appender.buffer.len() < BUFFER_BYTES {
            return appender.check();
        }
        appender.flush(&self.path)?;
        if self.durability == Durability::Power {
            appender.sync(&self.path)?;
        }
        Ok(())
    }

    /// The index, with everything appended so far in it.
    fn index(&self) -> Result<impl std::ops::Deref<Target = Index> + '_> {
        let written_bytes = {
            let mut appender = self.appender.lock();
            appender.flush(&self.path)?;
            appender.written_bytes
        };
        let index = self.index.upgradable_read();
        if index.walked_bytes >= written_bytes {
            return Ok(RwLockUpgradableReadGuard::downgrade(index));
        }
        // Readers wait while the file is walked: they need what it finds.
        let mut index = RwLockUpgradableReadGuard::upgrade(index);
        index.walk(&self.path, written_bytes)?;
        Ok(parking_lot::RwLockWriteGuard::downgrade(index))
    }

    fn read(&self, value: Location) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(value.length);
        self.reader.read_at(value.offset, value.length, &mut bytes)?;
        Ok(bytes)
    }
}

impl Engine for RawAppend {
    fn description(&self) -> Description {
        Description {
            engine: NAME,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            durability: durability(self.durability).to_owned(),
            settings: vec![("file", DATA_FILE.to_owned())],
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            ordered_scan: false,
            scan_sorts: false,
            atomic_batch: false,
            snapshot_scan: false,
            persistent: true,
        }
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.append([Operation::Put { key, value }])
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.append([Operation::Delete { key }])
    }

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let Some(value) = self.index()?.values.get(key).copied() else {
            return Ok(false);
        };
        read(&self.read(value)?);
        Ok(true)
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        self.append(batch.iter())
    }

    fn scan(&self, _: KeyRange<'_>, _: Direction, _: &mut Visitor<'_>) -> Result<()> {
        Err(Error::Unsupported { engine: NAME, operation: "ordered scan".to_owned() })
    }

    /// Visits the records in the order of the file.
    fn fold(&self, visit: &mut Visitor<'_>) -> Result<()> {
        let mut records: Vec<(Location, Box<[u8]>)> =
            self.index()?.values.iter().map(|(key, value)| (*value, key.clone())).collect();
        records.sort_unstable_by_key(|(value, _)| value.offset);
        for (value, key) in records {
            if visit(&key, &self.read(value)?).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        let mut appender = self.appender.lock();
        appender.flush(&self.path)?;
        appender.sync(&self.path)
    }

    fn quiesce(&self) -> Result<()> {
        Ok(())
    }

    /// Reclaims nothing: the file only grows.
    fn compact(&self) -> Result<()> {
        Ok(())
    }

    fn stats(&self) -> Result<Stats> {
        Ok(Stats {
            disk_bytes: Some(self.appender.lock().written_bytes),
            file_count: Some(1),
            ..Stats::default()
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.appender.lock().flush(&self.path)
    }
}

impl Drop for RawAppend {
    fn drop(&mut self) {
        // Dropping cannot report; whoever needs to know calls `close`.
        let _ = self.appender.lock().flush(&self.path);
    }
}

/// What the levels mean here.
pub(super) fn durability(level: Durability) -> &'static str {
    match level {
        Durability::Buffered => "records wait in the process for a write call of 64 KiB",
        Durability::Process => "one write call a record",
        Durability::Power => "one write call and one fdatasync a record",
    }
}

/// Whether the directory holds such a file.
pub(super) fn recognizes(directory: &Path) -> bool {
    directory.join(DATA_FILE).is_file()
}

/// The end of the file.
struct Appender {
    file: File,
    /// Records that no write call has taken yet.
    buffer: Vec<u8>,
    written_bytes: u64,
    /// The first failure. A part of a record may lie at the end then: nothing goes behind it.
    failed: Option<String>,
}

impl Appender {
    fn check(&self) -> Result<()> {
        match &self.failed {
            Some(cause) => Err(Error::Poisoned { cause: cause.clone() }),
            None => Ok(()),
        }
    }

    fn flush(&mut self, path: &Path) -> Result<()> {
        self.check()?;
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.file
            .write_all(&self.buffer)
            .inspect_err(|error| self.failed = Some(error.to_string()))
            .map_err(Error::io("write", path))?;
        self.written_bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn sync(&mut self, path: &Path) -> Result<()> {
        self.check()?;
        self.file
            .sync_data()
            .inspect_err(|error| self.failed = Some(error.to_string()))
            .map_err(Error::io("sync", path))
    }
}

/// Where a value lies in the file.
#[derive(Debug, Clone, Copy)]
struct Location {
    offset: u64,
    length: usize,
}

/// The live keys in the first `walked_bytes` of the file.
#[derive(Debug, Default)]
struct Index {
    walked_bytes: u64,
    values: HashMap<Box<[u8]>, Location>,
}

impl Index {
    /// Goes on to `end`, or to the last whole record before it.
    fn walk(&mut self, path: &Path, end: u64) -> Result<()> {
        let fail = || Error::io("read", path);
        let mut file = BufReader::with_capacity(64 << 10, File::open(path).map_err(fail())?);
        file.seek(SeekFrom::Start(self.walked_bytes)).map_err(fail())?;
        while self.walked_bytes + HEAD_BYTES as u64 <= end {
            let mut head = [0; HEAD_BYTES];
            file.read_exact(&mut head).map_err(fail())?;
            let Some((is_put, key_length, value_length)) = parse_head(head) else {
                return Err(Error::corruption(path, self.walked_bytes, "no record starts here"));
            };
            let value_offset = self.walked_bytes + (HEAD_BYTES + key_length) as u64;
            let Some(next) = value_offset.checked_add(value_length).filter(|next| *next <= end)
            else {
                return Ok(());
            };
            let mut key = vec![0; key_length];
            file.read_exact(&mut key).map_err(fail())?;
            let too_long = |_| Error::corruption(path, self.walked_bytes, "a value too long");
            let skip = i64::try_from(value_length).map_err(too_long)?;
            file.seek_relative(skip).map_err(fail())?;
            if is_put {
                let length = usize::try_from(value_length).map_err(too_long)?;
                self.values.insert(key.into(), Location { offset: value_offset, length });
            } else {
                self.values.remove(key.as_slice());
            }
            self.walked_bytes = next;
        }
        Ok(())
    }
}

fn push_record(out: &mut Vec<u8>, operation: Operation<'_>) -> Result<()> {
    let (tag, key, value) = match operation {
        Operation::Put { key, value } => (PUT, key, value),
        Operation::Delete { key } => (DELETE, key, [].as_slice()),
    };
    let key_length = u32::try_from(key.len()).map_err(|_| Error::TooLarge {
        what: "key",
        size: key.len() as u64,
        limit: u32::MAX.into(),
    })?;
    out.extend_from_slice(&[MAGIC, tag]);
    out.extend_from_slice(&key_length.to_le_bytes());
    out.extend_from_slice(&(value.len() as u64).to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(value);
    Ok(())
}

/// Whether it is a put, and the lengths of key and value.
fn parse_head(head: [u8; HEAD_BYTES]) -> Option<(bool, usize, u64)> {
    let [magic, tag, k0, k1, k2, k3, value_length @ ..] = head;
    if magic != MAGIC || tag > PUT {
        return None;
    }
    let key_length = usize::try_from(u32::from_le_bytes([k0, k1, k2, k3])).ok()?;
    Some((tag == PUT, key_length, u64::from_le_bytes(value_length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(directory: &Path, durability: Durability) -> Result<RawAppend> {
        RawAppend::open(directory, &OpenOptions::new().durability(durability))
    }

    #[test]
    fn a_put_is_in_the_file_when_it_returns_unless_buffered() {
        let record = b"\xa5\x01\x02\0\0\0\x03\0\0\0\0\0\0\0keval";
        for (level, expected) in
            [(Durability::Process, record.as_slice()), (Durability::Buffered, b"")]
        {
            let directory = tempfile::tempdir().unwrap();
            let engine = open(directory.path(), level).unwrap();
            engine.put(b"ke", b"val").unwrap();
            assert_eq!(fs::read(directory.path().join(DATA_FILE)).unwrap(), expected);
            Box::new(engine).close().unwrap();
            assert_eq!(fs::read(directory.path().join(DATA_FILE)).unwrap(), record);
        }
    }

    #[test]
    fn a_record_cut_short_anywhere_is_dropped_and_the_rest_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(DATA_FILE);
        let engine = open(directory.path(), Durability::Process).unwrap();
        engine.put(b"first", b"1").unwrap();
        let first_bytes = engine.appender.lock().written_bytes;
        engine.put(b"second", b"22").unwrap();
        drop(engine);
        let whole = fs::read(&path).unwrap();
        for cut in usize::try_from(first_bytes).unwrap()..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let engine = open(directory.path(), Durability::Process).unwrap();
            assert_eq!(engine.get_vec(b"second").unwrap(), None, "cut at {cut}");
            engine.put(b"third", b"333").unwrap();
            drop(engine);
            let engine = open(directory.path(), Durability::Process).unwrap();
            assert_eq!(engine.get_vec(b"first").unwrap().unwrap(), b"1");
            assert_eq!(engine.get_vec(b"third").unwrap().unwrap(), b"333");
        }
    }

    #[test]
    fn what_is_no_record_is_corruption_with_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(DATA_FILE);
        let engine = open(directory.path(), Durability::Process).unwrap();
        engine.put(b"k", b"v").unwrap();
        drop(engine);
        let mut bytes = fs::read(&path).unwrap();
        bytes.extend_from_slice(b"something else entirely");
        fs::write(&path, bytes).unwrap();
        let error = open(directory.path(), Durability::Process).err().unwrap();
        assert!(error.to_string().contains("corrupt at byte 16"), "{error}");
    }

    #[test]
    fn the_file_has_one_owner() {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(directory.path(), Durability::Process).unwrap();
        let error = open(directory.path(), Durability::Process).err().unwrap();
        assert!(matches!(error, Error::Locked { .. }), "{error}");
        drop(engine);
        open(directory.path(), Durability::Process).unwrap();
    }
}
