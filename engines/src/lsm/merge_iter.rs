//! Many sorted sources as one.
//!
//! A binary heap of the sources that stand on an entry, the next one on top. Moving on moves the top
//! source and lets it sink; where sources hold long runs that is one comparison or two. Each source
//! keeps the first bytes of its key as a number, which decides most comparisons.
//!
//! Turning round on an entry moves every other source to the other side of that entry first: then
//! all of them stand where the new direction needs them.

use std::cmp::Ordering;

use super::iterator::InternalIterator;
use super::key;
use super::leaf::prefix;
use crate::{Direction, Result};

/// The entries of all its sources in internal key order.
pub(crate) struct MergeIter<'a> {
    sources: Vec<Source<'a>>,
    /// Indices into `sources`; the first is the one it stands on.
    heap: Vec<usize>,
    direction: Direction,
}

struct Source<'a> {
    iter: Box<dyn InternalIterator + 'a>,
    /// Of the key it stands on.
    prefix: u128,
}

impl<'a> MergeIter<'a> {
    /// Of two sources with the same internal key the earlier one in `sources` comes first.
    pub(crate) fn new(sources: Vec<Box<dyn InternalIterator + 'a>>) -> Self {
        let sources: Vec<_> = sources.into_iter().map(|iter| Source { iter, prefix: 0 }).collect();
        Self { heap: Vec::with_capacity(sources.len()), sources, direction: Direction::Forward }
    }

    /// Moves every source with `place`, then orders them.
    fn place_all(
        &mut self,
        direction: Direction,
        mut place: impl FnMut(&mut Source<'a>) -> Result<()>,
    ) -> Result<()> {
        self.direction = direction;
        self.heap.clear();
        for source in &mut self.sources {
            place(source)?;
            source.remember();
        }
        self.rebuild();
        Ok(())
    }

    /// Turns round: every source but the one it stands on goes to the other side of its key.
    fn turn(&mut self, direction: Direction) -> Result<()> {
        let Some(&current) = self.heap.first() else { return Ok(()) };
        let key = self.sources[current].iter.key().to_vec();
        self.direction = direction;
        self.heap.clear();
        for (index, source) in self.sources.iter_mut().enumerate() {
            if index == current {
                continue;
            }
            source.iter.seek(&key)?;
            match direction {
                Direction::Forward => {
                    if source.iter.valid() && source.iter.key() == key {
                        source.iter.next()?;
                    }
                }
                Direction::Backward => source.step_before(&key)?,
            }
            source.remember();
        }
        self.rebuild();
        Ok(())
    }

    fn advance(&mut self, direction: Direction) -> Result<()> {
        if self.direction != direction {
            self.turn(direction)?;
        }
        let Some(&top) = self.heap.first() else { return Ok(()) };
        let source = &mut self.sources[top];
        let moved = match direction {
            Direction::Forward => source.iter.next(),
            Direction::Backward => source.iter.prev(),
        };
        if let Err(error) = moved {
            self.heap.clear();
            return Err(error);
        }
        source.remember();
        if source.iter.valid() {
            self.sink(0);
        } else {
            self.heap.swap_remove(0);
            if !self.heap.is_empty() {
                self.sink(0);
            }
        }
        Ok(())
    }

    fn rebuild(&mut self) {
        self.heap.clear();
        self.heap.extend((0..self.sources.len()).filter(|&at| self.sources[at].iter.valid()));
        for at in (0..self.heap.len() / 2).rev() {
            self.sink(at);
        }
    }

    fn sink(&mut self, mut at: usize) {
        loop {
            let mut child = 2 * at + 1;
            if child >= self.heap.len() {
                return;
            }
            if child + 1 < self.heap.len() && self.goes_first(child + 1, child) {
                child += 1;
            }
            if !self.goes_first(child, at) {
                return;
            }
            self.heap.swap(at, child);
            at = child;
        }
    }

    /// Whether the source at place `left` of the heap comes before the one at `right`.
    fn goes_first(&self, left: usize, right: usize) -> bool {
        let (left, right) = (self.heap[left], self.heap[right]);
        let order = self.sources[left].compare(&self.sources[right]).then(left.cmp(&right));
        match self.direction {
            Direction::Forward => order.is_lt(),
            Direction::Backward => order.is_gt(),
        }
    }
}

impl Source<'_> {
    fn remember(&mut self) {
        if self.iter.valid() {
            self.prefix = prefix(key::user_key(self.iter.key()));
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        self.prefix.cmp(&other.prefix).then_with(|| key::compare(self.iter.key(), other.iter.key()))
    }

    /// From where a seek ended to the last entry before the key that was sought.
    fn step_before(&mut self, key: &[u8]) -> Result<()> {
        if self.iter.valid() { self.iter.prev() } else { self.iter.seek_to_last() }?;
        // What came into a memtable since the seek may lie behind the key.
        while self.iter.valid() && key::compare(self.iter.key(), key).is_ge() {
            self.iter.prev()?;
        }
        Ok(())
    }
}

impl InternalIterator for MergeIter<'_> {
    fn valid(&self) -> bool {
        !self.heap.is_empty()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.place_all(Direction::Forward, |source| source.iter.seek_to_first())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.place_all(Direction::Backward, |source| source.iter.seek_to_last())
    }

