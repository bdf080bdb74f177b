//! The disk: what every program sees now, and beside it what power loss would leave.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use super::crash::PAGE_BYTES;
use super::trace::Call;
use crate::fs::Entry;

const FILE_MODE: u32 = 0o100_644;
const DIRECTORY_MODE: u32 = 0o040_755;
/// The directory that relative paths start from.
const HERE: &str = ".";
const PERMISSIONS: u32 = 0o7777;

/// Which file: what Unix calls the inode number. Names lead to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileNumber(u64);

/// What a name leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Directory,
    File(FileNumber),
}

/// Every name and what it leads to. Directories sort before what is in them.
pub(super) type Names = BTreeMap<Arc<Path>, Node>;

/// Names and files, each as it is now and as it is durable.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk {
    pub(super) names: Names,
    pub(super) durable_names: Names,
    /// What leads from the durable names to those of now, in order.
    pub(super) unsynced_names: Vec<NameChange>,
    pub(super) files: HashMap<FileNumber, File>,
    pub(super) next_file: u64,
    /// Changes whenever the durable part may have changed.
    pub(super) durable_generation: u64,
}

/// A change of one directory that happens as a whole: names set, or removed.
#[derive(Debug, Clone)]
pub(super) struct NameChange(Vec<(Arc<Path>, Option<Node>)>);

impl NameChange {
    pub(super) fn apply(&self, names: &mut Names) {
        for (path, node) in &self.0 {
            match node {
                Some(node) => names.insert(Arc::clone(path), *node),
                None => names.remove(path),
            };
        }
    }

    fn is_in(&self, directory: &Path) -> bool {
        let directory = if directory == Path::new(HERE) { Path::new("") } else { directory };
        self.0.iter().any(|(path, _)| path.parent() == Some(directory))
    }
}

/// A file's bytes and mode, as they are now and as of the last sync.
#[derive(Debug, Clone)]
pub(super) struct File {
    pub(super) bytes: Arc<Vec<u8>>,
    pub(super) mode: u32,
    pub(super) synced: Arc<Vec<u8>>,
    pub(super) synced_mode: u32,
    /// What leads from the synced bytes to those of now, in order.
    pub(super) unsynced: Vec<Change>,
    /// Pages that a failed sync gave up: the next sync takes them for saved.
    given_up: BTreeSet<usize>,
}

/// One unsynced change of a file's bytes.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Write { offset: usize, bytes: Arc<[u8]> },
    Truncate { length: usize },
}

impl Change {
    pub(super) fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes } => {
                let end = offset + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*offset..end].copy_from_slice(bytes);
            }
            Self::Truncate { length } => content.resize(*length, 0),
        }
    }

    /// The length that a file has at least after the change.
    pub(super) fn end(&self) -> usize {
        match self {
            Self::Write { offset, bytes } => offset + bytes.len(),
            Self::Truncate { length } => *length,
        }
    }

    /// The pages that the change writes, as far as the file is `length` bytes long.
    fn pages(&self, length: usize) -> std::ops::Range<usize> {
        match self {
            Self::Write { offset, bytes } => {
                offset / PAGE_BYTES..(offset + bytes.len()).div_ceil(PAGE_BYTES)
            }
            Self::Truncate { length: cut } => {
                let (from, to) = ((*cut).min(length), (*cut).max(length));
                from / PAGE_BYTES..to.div_ceil(PAGE_BYTES)
            }
        }
    }
}

impl File {
    pub(super) fn durable(bytes: Arc<Vec<u8>>, mode: u32) -> Self {
        Self {
            synced: Arc::clone(&bytes),
            bytes,
            mode,
            synced_mode: mode,
            unsynced: Vec::new(),
            given_up: BTreeSet::new(),
        }
    }

    fn change(&mut self, change: Change) {
        if !self.given_up.is_empty() {
            for page in change.pages(self.bytes.len()) {
                self.given_up.remove(&page);
            }
        }
        change.apply(Arc::make_mut(&mut self.bytes));
        self.unsynced.push(change);
    }

    fn sync(&mut self) {
        let mut saved = Arc::clone(&self.bytes);
        for page in std::mem::take(&mut self.given_up) {
            let saved = Arc::make_mut(&mut saved);
            let start = (page * PAGE_BYTES).min(saved.len());
            let end = (start + PAGE_BYTES).min(saved.len());
            for (at, byte) in saved.iter_mut().enumerate().take(end).skip(start) {
                *byte = self.synced.get(at).copied().unwrap_or(0);
            }
        }
        self.synced = saved;
        self.synced_mode = self.mode;
        self.unsynced.clear();
    }

    fn fail_sync(&mut self) {
        for change in &self.unsynced {
            self.given_up.extend(change.pages(self.bytes.len()));
        }
    }
}

