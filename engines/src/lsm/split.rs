//! Cutting a merge by key range: into sections, and these into parts.
//!
//! A section is what is installed on its own. It begins and ends between two tables of the output
//! level, so that these can go when it is done, long before the whole merge is. A part is what one
//! thread merges at a time, about a table of output.
//!
//! Each input table offers keys that cut it into pieces of about equal size. Sorted together, with
//! the size of the piece that each ends, they show where in the key space the bytes are.

use std::sync::Arc;

use super::picker::Merge;
use super::table_cache::TableCache;
use super::version::TableFile;
use crate::Result;

/// Pieces that a table is cut into.
const PIECES_PER_TABLE: usize = 64;

/// A range of user keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// The first key; `None` for the very first.
    pub(crate) start: Option<Vec<u8>>,
    /// The key behind the last; `None` for the very last.
    pub(crate) end: Option<Vec<u8>>,
}

impl Part {
    pub(crate) fn overlaps(&self, table: &TableFile) -> bool {
        self.start.as_deref().is_none_or(|start| start <= table.largest())
            && self.end.as_deref().is_none_or(|end| table.smallest() < end)
    }

    /// Whether there is something on both sides of `key`.
    fn can_be_cut_at(&self, key: &[u8]) -> bool {
        self.start.as_deref().is_none_or(|start| start < key)
            && self.end.as_deref().is_none_or(|end| key < end)
    }

    /// Cut at `cuts`, which lie in it, ascending.
    fn cut(self, cuts: Vec<Vec<u8>>) -> Vec<Self> {
        let starts = std::iter::once(self.start).chain(cuts.iter().cloned().map(Some));
        let ends = cuts.iter().cloned().map(Some).chain(std::iter::once(self.end));
        starts.zip(ends).map(|(start, end)| Self { start, end }).collect()
    }
}

/// What is installed on its own, in key order.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) parts: Vec<Part>,
    /// The tables of the output level that end with it.
    pub(crate) replaced: Vec<Arc<TableFile>>,
}

/// Sections, with parts of about `part_bytes` of input each.
pub(crate) fn split(merge: &Merge, tables: &TableCache, part_bytes: u64) -> Result<Vec<Section>> {
    let mut pieces = Vec::new();
    if merge.input_bytes() > part_bytes {
        for (_, table) in &merge.inputs {
            let keys = tables.get(table.info.number, table.info.size)?.cut_keys(PIECES_PER_TABLE);
            let piece_bytes = table.info.size / (keys.len() as u64 + 1);
            pieces.extend(keys.into_iter().map(|key| (key, piece_bytes)));
        }
    }
    pieces.sort();
    let groups = group(merge.replaced(), part_bytes);
    let cuts = groups.iter().skip(1).map(|group| group[0].smallest().to_vec()).collect();
    let ranges = Part { start: None, end: None }.cut(cuts);
    // Without tables in the output level all is one section.
    let groups = groups.into_iter().chain(std::iter::once(Vec::new()));
    let sections = ranges.into_iter().zip(groups).map(|(range, replaced)| {
        let inside = pieces.iter().filter(|(key, _)| range.can_be_cut_at(key)).cloned();
        let cuts = cuts_within(inside.collect(), part_bytes);
        Section { parts: range.cut(cuts), replaced }
    });
    Ok(sections.collect())
}

/// Tables of one level, in groups of about `group_bytes` that lie side by side.
fn group(mut tables: Vec<Arc<TableFile>>, group_bytes: u64) -> Vec<Vec<Arc<TableFile>>> {
    tables.sort_by(|a, b| a.smallest().cmp(b.smallest()));
    let mut groups: Vec<Vec<Arc<TableFile>>> = Vec::new();
    let mut last_bytes = 0;
    for table in tables {
        let bytes = table.info.size;
        match groups.last_mut() {
            // Rather a little more than two small ones.
            Some(group) if last_bytes + bytes <= group_bytes.saturating_add(group_bytes / 4) => {
                group.push(table);
                last_bytes += bytes;
            }
            _ => {
                groups.push(vec![table]);
                last_bytes = bytes;
            }
        }
    }
    groups
}

