//! Cutting a merge into parts by key range.
//!
//! Each input table offers keys that cut it into pieces of about equal size. Sorted together, with
//! the size of the piece that each ends, they show where in the key space the bytes are.

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
}

/// Parts of about `part_bytes` of input each.
pub(crate) fn split(merge: &Merge, tables: &TableCache, part_bytes: u64) -> Result<Vec<Part>> {
    let mut pieces = Vec::new();
    if merge.input_bytes() > part_bytes {
        for (_, table) in &merge.inputs {
            let keys = tables.get(table.info.number, table.info.size)?.cut_keys(PIECES_PER_TABLE);
            let piece_bytes = table.info.size / (keys.len() as u64 + 1);
            pieces.extend(keys.into_iter().map(|key| (key, piece_bytes)));
        }
    }
    Ok(parts(cuts(pieces, merge.input_bytes(), part_bytes)))
}

/// Keys that cut `total_bytes` into parts of `part_bytes`, as far as `pieces`, each a user key and
/// the bytes before it, show where they lie.
fn cuts(mut pieces: Vec<(Vec<u8>, u64)>, total_bytes: u64, part_bytes: u64) -> Vec<Vec<u8>> {
    pieces.sort();
    let part_count = total_bytes.div_ceil(part_bytes.max(1)).max(1);
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

fn parts(cuts: Vec<Vec<u8>>) -> Vec<Part> {
    let starts = std::iter::once(None).chain(cuts.iter().cloned().map(Some));
    let ends = cuts.iter().cloned().map(Some).chain(std::iter::once(None));
    starts.zip(ends).map(|(start, end)| Part { start, end }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut_at(piece_keys: &[&str], piece_bytes: u64, part_bytes: u64) -> Vec<String> {
        let pieces = piece_keys.iter().map(|key| (key.as_bytes().to_vec(), piece_bytes)).collect();
        let total = piece_bytes * (piece_keys.len() as u64 + 1);
        let cuts = cuts(pieces, total, part_bytes);
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
    fn parts_follow_one_another_without_a_gap() {
        let parts = parts(vec![b"g".to_vec(), b"p".to_vec()]);
        assert_eq!(parts.len(), 3);
        assert_eq!((&parts[0].start, &parts[2].end), (&None, &None));
        for pair in parts.windows(2) {
            assert_eq!(pair[0].end, pair[1].start);
        }
    }
}
