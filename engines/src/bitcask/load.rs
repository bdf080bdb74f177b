//! Opening: which files there are, what they hold, and what a crash left.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::bulk::{self, HintFile};
use super::clock::Timestamp;
use super::data_file::{DataFile, FileSet, Next, Usage};
use super::hint::Piece;
use super::keydir::{Keydir, Location, SHARD_COUNT};
use super::names::{self, FileId, Name};
use super::parallel::in_parallel;
use super::set_aside;
use super::shared::usage_of_length;
use crate::fs::{Access, Entry, FileSystem, WriteFile};
use crate::{Error, Result};

/// Bytes in a data file that are no record: they were passed over, and are left as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The data file.
    pub file: PathBuf,
    /// Where in the file.
    pub offset: u64,
    /// What is wrong there.
    pub problem: &'static str,
}

/// Execute for others: Basho's Bitcask has merged the file and will delete it.
const PENDING_DELETE: u32 = 0o001;
const OWNER_EXECUTES: u32 = 0o100;
/// The same as older versions said it: setuid.
const PENDING_DELETE_OLD: u32 = 0o4000;

/// How many files without a hint file stay open until the background thread has synced them: each
/// takes a descriptor, and a process may have no more than a thousand.
const UNSYNCED_MAX: usize = 128;

/// What opening found.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) keydir: Keydir,
    pub(super) files: FileSet,
    pub(super) next_id: u64,
    /// Files that may not have reached the disk.
    pub(super) unsynced: Vec<(FileId, Arc<dyn WriteFile>)>,
    /// Files without a usable hint file.
    pub(super) unhinted: Vec<FileId>,
    pub(super) damage: Vec<Damage>,
    /// What was cut off data files, now or at an earlier opening.
    pub(super) set_aside: Vec<PathBuf>,
    /// The newest timestamp of all values.
    pub(super) newest: Option<Timestamp>,
}

/// Loads a directory whose write lock is held, clearing away what a crash left half done.
pub(super) fn load(fs: &dyn FileSystem, directory: &Path) -> Result<Loaded> {
    let mut listing = Listing::read(fs, directory)?;
    listing.refuse_to_delete_everything(fs, directory)?;
    listing.clear_leftovers(fs, directory)?;
    let keydir = Keydir::new();
    let mut read = read_all(fs, directory, &listing.data, &keydir)?;

    let mut unsynced = Vec::new();
    let newest = read.iter().map(|file| file.data.id).max();
    for file in &mut read {
        if file.hinted {
            continue;
        }
        let writable = fs.open_for_write(&file.data.path)?;
        // In older files only what was prepared for appending is cut off, never damage.
        if Some(file.data.id) == newest || file.damage.is_empty() {
            listing.set_aside.extend(file.cut_tail(fs, directory, writable.as_ref())?);
        }
        unsynced.push((file.data.id, writable));
        if unsynced.len() > UNSYNCED_MAX {
            // The oldest first, as always.
            unsynced.remove(0).1.sync()?;
        }
    }
    Ok(assemble(keydir, read, unsynced, listing))
}

/// Whether the directory holds files of a Bitcask.
pub(super) fn recognizes(entries: &[Entry]) -> bool {
    entries
        .iter()
        .filter_map(Entry::name)
        .any(|name| name == names::WRITE_LOCK || matches!(Name::parse(name), Some(Name::Data(_))))
}

/// The engine's files in the directory.
#[derive(Debug)]
pub(super) struct Listing {
    /// Data files to load: id and length, ascending.
    pub(super) data: Vec<(FileId, u64)>,
    /// Data files that are marked for deletion: id and length.
    marked: Vec<(FileId, u64)>,
    /// All data files once more: id and [identity](Entry::identity), ascending.
    identities: Vec<(FileId, u64)>,
    /// Hint files: id and length, ascending.
    hints: Vec<(FileId, u64)>,
    /// Files that mean nothing any more, those that are marked included.
    leftovers: Vec<PathBuf>,
    /// What was cut off data files.
    set_aside: Vec<PathBuf>,
    next_id: u64,
}

