//! What a crash takes away.

use std::sync::Arc;

use super::disk::{Change, Disk, File, Names};

/// The unit in which the system writes file contents back.
pub(super) const PAGE_BYTES: usize = 4096;

/// What a crash takes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashModel {
    /// Nothing: the process died, the system went on.
    KeepAll,
    /// Everything that was not synced. A file is as its last sync left it; a directory lists what
    /// it listed at its last sync, so a file that was created and synced is gone if its directory
    /// was not synced, and renames and removals are undone.
    DropUnsynced,
    /// As [`KeepAll`](Self::KeepAll), but of the last call, if it was a write, only a prefix was
    /// done; its length follows from the seed and the cut.
    TornWrite {
        /// Picks the lengths.
        seed: u64,
    },
    /// Some of what was not synced. Each page of a file is as it was at some time since the last
    /// sync, the length too, zeros where nothing was written; directory changes are kept in part,
    /// in order or with gaps. What is kept follows from the seed and the cut.
    RandomSubset {
        /// Picks what is kept.
        seed: u64,
    },
}

/// What is left of a file.
type BytesAndMode = (Arc<Vec<u8>>, u32);

impl Disk {
    /// The disk after a crash at `cut`; everything left is durable then.
    pub(super) fn after_crash(&self, model: CrashModel, cut: usize) -> Self {
        match model {
            CrashModel::KeepAll | CrashModel::TornWrite { .. } => self.kept(),
            CrashModel::DropUnsynced => self.surviving(self.durable_names.clone(), &mut |file| {
                (Arc::clone(&file.synced), file.synced_mode)
            }),
            CrashModel::RandomSubset { seed } => {
                let mut random = Random::new(seed, cut);
                let names = self.some_names(&mut random);
                self.surviving(names, &mut |file| {
                    let mode = if random.coin() { file.mode } else { file.synced_mode };
                    (some_bytes(file, &mut random), mode)
                })
            }
        }
    }

    /// The disk with everything on it durable.
    pub(super) fn kept(&self) -> Self {
        self.surviving(self.names.clone(), &mut |file| (Arc::clone(&file.bytes), file.mode))
    }

    /// The durable names and some of the changes since.
    fn some_names(&self, random: &mut Random) -> Names {
        let changes = &self.unsynced_names;
        let mut names = self.durable_names.clone();
        let keep: Box<dyn FnMut(usize) -> bool> = match random.below(4) {
            0 => Box::new(|_| false),
            1 => Box::new(|_| true),
            2 => {
                let prefix = random.below(changes.len() + 1);
                Box::new(move |at| at < prefix)
            }
            _ => Box::new(|_| random.coin()),
        };
        let mut keep = keep;
        for (at, change) in changes.iter().enumerate() {
            if keep(at) {
                change.apply(&mut names);
            }
        }
        names
    }

    /// A disk with these names, as far as their directories are there, and these contents.
    fn surviving(&self, names: Names, content: &mut dyn FnMut(&File) -> BytesAndMode) -> Self {
        let mut disk = Self { next_file: self.next_file, ..Self::default() };
        // Directories sort before what is in them.
        for (path, node) in names {
            if disk.parent_exists(&path).is_err() {
                continue;
            }
            if let super::disk::Node::File(number) = node
                && let Some(file) = self.files.get(&number)
            {
                disk.files.entry(number).or_insert_with(|| {
                    let (bytes, mode) = content(file);
                    File::durable(bytes, mode)
                });
            }
            disk.names.insert(path, node);
        }
        disk.durable_names = disk.names.clone();
        disk
    }
}

/// A file's content after a crash that kept some of the changes since the last sync.
fn some_bytes(file: &File, random: &mut Random) -> Arc<Vec<u8>> {
    let changes = &file.unsynced;
    if changes.is_empty() {
        return Arc::clone(&file.synced);
    }
    let all = changes.len();
    match random.below(6) {
        0 => Arc::clone(&file.synced),
        1 => Arc::clone(&file.bytes),
        // The length reached the disk, the bytes did not.
        2 => pages_as_of(file, all, &mut |_| 0),
        // Everything up to some moment.
        3 => {
            let moment = random.below(all + 1);
            pages_as_of(file, moment, &mut |_| moment)
        }
        // Each page is old or new.
        4 => pages_as_of(file, all, &mut |_| if random.coin() { all } else { 0 }),
        // Each page, and the length, is of a moment of its own.
        _ => {
            let length = random.below(all + 1);
            pages_as_of(file, length, &mut |_| random.below(all + 1))
        }
    }
}

/// The file with the length it had after `length_moment` of the unsynced changes, and each page as
/// it was after as many as `page_moment` says.
fn pages_as_of(
    file: &File,
    length_moment: usize,
    page_moment: &mut dyn FnMut(usize) -> usize,
) -> Arc<Vec<u8>> {
    let mut pages_of_moment: Vec<Vec<usize>> = vec![Vec::new(); file.unsynced.len() + 1];
    let longest = file.unsynced.iter().map(Change::end).chain([file.synced.len()]).max();
    for page in 0..longest.unwrap_or(0).div_ceil(PAGE_BYTES) {
        if let Some(pages) = pages_of_moment.get_mut(page_moment(page)) {
            pages.push(page);
        }
    }
    let mut at_moment = file.synced.to_vec();
    let mut result = Vec::new();
    let mut length = at_moment.len();
    for (moment, pages) in pages_of_moment.iter().enumerate() {
        if let Some(change) = moment.checked_sub(1).and_then(|at| file.unsynced.get(at)) {
            change.apply(&mut at_moment);
        }
        if moment == length_moment {
            length = at_moment.len();
        }
        for page in pages {
            copy_page(&at_moment, &mut result, *page);
        }
    }
    result.resize(length, 0);
    Arc::new(result)
}

/// Copies what `from` has of a page; the rest of the page is zeros.
fn copy_page(from: &[u8], to: &mut Vec<u8>, page: usize) {
    let start = page * PAGE_BYTES;
    let end = from.len().min(start + PAGE_BYTES);
    if start < end {
        if to.len() < end {
            to.resize(end, 0);
        }
        to[start..end].copy_from_slice(&from[start..end]);
    }
}

/// How much of a write of `length` bytes a torn write leaves: at least one byte less than all.
pub(super) fn torn_length(seed: u64, cut: usize, length: usize) -> usize {
    Random::new(seed, cut).below(length.max(1))
}

/// SplitMix64: the simulation must not depend on a crate for the few numbers it draws.
struct Random(u64);

impl Random {
    fn new(seed: u64, cut: usize) -> Self {
        let mut random = Self(seed ^ (cut as u64).wrapping_mul(0xd134_2543_de82_ef95));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number under `bound`, which is not 0.
    #[expect(clippy::cast_possible_truncation, reason = "the remainder is under a usize")]
    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn coin(&mut self) -> bool {
        self.next() >> 63 == 1
    }
}
