//! From internal entries to what users see: the newest visible version of each key, deleted keys
//! left out, both ways.
//!
//! Forward, the inner iterator stands on the entry that is shown: the first one of its user key at
//! or before the snapshot. Backward, the versions of a key come oldest first, so the newest visible
//! one is known only when the key is behind: key and value are kept aside and the inner iterator
//! stands before all versions of that key.

use super::iterator::InternalIterator;
use super::key::{EntryKind, ParsedKey, SEEK_KIND, Sequence, push_internal_key};
use crate::{Direction, Error, Result};

/// Walks the live records as of one sequence.
///
/// A new iterator stands nowhere; [`key`](Self::key) and [`value`](Self::value) are meaningful
/// only where [`valid`](Self::valid). After an error it stands nowhere.
pub(crate) struct DbIter<I> {
    inner: I,
    sequence: Sequence,
    direction: Direction,
    valid: bool,
    /// Forward: the user key whose versions are skipped or shown. Backward: the key shown.
    saved_key: Vec<u8>,
    /// Backward: the value shown.
    saved_value: Vec<u8>,
    seek_key: Vec<u8>,
}

impl<I: InternalIterator> DbIter<I> {
    pub(crate) fn new(inner: I, sequence: Sequence) -> Self {
        Self {
            inner,
            sequence,
            direction: Direction::Forward,
            valid: false,
            saved_key: Vec::new(),
            saved_value: Vec::new(),
            seek_key: Vec::new(),
        }
    }

    pub(crate) fn valid(&self) -> bool {
        self.valid
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.saved_key
    }

    pub(crate) fn value(&self) -> &[u8] {
        match self.direction {
            Direction::Forward => self.inner.value(),
            Direction::Backward => &self.saved_value,
        }
    }

    pub(crate) fn seek_to_first(&mut self) -> Result<()> {
        self.place(Direction::Forward, |inner, _| inner.seek_to_first())
    }

    pub(crate) fn seek_to_last(&mut self) -> Result<()> {
        self.place(Direction::Backward, |inner, _| inner.seek_to_last())
    }

    /// To the first record at or after `user_key`.
    pub(crate) fn seek(&mut self, user_key: &[u8]) -> Result<()> {
        self.make_seek_key(user_key);
        self.place(Direction::Forward, |inner, target| inner.seek(target))
    }

    /// To the last record before `user_key`.
    pub(crate) fn seek_before(&mut self, user_key: &[u8]) -> Result<()> {
        // The key at the largest sequence comes before all versions of the key.
        self.seek_key.clear();
        push_internal_key(&mut self.seek_key, user_key, Sequence::MAX, SEEK_KIND);
        self.place(Direction::Backward, |inner, target| {
            inner.seek(target)?;
            if inner.valid() { inner.prev() } else { inner.seek_to_last() }
        })
    }

    /// One record on. Only where it stands on one.
    pub(crate) fn next(&mut self) -> Result<()> {
        debug_assert!(self.valid);
        self.guarded(|this| {
            if this.direction == Direction::Backward {
                // The inner iterator stands before the versions of the saved key.
                this.direction = Direction::Forward;
                if this.inner.valid() {
                    this.inner.next()?;
                } else {
                    this.inner.seek_to_first()?;
                }
            }
            this.find_forward(true)
        })
    }

    /// One record back. Only where it stands on one.
    pub(crate) fn prev(&mut self) -> Result<()> {
        debug_assert!(self.valid);
        self.guarded(|this| {
            if this.direction == Direction::Forward {
                // It stands on a version of the saved key: back over all newer ones.
                this.direction = Direction::Backward;
                while this.inner.valid() && parse(&this.inner)?.user_key == this.saved_key {
                    this.inner.prev()?;
                }
            }
            this.find_backward()
        })
    }