impl Listing {
    pub(super) fn read(fs: &dyn FileSystem, directory: &Path) -> Result<Self> {
        let entries = fs.list(directory)?;
        // Some file systems give every file every permission. There the marks mean nothing.
        let is_lock = |entry: &&Entry| entry.name() == Some(names::WRITE_LOCK);
        let marks_mean_something =
            entries.iter().find(is_lock).is_none_or(|entry| !is_marked(entry.mode));
        let (mut data, mut marked, mut hints) = (Vec::new(), Vec::new(), Vec::new());
        let (mut leftovers, mut set_aside) = (Vec::new(), Vec::new());
        let (mut identities, mut next_id) = (Vec::new(), 1);
        for entry in entries {
            let Some(name) = entry.name().and_then(Name::parse) else { continue };
            // Also of what is no file: it has the name.
            next_id = next_id.max(u64::from(name.id()) + 1);
            if entry.is_directory {
                continue;
            }
            match name {
                Name::Data(_) if entry.length == 0 => leftovers.push(entry.path),
                Name::Data(id) if marks_mean_something && is_marked(entry.mode) => {
                    marked.push((id, entry.length));
                    identities.push((id, entry.identity));
                    leftovers.push(entry.path);
                }
                Name::Data(id) => {
                    data.push((id, entry.length));
                    identities.push((id, entry.identity));
                }
                Name::Hint(id) => hints.push((id, entry.length)),
                Name::Temporary(_) => leftovers.push(entry.path),
                Name::SetAside(_) => set_aside.push(entry.path),
            }
        }
        data.sort_unstable();
        hints.sort_unstable();
        let orphans = hints.iter().filter(|(id, _)| find(&data, *id).is_none());
        leftovers.extend(orphans.map(|(id, _)| names::hint(directory, *id)));
        marked.sort_unstable();
        identities.sort_unstable();
        Ok(Self { data, marked, identities, hints, leftovers, set_aside, next_id })
    }

    /// What to read where nothing will be deleted. If every file is marked, all of them: either
    /// nothing lives in there, or nobody meant to mark them.
    pub(super) fn for_reading(mut self) -> Self {
        if self.data.is_empty() {
            self.data = std::mem::take(&mut self.marked);
        }
        let is_data = |id: FileId| find(&self.data, id).is_some();
        self.identities.retain(|(id, _)| is_data(*id));
        self
    }

    /// The identity of a data file; `None` if it is not there.
    pub(super) fn identity(&self, id: FileId) -> Option<u64> {
        find(&self.identities, id)
    }

    /// The length of a hint file; `None` if it is not there.
    pub(super) fn hint_length(&self, id: FileId) -> Option<u64> {
        find(&self.hints, id)
    }

    /// A merge of Basho's that found nothing alive leaves every file marked for deletion. So does a
    /// `chmod -R` by somebody who did not know what the bits mean here: then records live in them.
    fn refuse_to_delete_everything(&self, fs: &dyn FileSystem, directory: &Path) -> Result<()> {
        let (true, Some(&(first, _))) = (self.data.is_empty(), self.marked.first()) else {
            return Ok(());
        };
        let keydir = Keydir::new();
        read_all(fs, directory, &self.marked, &keydir)?;
        match keydir.count() {
            0 => Ok(()),
            records => Err(Error::corruption(
                names::data(directory, first),
                0,
                format!(
                    "every data file here has a permission bit (execute for others, or set-user-id) \
                 that marks it for deletion, and they hold {records} live records: \
                 nothing was deleted; clear the bits (chmod o-x,u-s), or remove the files yourself"
                ),
            )),
        }
    }

    /// Removes empty and pending-delete data files, hint files without data, unfinished files.
    fn clear_leftovers(&self, fs: &dyn FileSystem, directory: &Path) -> Result<()> {
        for path in &self.leftovers {
            fs.remove(path)?;
        }
        if self.leftovers.is_empty() { Ok(()) } else { fs.sync_directory(directory) }
    }
}