impl Disk {
    /// Does what the call did. A call on something that is not there does nothing: it cannot
    /// happen, since only calls that were checked are recorded.
    pub(super) fn apply(&mut self, call: &Call) {
        match call {
            Call::CreateDirectory { path } => self.set_name(path, Some(Node::Directory)),
            Call::Create { path, file } => {
                self.next_file = self.next_file.max(file.0 + 1);
                self.files.insert(*file, File::durable(Arc::default(), FILE_MODE));
                self.set_name(path, Some(Node::File(*file)));
            }
            Call::Write { file, offset, bytes, .. } => {
                let change = Change::Write { offset: *offset, bytes: Arc::clone(bytes) };
                self.with_file(*file, |file| file.change(change));
            }
            Call::Truncate { file, length, .. } => {
                self.with_file(*file, |file| file.change(Change::Truncate { length: *length }));
            }
            Call::SetMode { file, mode, .. } => self.with_file(*file, |file| {
                file.mode = (file.mode & !PERMISSIONS) | (mode & PERMISSIONS);
            }),
            Call::Sync { file, .. } => {
                self.durable_generation += 1;
                self.with_file(*file, File::sync);
            }
            Call::FailedSync { file, .. } => self.with_file(*file, File::fail_sync),
            Call::Rename { from, to } => {
                if from != to {
                    let node = self.node(from);
                    self.change_names(vec![(Arc::clone(from), None), (Arc::clone(to), node)]);
                }
            }
            Call::HardLink { from, to } => self.set_name(to, self.node(from)),
            Call::Remove { path } => self.set_name(path, None),
            Call::SyncDirectory { path } => self.sync_directory(path),
        }
    }

    /// What `path` leads to. The root and the start of relative paths are always there.
    pub(super) fn node(&self, path: &Path) -> Option<Node> {
        if path.parent().is_none() || path == Path::new(HERE) {
            return Some(Node::Directory);
        }
        self.names.get(path).copied()
    }

    /// The number of the file at `path`.
    pub(super) fn file(&self, path: &Path) -> io::Result<FileNumber> {
        match self.node(path) {
            Some(Node::File(number)) => Ok(number),
            Some(Node::Directory) => Err(ErrorKind::IsADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn bytes(&self, number: FileNumber) -> &[u8] {
        self.files.get(&number).map_or(&[], |file| file.bytes.as_slice())
    }

    pub(super) fn entry(&self, path: &Path) -> Option<Entry> {
        let (is_directory, length, mode, identity) = match self.node(path)? {
            Node::Directory => (true, 0, DIRECTORY_MODE, 0),
            Node::File(number) => {
                let mode = self.files.get(&number).map_or(FILE_MODE, |file| file.mode);
                (false, self.bytes(number).len() as u64, mode, number.0)
            }
        };
        Some(Entry { path: path.to_path_buf(), is_directory, length, mode, identity })
    }

    pub(super) fn list(&self, directory: &Path) -> io::Result<Vec<Entry>> {
        match self.node(directory) {
            Some(Node::Directory) => {}
            Some(Node::File(_)) => return Err(ErrorKind::NotADirectory.into()),
            None => return Err(ErrorKind::NotFound.into()),
        }
        let within = self.names.keys().filter(|path| path.parent() == Some(directory));
        Ok(within.filter_map(|path| self.entry(path)).collect())
    }

    /// Fails if the directory that `path` would lie in is missing.
    pub(super) fn parent_exists(&self, path: &Path) -> io::Result<()> {
        match path.parent().map(|parent| self.node(parent)) {
            Some(Some(Node::Directory)) => Ok(()),
            Some(Some(Node::File(_))) => Err(ErrorKind::NotADirectory.into()),
            Some(None) | None => Err(ErrorKind::NotFound.into()),
        }
    }

    /// A number that no file has had.
    pub(super) fn next_file(&self) -> FileNumber {
        FileNumber(self.next_file)
    }

    fn with_file(&mut self, number: FileNumber, act: impl FnOnce(&mut File)) {
        if let Some(file) = self.files.get_mut(&number) {
            act(file);
        }
    }

    fn set_name(&mut self, path: &Arc<Path>, node: Option<Node>) {
        self.change_names(vec![(Arc::clone(path), node)]);
    }

    fn change_names(&mut self, names: Vec<(Arc<Path>, Option<Node>)>) {
        let change = NameChange(names);
        change.apply(&mut self.names);
        self.unsynced_names.push(change);
    }

    fn sync_directory(&mut self, directory: &Path) {
        self.durable_generation += 1;
        let durable = &mut self.durable_names;
        self.unsynced_names.retain(|change| {
            let synced = change.is_in(directory);
            if synced {
                change.apply(durable);
            }
            !synced
        });
    }
}