    fn place(
        &mut self,
        direction: Direction,
        place: impl FnOnce(&mut I, &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.guarded(|this| {
            this.direction = direction;
            place(&mut this.inner, &this.seek_key)?;
            match direction {
                Direction::Forward => this.find_forward(false),
                Direction::Backward => this.find_backward(),
            }
        })
    }

    /// After an error it stands nowhere.
    fn guarded(&mut self, act: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.valid = false;
        act(self).inspect_err(|_| self.valid = false)
    }

    /// Goes on to the first entry that is to be shown. With `skip`, entries of the saved key are
    /// passed over.
    fn find_forward(&mut self, mut skip: bool) -> Result<()> {
        while self.inner.valid() {
            let entry = parse(&self.inner)?;
            let visible = entry.sequence <= self.sequence;
            if visible && !(skip && entry.user_key == self.saved_key) {
                self.saved_key.clear();
                self.saved_key.extend_from_slice(entry.user_key);
                if entry.kind == EntryKind::Value {
                    self.valid = true;
                    return Ok(());
                }
                // Deleted: what is older of this key is hidden.
                skip = true;
            }
            self.inner.next()?;
        }
        self.valid = false;
        Ok(())
    }

    /// Goes back over all versions of one key after the other until one has something to show.
    fn find_backward(&mut self) -> Result<()> {
        self.valid = false;
        while self.inner.valid() {
            let entry = parse(&self.inner)?;
            if self.valid && entry.user_key != self.saved_key {
                return Ok(());
            }
            if entry.sequence <= self.sequence {
                self.valid = entry.kind == EntryKind::Value;
                if self.valid {
                    self.saved_key.clear();
                    self.saved_key.extend_from_slice(entry.user_key);
                    self.saved_value.clear();
                    self.saved_value.extend_from_slice(self.inner.value());
                }
            }
            self.inner.prev()?;
        }
        Ok(())
    }

    fn make_seek_key(&mut self, user_key: &[u8]) {
        self.seek_key.clear();
        push_internal_key(&mut self.seek_key, user_key, self.sequence, SEEK_KIND);
    }
}

fn parse<I: InternalIterator>(inner: &I) -> Result<ParsedKey<'_>> {
    ParsedKey::parse(inner.key()).ok_or_else(|| {
        Error::corruption(
            "",
            0,
            format!("\"{}\" is not an internal key", inner.key().escape_ascii()),
        )
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::lsm::key::compare;
    use crate::lsm::test_iter::{Move, VecIter, entry_of};

    type Records = BTreeMap<Vec<u8>, Vec<u8>>;

    /// Where the model stands after a step from `key`.
    fn model_step(records: &Records, step: &Move, key: Option<&Vec<u8>>) -> Option<Vec<u8>> {
        let found = match (step, key) {
            (Move::First, _) => records.iter().next(),
            (Move::Last, _) => records.iter().next_back(),
            (Move::Seek(user, _), _) => records.range(vec![*user]..).next(),
            (Move::Next, Some(key)) => records.range(key.clone()..).nth(1),
            (Move::Prev, Some(key)) => records.range(..key.clone()).next_back(),
            (Move::Next | Move::Prev, None) => None,
        };
        found.map(|(key, _)| key.clone())
    }

    proptest! {
        #[test]
        fn it_shows_what_was_written_last_up_to_its_sequence(
            writes in prop::collection::vec((0u8..12, prop::bool::weighted(0.7)), 0..60),
            sequence in 0u64..70,
            moves in prop::collection::vec(any::<Move>(), 0..60),
            befores in prop::collection::vec(0u8..14, 0..4),
        ) {
            let (mut entries, mut records) = (Vec::new(), Records::new());
            for (at, (user, is_value)) in (1u64..).zip(writes) {
                let kind = if is_value { EntryKind::Value } else { EntryKind::Deletion };
                let (key, value) = entry_of(&[user], at, kind);
                entries.push((key, value.clone()));
                if at > sequence {
                    continue;
                }
                match kind {
                    EntryKind::Value => records.insert(vec![user], value),
                    EntryKind::Deletion => records.remove(&vec![user]),
                };
            }
            entries.sort_by(|a, b| compare(&a.0, &b.0));
            let mut iter = DbIter::new(VecIter::new(entries), Sequence(sequence));
            let mut key: Option<Vec<u8>> = None;
            for step in &moves {
                if matches!(step, Move::Next | Move::Prev) && key.is_none() {
                    continue;
                }
                match step {
                    Move::First => iter.seek_to_first(),
                    Move::Last => iter.seek_to_last(),
                    Move::Seek(user, _) => iter.seek(&[*user]),
                    Move::Next => iter.next(),
                    Move::Prev => iter.prev(),
                }
                .unwrap();
                key = model_step(&records, step, key.as_ref());
                let stands_on = iter.valid().then(|| (iter.key().to_vec(), iter.value().to_vec()));
                let expected = key.clone().map(|key| (key.clone(), records[&key].clone()));
                prop_assert_eq!(stands_on, expected, "after {:?}", step);
            }
            for user in befores {
                iter.seek_before(&[user]).unwrap();
                let expected = records.range(..vec![user]).next_back().map(|(key, _)| key.clone());
                prop_assert_eq!(iter.valid().then(|| iter.key().to_vec()), expected);
            }
        }
    }

    #[test]
    fn what_is_no_internal_key_is_an_error_and_it_stands_nowhere_after() {
        let mut iter = DbIter::new(VecIter::new(vec![(b"short".to_vec(), vec![])]), Sequence(1));
        assert!(iter.seek_to_first().unwrap_err().is_corruption());
        assert!(!iter.valid());
        assert!(iter.seek_to_last().unwrap_err().is_corruption());
        assert!(!iter.valid());
    }
}
