//! Reading at one moment.

use std::fmt;
use std::sync::Arc;

use super::core::Core;
use super::cursor::{Cursor, CursorOptions};
use super::db_iter::DbIter;
use super::key::Sequence;
use super::table::ReadOptions;
use super::view::View;
use crate::Result;

/// The records of one moment, whatever is written meanwhile.
///
/// It keeps the memtables and tables of that moment, on disk and in memory: let it go soon. A
/// [`Snapshot`](super::Snapshot) costs less to hold for long.
///
/// ```
/// use engines::{Engine, lsm::{CursorOptions, Lsm, Options}};
///
/// # fn main() -> engines::Result<()> {
/// # let directory = std::env::temp_dir().join(format!("lsm-reader-{}", std::process::id()));
/// let store = Lsm::open(&directory, Options::default())?;
/// store.put(b"fruit/apple", b"red")?;
/// store.put(b"fruit/pear", b"green")?;
/// store.put(b"stone", b"grey")?;
///
/// let reader = store.reader();
/// let mut cursor = reader.cursor(CursorOptions::prefix(b"fruit/"))?;
/// cursor.seek_to_last()?;
/// assert_eq!(cursor.record(), Some((&b"fruit/pear"[..], &b"green"[..])));
/// cursor.prev()?;
/// assert_eq!(cursor.key(), Some(&b"fruit/apple"[..]));
/// assert!(!cursor.prev()?);
///
/// let values = reader.multi_get_vec(&["stone", "sand"])?;
/// assert_eq!(values, [Some(b"grey".to_vec()), None]);
/// # drop(cursor);
/// # drop(reader);
/// # drop(store);
/// # std::fs::remove_dir_all(&directory).unwrap();
/// # Ok(())
/// # }
/// ```
pub struct Reader<'db> {
    pub(super) core: &'db Core,
    pub(super) view: Arc<View>,
    pub(super) sequence: Sequence,
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}

impl<'db> Reader<'db> {
    /// Reads at `sequence`, which a snapshot holds, or at the present.
    pub(super) fn new(core: &'db Core, sequence: Option<Sequence>) -> Self {
        // The view first: then it holds all that is visible.
        let view = core.view.load_full();
        let sequence = sequence.unwrap_or_else(|| core.visible());
        Self { core, view, sequence }
    }

    /// As [`Engine::get`](crate::Engine::get), at this moment.
    ///
    /// # Errors
    /// [`Error::Corruption`](crate::Error::Corruption) of a table on the way, and I/O errors.
    pub fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.core.get_in(&self.view, self.sequence, key, read)
    }

    /// Lends the values of the `keys` that are there to `read`, each with the place of its key in
    /// `keys`, in no particular order; tells how many there are. A key may be there twice. Keys
    /// that lie close together are found in less time than one by one: each block is read once.
    ///
    /// # Errors
    /// As [`get`](Self::get); some values may have been lent before.
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut read: impl FnMut(usize, &[u8]),
    ) -> Result<usize> {
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        self.core.multi_get_in(&self.view, self.sequence, &keys, &mut read)
    }

    /// The values of `keys`, copied, in their order.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn multi_get_vec<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut values = vec![None; keys.len()];
        self.multi_get(keys, |at, value| values[at] = Some(value.to_vec()))?;
        Ok(values)
    }

    /// Walks the records.
    ///
    /// # Errors
    /// Those of opening tables.
    pub fn cursor(&self, options: CursorOptions) -> Result<Cursor<'_>> {
        let read_options = ReadOptions {
            fill_cache: options.fill_cache,
            readahead_bytes: options.readahead_bytes as u64,
            ..ReadOptions::default()
        };
        let entries = self.core.merged(&self.view, read_options)?;
        Ok(Cursor::new(DbIter::new(entries, self.sequence), options))
    }
}