    fn seek(&mut self, internal_key: &[u8]) -> Result<()> {
        self.place_all(Direction::Forward, |source| source.iter.seek(internal_key))
    }

    fn next(&mut self) -> Result<()> {
        self.advance(Direction::Forward)
    }

    fn prev(&mut self) -> Result<()> {
        self.advance(Direction::Backward)
    }

    fn key(&self) -> &[u8] {
        self.heap.first().map_or(&[], |&top| self.sources[top].iter.key())
    }

    fn value(&self) -> &[u8] {
        self.heap.first().map_or(&[], |&top| self.sources[top].iter.value())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::lsm::key::{EntryKind, Sequence};
    use crate::lsm::memtable::{Memtable, MemtableIter, Record};
    use crate::lsm::test_iter::{Move, VecIter, check_against_model, entry};

    fn merged(runs: &[Vec<(Vec<u8>, Vec<u8>)>]) -> MergeIter<'static> {
        MergeIter::new(
            runs.iter().map(|run| Box::new(VecIter::new(run.clone())) as Box<_>).collect(),
        )
    }

    #[test]
    fn nothing_to_merge_is_not_an_error() {
        for runs in [vec![], vec![vec![]], vec![vec![], vec![]]] {
            let mut iter = merged(&runs);
            iter.seek_to_first().unwrap();
            assert!(!iter.valid());
            iter.next().unwrap();
            iter.seek_to_last().unwrap();
            iter.prev().unwrap();
            assert!(!iter.valid());
        }
    }

    /// A memtable into which others write behind the first entry that a seek finds.
    struct Written<'a> {
        memtable: &'a Memtable,
        iter: MemtableIter<'a>,
        after_seek: VecDeque<Vec<(&'static [u8], u64)>>,
    }

    fn insert(memtable: &Memtable, key: &'static [u8], sequence: u64) {
        let length = u32::try_from(key.len()).unwrap();
        let record = Record::new(key.into(), length, length);
        memtable.insert(Sequence(sequence), EntryKind::Value, record);
    }

    impl InternalIterator for Written<'_> {
        fn valid(&self) -> bool {
            self.iter.valid()
        }
        fn seek_to_first(&mut self) -> Result<()> {
            self.iter.seek_to_first()
        }
        fn seek_to_last(&mut self) -> Result<()> {
            self.iter.seek_to_last()
        }
        fn seek(&mut self, target: &[u8]) -> Result<()> {
            self.iter.seek(target)?;
            for (key, sequence) in self.after_seek.pop_front().unwrap_or_default() {
                insert(self.memtable, key, sequence);
            }
            Ok(())
        }
        fn next(&mut self) -> Result<()> {
            self.iter.next()
        }
        fn prev(&mut self) -> Result<()> {
            self.iter.prev()
        }
        fn key(&self) -> &[u8] {
            self.iter.key()
        }
        fn value(&self) -> &[u8] {
            self.iter.value()
        }
    }

    #[test]
    fn what_is_written_while_it_turns_round_is_not_before_where_it_stood() {
        // At the end of the memtable, and between two of its entries.
        for last in [None, Some(b"z")] {
            let memtable = Memtable::new();
            insert(&memtable, b"a", 9);
            last.into_iter().for_each(|key| insert(&memtable, key, 8));
            let written = Written {
                memtable: &memtable,
                iter: memtable.iter(),
                after_seek: [vec![], vec![(b"x".as_slice(), 100), (b"y", 101)]].into(),
            };
            let table = VecIter::new(vec![entry(b"b", 5), entry(b"m", 6)]);
            let mut iter = MergeIter::new(vec![Box::new(written), Box::new(table)]);
            iter.seek(&entry(b"m", 6).0).unwrap();
            assert_eq!(iter.key(), entry(b"m", 6).0);
            iter.prev().unwrap();
            assert_eq!(iter.key(), entry(b"b", 5).0);
            iter.prev().unwrap();
            assert_eq!(iter.key(), entry(b"a", 9).0);
            iter.prev().unwrap();
            assert!(!iter.valid());
        }
    }

    proptest! {
        #[test]
        fn it_walks_like_one_sorted_list(
            entries in prop::collection::btree_map((0u8..20, 0u64..50), 0usize..5, 0..60),
            moves in prop::collection::vec(any::<Move>(), 0..60),
        ) {
            let mut runs = vec![Vec::new(); 5];
            let mut all = Vec::new();
            for ((user, sequence), run) in entries {
                let entry = entry(&[user], sequence);
                runs[run].push(entry.clone());
                all.push(entry);
            }
            all.sort_by(|a, b| key::compare(&a.0, &b.0));
            for run in &mut runs {
                run.sort_by(|a, b| key::compare(&a.0, &b.0));
            }
            check_against_model(&mut merged(&runs), &all, &moves)?;
        }
    }
}
