//! What the iterators' tests share: a source that cannot be wrong, and random walks.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::iterator::InternalIterator;
use super::key::{self, EntryKind, Sequence, push_internal_key};
use crate::Result;

/// Internal key and value.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// A value entry whose value tells what it belongs to.
pub(crate) fn entry(user_key: &[u8], sequence: u64) -> Pair {
    entry_of(user_key, sequence, EntryKind::Value)
}

pub(crate) fn entry_of(user_key: &[u8], sequence: u64, kind: EntryKind) -> Pair {
    let mut key = Vec::new();
    push_internal_key(&mut key, user_key, Sequence(sequence), kind);
    let value = match kind {
        EntryKind::Value => format!("{}@{sequence}", user_key.escape_ascii()).into_bytes(),
        EntryKind::Deletion => Vec::new(),
    };
    (key, value)
}

/// An iterator over a sorted list.
pub(crate) struct VecIter {
    entries: Vec<Pair>,
    at: Option<usize>,
}

impl VecIter {
    pub(crate) fn new(entries: Vec<Pair>) -> Self {
        Self { entries, at: None }
    }

    fn stand_on(&mut self, at: Option<usize>) -> Result<()> {
        self.at = at.filter(|&at| at < self.entries.len());
        Ok(())
    }
}

impl InternalIterator for VecIter {
    fn valid(&self) -> bool {
        self.at.is_some()
    }
    fn seek_to_first(&mut self) -> Result<()> {
        self.stand_on(Some(0))
    }
    fn seek_to_last(&mut self) -> Result<()> {
        self.stand_on(self.entries.len().checked_sub(1))
    }
    fn seek(&mut self, target: &[u8]) -> Result<()> {
        self.stand_on(self.entries.iter().position(|(k, _)| key::compare(k, target).is_ge()))
    }
    fn next(&mut self) -> Result<()> {
        self.stand_on(self.at.map(|at| at + 1))
    }
    fn prev(&mut self) -> Result<()> {
        self.stand_on(self.at.and_then(|at| at.checked_sub(1)))
    }
    fn key(&self) -> &[u8] {
        &self.entries[self.at.unwrap()].0
    }
    fn value(&self) -> &[u8] {
        &self.entries[self.at.unwrap()].1
    }
}

/// A step of a random walk.
#[derive(Debug, Clone)]
pub(crate) enum Move {
    First,
    Last,
    Seek(u8, u64),
    Next,
    Prev,
}

impl Arbitrary for Move {
    type Parameters = ();
    type Strategy = BoxedStrategy<Self>;

    fn arbitrary_with((): ()) -> Self::Strategy {
        prop_oneof![
            1 => Just(Self::First),
            1 => Just(Self::Last),
            2 => (0u8..22, 0u64..60).prop_map(|(user, sequence)| Self::Seek(user, sequence)),
            6 => Just(Self::Next),
            6 => Just(Self::Prev),
        ]
        .boxed()
    }
}

/// Walks `iter` and a [`VecIter`] over `entries` side by side. Steps are taken from entries only.
pub(crate) fn check_against_model(
    iter: &mut dyn InternalIterator,
    entries: &[Pair],
    moves: &[Move],
) -> std::result::Result<(), TestCaseError> {
    let mut model = VecIter::new(entries.to_vec());
    let walkers: [&mut dyn InternalIterator; 2] = [&mut model, iter];
    let [model, iter] = walkers;
    for step in moves {
        if matches!(step, Move::Next | Move::Prev) && !model.valid() {
            continue;
        }
        for walker in [&mut *model, &mut *iter] {
            match step {
                Move::First => walker.seek_to_first(),
                Move::Last => walker.seek_to_last(),
                Move::Seek(user, sequence) => walker.seek(&entry(&[*user], *sequence).0),
                Move::Next => walker.next(),
                Move::Prev => walker.prev(),
            }
            .unwrap();
        }
        prop_assert_eq!(iter.valid(), model.valid(), "after {:?}", step);
        if model.valid() {
            prop_assert_eq!(iter.key(), model.key(), "after {:?}", step);
            prop_assert_eq!(iter.value(), model.value(), "after {:?}", step);
        }
    }
    Ok(())
}
