//! Walking over the records, step by step, both ways.

use std::fmt;
use std::ops::Bound;

use super::db_iter::DbIter;
use super::merge_iter::MergeIter;
use crate::{KeyRange, Result};

/// How a [`Cursor`] reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CursorOptions {
    /// Where its records start: it never stands before. Default: unbounded.
    pub lower: Bound<Vec<u8>>,
    /// Where its records end: it never stands behind. Default: unbounded.
    pub upper: Bound<Vec<u8>>,
    /// Whether blocks that it reads may go to the block cache. A full cache keeps what is read
    /// again and again in any case; off, a walk leaves no trace in it at all. Default: yes.
    pub fill_cache: bool,
    /// How much a walk forwards reads at once, in bytes, where tables cannot be mapped into
    /// memory; 0 reads block by block. Mapped ones are read ahead by the system. Default: 0.
    pub readahead_bytes: usize,
}

impl Default for CursorOptions {
    fn default() -> Self {
        Self {
            lower: Bound::Unbounded,
            upper: Bound::Unbounded,
            fill_cache: true,
            readahead_bytes: 0,
        }
    }
}

impl CursorOptions {
    /// The records of a range.
    #[must_use]
    pub fn range(range: KeyRange<'_>) -> Self {
        Self {
            lower: range.start.map(<[u8]>::to_vec),
            upper: range.end.map(<[u8]>::to_vec),
            ..Self::default()
        }
    }

    /// The records whose keys start with `prefix`.
    #[must_use]
    pub fn prefix(prefix: &[u8]) -> Self {
        // The first key behind them: the last byte that can be raised is, and what follows goes.
        let raised = prefix.iter().rposition(|byte| *byte != u8::MAX);
        let upper = raised.map_or(Bound::Unbounded, |at| {
            let mut end = prefix[..=at].to_vec();
            end[at] += 1;
            Bound::Excluded(end)
        });
        Self { lower: Bound::Included(prefix.to_vec()), upper, ..Self::default() }
    }

    fn bounds(&self) -> KeyRange<'_> {
        KeyRange {
            start: self.lower.as_ref().map(Vec::as_slice),
            end: self.upper.as_ref().map(Vec::as_slice),
        }
    }
}

/// Walks the live records of a [`Reader`](super::Reader) in the order of their keys, bytewise.
///
/// It stands on a record or nowhere; a new one stands nowhere. Every move tells whether it stands
/// on a record then. From nowhere [`next`](Self::next) and [`prev`](Self::prev) lead nowhere; the
/// direction may change at every step. After an error it stands nowhere and can be placed again.
pub struct Cursor<'r> {
    iter: DbIter<MergeIter<'r>>,
    options: CursorOptions,
    is_inside: bool,
}

impl fmt::Debug for Cursor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor")
            .field("key", &self.key().map(<[u8]>::escape_ascii).map(|key| key.to_string()))
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl<'r> Cursor<'r> {
    pub(super) fn new(iter: DbIter<MergeIter<'r>>, options: CursorOptions) -> Self {
        Self { iter, options, is_inside: false }
    }

    /// To the first record.
    ///
    /// # Errors
    /// [`Error::Corruption`](crate::Error::Corruption) of a table on the way, and I/O errors: so
    /// for every move.
    pub fn seek_to_first(&mut self) -> Result<bool> {
        match &self.options.lower {
            Bound::Unbounded => self.iter.seek_to_first()?,
            Bound::Included(key) => self.iter.seek(key)?,
            Bound::Excluded(key) => {
                self.iter.seek(key)?;
                if self.iter.valid() && self.iter.key() == key {
                    self.iter.next()?;
                }
            }
        }
        Ok(self.arrive())
    }

    /// To the last record.
    ///
    /// # Errors
    /// As [`seek_to_first`](Self::seek_to_first).
    pub fn seek_to_last(&mut self) -> Result<bool> {
        match &self.options.upper {
            Bound::Unbounded => self.iter.seek_to_last()?,
            Bound::Excluded(key) => self.iter.seek_before(key)?,
            Bound::Included(key) => seek_at_or_before(&mut self.iter, key)?,
        }
        Ok(self.arrive())
    }

    /// To the first record at or after `key`.
    ///
    /// # Errors
    /// As [`seek_to_first`](Self::seek_to_first).
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        if self.options.bounds().is_before(key) {
            return self.seek_to_first();
        }
        self.iter.seek(key)?;
        Ok(self.arrive())
    }

    /// To the last record at or before `key`.
    ///
    /// # Errors
    /// As [`seek_to_first`](Self::seek_to_first).
    pub fn seek_for_prev(&mut self, key: &[u8]) -> Result<bool> {
        if self.options.bounds().is_after(key) {
            return self.seek_to_last();
        }
        seek_at_or_before(&mut self.iter, key)?;
        Ok(self.arrive())
    }

    /// One record on.
    ///
    /// # Errors
    /// As [`seek_to_first`](Self::seek_to_first).
    #[expect(clippy::should_implement_trait, reason = "it lends its records and can fail")]
    pub fn next(&mut self) -> Result<bool> {
        if !self.valid() {
            return Ok(false);
        }
        self.iter.next()?;
        Ok(self.arrive())
    }

    /// One record back.
    ///
    /// # Errors
    /// As [`seek_to_first`](Self::seek_to_first).
    pub fn prev(&mut self) -> Result<bool> {
        if !self.valid() {
            return Ok(false);
        }
        self.iter.prev()?;
        Ok(self.arrive())
    }

    /// Whether it stands on a record.
    #[must_use]
    pub fn valid(&self) -> bool {
        self.is_inside && self.iter.valid()
    }

    /// The key of the record that it stands on.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        self.valid().then(|| self.iter.key())
    }

    /// The value of the record that it stands on.
    #[must_use]
    pub fn value(&self) -> Option<&[u8]> {
        self.valid().then(|| self.iter.value())
    }

    /// Key and value of the record that it stands on.
    #[must_use]
    pub fn record(&self) -> Option<(&[u8], &[u8])> {
        self.valid().then(|| (self.iter.key(), self.iter.value()))
    }

    /// Whether the record it came to lies inside the bounds.
    fn arrive(&mut self) -> bool {
        self.is_inside = self.iter.valid() && self.options.bounds().contains(self.iter.key());
        self.is_inside
    }
}

fn seek_at_or_before(iter: &mut DbIter<MergeIter<'_>>, key: &[u8]) -> Result<()> {
    // The next key there can be.
    let mut after = key.to_vec();
    after.push(0);
    iter.seek_before(&after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_first_key_without_it() {
        for (prefix, upper) in [
            (&b""[..], Bound::Unbounded),
            (b"a", Bound::Excluded(b"b".to_vec())),
            (b"a\xff", Bound::Excluded(b"b".to_vec())),
            (b"a\xff\x00\xff\xff", Bound::Excluded(b"a\xff\x01".to_vec())),
            (b"\xff\xff", Bound::Unbounded),
        ] {
            let options = CursorOptions::prefix(prefix);
            assert_eq!(options.lower, Bound::Included(prefix.to_vec()));
            assert_eq!(options.upper, upper, "{prefix:?}");
        }
    }
}
