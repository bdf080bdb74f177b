//! Filling the keydir from many hint files at once.
//!
//! What takes time is not reading: it is that each key leads to another place in memory. So the
//! hints are taken in pieces, those of a piece are sorted by the shards of the keydir, and each
//! shard takes all of its own at once. And as the hints tell how many keys there are, the keydir
//! is made large enough before, and does not grow while it is filled.

use std::path::Path;
use std::sync::Arc;

use super::clock::Timestamp;
use super::data_file::DataFile;
use super::hint::{self, Hint, Piece};
use super::keydir::{KeyHash, Keydir, Location, SHARD_COUNT};
use super::load::Usages;
use super::record::HEADER_BYTES;
use super::tombstone;
use crate::Result;
use crate::fs::{Access, FileSystem, ReadFile};

/// A hint file that can be believed.
#[derive(Debug)]
pub(super) struct HintFile {
    file: Arc<dyn ReadFile>,
    pub(super) pieces: Vec<Piece>,
}

impl HintFile {
    /// Opens and checks a hint file. `None` if there is none that can be believed: the data file
    /// tells everything too.
    pub(super) fn open(fs: &dyn FileSystem, path: &Path, data_length: u64) -> Option<Self> {
        let entry = fs.entry(path).ok()??;
        let length = usize::try_from(entry.length).ok()?;
        let file = fs.open(path, Access::Mapped).ok()?;
        let mut scratch = Vec::new();
        let content = file.read_at(0, length, &mut scratch).ok()?;
        let pieces = hint::check(content, data_length).ok()?;
        Some(Self { file, pieces })
    }
}

/// Puts the hints of a piece into the keydir.
pub(super) fn load_piece(
    hints: &HintFile,
    piece: Piece,
    data: &DataFile,
    keydir: &Keydir,
    usages: &Usages,
) -> Result<()> {
    let mut scratch = Vec::new();
    let content = hints.file.read_at(piece.offset as u64, piece.length, &mut scratch)?;
    let (mut live_bytes, mut live_records) = (0, 0);
    let mut value = Vec::new();
    let mut entries = Vec::with_capacity(piece.count);
    let (mut oldest, mut newest) = (Timestamp::MAX, 0);
    for hint in hint::entries(content) {
        let mut location = Location { file: data.id, offset: hint.offset, size: hint.record_bytes };
        if hint.is_tombstone || is_unmarked_tombstone(data, hint, &mut value) {
            data.usage.add_tombstone(hint.record_bytes);
            location.size = 0;
        } else {
            live_bytes += u64::from(hint.record_bytes);
            live_records += 1;
            (oldest, newest) = (oldest.min(hint.timestamp), newest.max(hint.timestamp));
        }
        entries.push((keydir.hash(hint.key), hint.key, location));
    }
    data.usage.add_all_live(live_bytes, live_records);
    if live_records > 0 {
        data.usage.ages.include(oldest);
        data.usage.ages.include(newest);
    }
    let (order, starts) = by_shard(&entries);
    for (shard, range) in starts.windows(2).enumerate() {
        let range = range[0] as usize..range[1] as usize;
        if range.is_empty() {
            continue;
        }
        let entries = order[range].iter().map(|&index| entries[index as usize]);
        keydir.insert_all_if_newer(shard, entries, |older| usages.bury(older))?;
    }
    Ok(())
}

/// The numbers of the entries, those of one shard together and otherwise in order, and where those
/// of each shard start.
fn by_shard(entries: &[(KeyHash, &[u8], Location)]) -> (Vec<u32>, [u32; SHARD_COUNT + 1]) {
    let mut starts = [0; SHARD_COUNT + 1];
    for (hash, ..) in entries {
        starts[hash.shard() + 1] += 1;
    }
    for shard in 0..SHARD_COUNT {
        starts[shard + 1] += starts[shard];
    }
    let mut next = starts;
    let mut order = vec![0; entries.len()];
    for (number, (hash, ..)) in (0..).zip(entries) {
        let place = &mut next[hash.shard()];
        order[*place as usize] = number;
        *place += 1;
    }
    (order, starts)
}

/// Older versions did not mark tombstones in hint files: whatever has the size of one is looked at.
pub(super) fn is_unmarked_tombstone(
    data: &DataFile,
    hint: Hint<'_>,
    scratch: &mut Vec<u8>,
) -> bool {
    let before_value = HEADER_BYTES + hint.key.len();
    let value_bytes = usize::try_from(hint.record_bytes).map_or(0, |size| size - before_value);
    tombstone::SIZES.contains(&value_bytes)
        && data
            .reader
            .read_at(hint.offset + before_value as u64, value_bytes, scratch)
            .is_ok_and(tombstone::is_tombstone)
}