fn find(files: &[(FileId, u64)], id: FileId) -> Option<u64> {
    files.binary_search_by_key(&id, |(id, _)| *id).ok().map(|at| files[at].1)
}

/// Basho's Bitcask adds the mark to a file that nobody may execute. One that its owner may execute
/// has it from a `chmod -R 755`: then it means nothing, and records live in the file.
fn is_marked(mode: u32) -> bool {
    mode & PENDING_DELETE_OLD != 0 || mode & (PENDING_DELETE | OWNER_EXECUTES) == PENDING_DELETE
}

/// A data file whose records are in the keydir.
#[derive(Debug)]
struct ReadFile {
    data: DataFile,
    hinted: bool,
    damage: Vec<Damage>,
    /// Where the last good record ends, if something that is no record follows to the end.
    good_end: Option<u64>,
}

/// What the files hold, by ascending id: counted while they are loaded in any order.
#[derive(Debug)]
pub(super) struct Usages(Vec<(FileId, Arc<Usage>)>);

impl Usages {
    /// A newer record than the one at `older` was found.
    pub(super) fn bury(&self, older: Location) {
        if older.is_tombstone() {
            return;
        }
        if let Ok(at) = self.0.binary_search_by_key(&older.file, |(id, _)| *id) {
            self.0[at].1.remove_live(older.size);
        }
    }
}

/// A part of the work of loading.
enum Part {
    /// A piece of the hint file of a file.
    Hints(usize, Piece),
    /// All records of a file without a usable hint file.
    Records(usize),
}

/// Reads all files into the keydir, in parallel: which record of a key is the newest is told by
/// their locations, not by the order of reading.
fn read_all(
    fs: &dyn FileSystem,
    directory: &Path,
    data: &[(FileId, u64)],
    keydir: &Keydir,
) -> Result<Vec<ReadFile>> {
    let opened = in_parallel(data.len(), |index| {
        let (id, length) = data[index];
        let path = names::data(directory, id);
        let reader = fs.open(&path, Access::Mapped)?;
        let data = DataFile { id, path, reader, usage: usage_of_length(length), tail: None };
        let hints = HintFile::open(fs, &names::hint(directory, id), length);
        Ok((data, hints))
    })?;
    let usages = opened.iter().map(|(data, _)| (data.id, data.usage.clone())).collect();
    let usages = Usages(usages);

    let mut parts = Vec::new();
    let (mut count, mut key_bytes) = (0, 0);
    for (index, (_, hints)) in opened.iter().enumerate() {
        // The longest parts first.
        let Some(hints) = hints else {
            parts.insert(0, Part::Records(index));
            continue;
        };
        for &piece in &hints.pieces {
            parts.push(Part::Hints(index, piece));
            count += piece.count;
            key_bytes += piece.key_bytes();
        }
    }
    keydir.reserve(count, key_bytes)?;
    let found = in_parallel(parts.len(), |part| match parts[part] {
        Part::Records(index) => {
            let found = read_records(&opened[index].0, keydir, &usages)?;
            Ok(Some((index, found)))
        }
        Part::Hints(index, piece) => {
            let (data, hints) = &opened[index];
            let Some(hints) = hints else { return Ok(None) };
            bulk::load_piece(hints, piece, data, keydir, &usages)?;
            Ok(None)
        }
    })?;
    in_parallel(SHARD_COUNT, |shard| {
        keydir.finish_loading(shard);
        Ok(())
    })?;

    let mut read: Vec<_> = opened
        .into_iter()
        .map(|(data, hints)| ReadFile {
            data,
            hinted: hints.is_some(),
            damage: Vec::new(),
            good_end: None,
        })
        .collect();
    for (index, (damage, good_end)) in found.into_iter().flatten() {
        read[index].damage = damage;
        read[index].good_end = good_end;
    }
    Ok(read)
}