/// Keys that cut `pieces`, each a user key and the bytes before it, ascending, into parts of about
/// `part_bytes`.
fn cuts_within(pieces: Vec<(Vec<u8>, u64)>, part_bytes: u64) -> Vec<Vec<u8>> {
    // Behind the last key there is about one more piece.
    let last_bytes = pieces.last().map_or(0, |(_, bytes)| *bytes);
    let total_bytes = pieces.iter().map(|(_, bytes)| bytes).sum::<u64>() + last_bytes;
    let part_count = (total_bytes.saturating_add(part_bytes / 2) / part_bytes.max(1)).max(1);
    let even_bytes = total_bytes.div_ceil(part_count);
    let mut cuts: Vec<Vec<u8>> = Vec::new();
    let (mut seen, mut due) = (0u64, even_bytes);
    for (key, bytes) in pieces {
        seen += bytes;
        // What is left over must be worth a part.
        let left = total_bytes.saturating_sub(seen);
        if seen >= due && left >= even_bytes / 2 && cuts.last() != Some(&key) {
            cuts.push(key);
            due = seen + even_bytes;
        }
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lsm::edit::TableInfo;
    use crate::lsm::filename::FileNumber;
    use crate::lsm::janitor::Disposal;
    use crate::lsm::key::{EntryKind, Sequence, push_internal_key};

    fn cut_at(piece_keys: &[&str], piece_bytes: u64, part_bytes: u64) -> Vec<String> {
        let mut pieces: Vec<_> =
            piece_keys.iter().map(|key| (key.as_bytes().to_vec(), piece_bytes)).collect();
        pieces.sort();
        let cuts = cuts_within(pieces, part_bytes);
        cuts.into_iter().map(|key| String::from_utf8(key).unwrap()).collect()
    }

    #[test]
    fn cuts_lie_where_the_bytes_are() {
        assert_eq!(cut_at(&["a", "b", "c", "d", "e"], 10, 20), ["b", "d"]);
        assert_eq!(cut_at(&["e", "d", "c", "b", "a"], 10, 30), ["c"]);
        assert_eq!(cut_at(&["a", "b", "c"], 10, 100), [] as [&str; 0]);
    }

    #[test]
    fn no_part_is_made_for_crumbs_and_no_key_cuts_twice() {
        assert_eq!(cut_at(&["k", "k", "k", "k", "k"], 10, 20), ["k"]);
        assert_eq!(cut_at(&[], 10, 3), [] as [&str; 0]);
        // 50 bytes in parts of 25: what would follow a cut at "d" is too little.
        assert_eq!(cut_at(&["a", "b", "c", "d"], 10, 26), ["c"]);
    }

    #[test]
    fn sections_take_about_a_table_and_rather_a_little_more_than_two_small_ones() {
        let table = |(number, size): (u64, u64)| {
            let mut key = Vec::new();
            push_internal_key(&mut key, &number.to_be_bytes(), Sequence(1), EntryKind::Value);
            let number = FileNumber(number);
            let info = TableInfo { number, size, smallest: key.clone(), largest: key };
            TableFile::new(info, true, Disposal::nowhere())
        };
        // Up to 40 together.
        let mut tables: Vec<_> = (0..).zip([30, 30, 5, 5, 40, 10, 90]).map(table).collect();
        tables.reverse();
        let groups = group(tables, 32)
            .into_iter()
            .map(|group| group.iter().map(|table| table.info.number.0).collect::<Vec<_>>());
        assert_eq!(groups.collect::<Vec<_>>(), [vec![0], vec![1, 2, 3], vec![4], vec![5], vec![6]]);
        assert!(group(Vec::new(), 32).is_empty());
    }

    #[test]
    fn parts_follow_one_another_without_a_gap() {
        let whole = Part { start: Some(b"c".to_vec()), end: None };
        let parts = whole.cut(vec![b"g".to_vec(), b"p".to_vec()]);
        assert_eq!(parts.len(), 3);
        assert_eq!((parts[0].start.as_deref(), &parts[2].end), (Some(&b"c"[..]), &None));
        for pair in parts.windows(2) {
            assert_eq!(pair[0].end, pair[1].start);
        }
    }
}