/// Fills the keydir from the records themselves.
fn read_records(
    data: &DataFile,
    keydir: &Keydir,
    usages: &Usages,
) -> Result<(Vec<Damage>, Option<u64>)> {
    let mut records = data.records(data.usage.length());
    let (mut damage, mut good_end) = (Vec::new(), Some(0));
    let mut good_bytes = 0;
    loop {
        let (offset, problem, is_last) = match records.next()? {
            Next::End => break,
            Next::Damage { offset, problem } => (offset, problem, false),
            Next::Torn { offset, problem } => (offset, problem, true),
            Next::Record { offset, header, record } => {
                // `Records` refuses records of 4 GiB and more.
                let size = u32::try_from(header.record_bytes()).unwrap_or(u32::MAX);
                good_end = Some(offset + u64::from(size));
                good_bytes += u64::from(size);
                let mut location = Location { file: data.id, offset, size };
                if record.is_tombstone() {
                    data.usage.add_tombstone(size);
                    location.size = 0;
                } else {
                    data.usage.add_live(size);
                    data.usage.ages.include(record.timestamp);
                }
                if let Some(older) = keydir.insert_if_newer(record.key, location)? {
                    usages.bury(older);
                }
                continue;
            }
        };
        damage.push(Damage { file: data.path.clone(), offset, problem });
        if is_last {
            break;
        }
    }
    data.usage.damaged_bytes.store(data.usage.length() - good_bytes, Ordering::Release);
    let good_end = good_end.filter(|end| *end < data.usage.length());
    Ok((damage, good_end))
}

impl ReadFile {
    /// Cuts off what a crash left behind the last record, and gives back the disk space that was
    /// reserved there. Returns where a copy is, if that may be more than nothing.
    fn cut_tail(
        &mut self,
        fs: &dyn FileSystem,
        directory: &Path,
        writable: &dyn WriteFile,
    ) -> Result<Option<PathBuf>> {
        let end = self.good_end.unwrap_or(self.data.usage.length());
        let set_aside = set_aside::keep(fs, directory, &self.data, end)?;
        writable.truncate(end)?;
        if self.good_end.take().is_some() {
            // No mapping may reach past the end.
            self.data.reader = fs.open(&self.data.path, Access::Mapped)?;
            let usage = &self.data.usage;
            let cut_bytes = usage.length.swap(end, Ordering::AcqRel) - end;
            usage.damaged_bytes.fetch_sub(cut_bytes, Ordering::AcqRel);
            self.damage.retain(|damage| damage.offset < end);
        }
        Ok(set_aside)
    }
}

fn assemble(
    keydir: Keydir,
    read: Vec<ReadFile>,
    unsynced: Vec<(FileId, Arc<dyn WriteFile>)>,
    listing: Listing,
) -> Loaded {
    let (mut files, mut damage, mut unhinted) = (FileSet::default(), Vec::new(), Vec::new());
    for file in read {
        if !file.damage.is_empty() {
            file.data.usage.damaged.store(true, Ordering::Release);
        } else if !file.hinted {
            unhinted.push(file.data.id);
        }
        damage.extend(file.damage);
        files.insert(Arc::new(file.data));
    }
    for file in files.iter().filter(|file| file.usage.dead_bytes() > 0) {
        // A file of nothing but tombstones does not tell.
        file.usage.note_death(|| file.usage.ages.range().map_or(0, |(oldest, _)| oldest));
    }
    let newest = files.iter().filter_map(|file| Some(file.usage.ages.range()?.1)).max();
    let Listing { next_id, mut set_aside, .. } = listing;
    set_aside.sort();
    set_aside.dedup();
    Loaded { keydir, files, next_id, unsynced, unhinted, damage, set_aside, newest }
}

/// What is said of a directory that holds no database.
pub(super) fn missing(directory: &Path) -> Error {
    Error::NotADatabase {
        directory: directory.to_path_buf(),
        problem: "no Bitcask data file is there, and creating one was not allowed".to_owned(),
    }
}
