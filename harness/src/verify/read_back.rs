//! Reads every record back and compares it with what it must be.

use std::ops::{ControlFlow, Range};
use std::time::Instant;

use engines::{Engine, Error};

use super::final_state::FinalState;
use crate::results::Verified;
use crate::run::cut::fair_share;
use crate::run::rounds::{Clocked, Rounds, Worker};
use crate::run::traffic::Done;
use crate::workload::job::{Job, Records};

/// Which records, by how many threads.
pub(crate) struct ReadBack<'a> {
    pub(crate) engine: &'a dyn Engine,
    pub(crate) job: &'a dyn Job,
    /// What was executed of each traffic phase.
    pub(crate) executed: &'a [Done],
    pub(crate) threads: u32,
}

/// Records of one thread in one round.
const SHARE: u64 = 1_024;

impl ReadBack<'_> {
    /// Gets every record by its key, in the order of their numbers; an engine without `get` is
    /// folded over instead.
    pub(crate) fn run(
        &self,
        progress: impl Fn(u64) + Sync,
    ) -> engines::Result<(Clocked, Verified)> {
        let mut clocked = Clocked::default();
        let mut verified = Verified::default();
        let count = self.job.record_count();
        let at_once = FinalState::records_a_pass(self.executed);
        let mut start = 0;
        while start < count {
            let range = start..count.min(start.saturating_add(at_once));
            let began = Instant::now();
            let state = FinalState::replay(self.job, self.executed, range.clone());
            clocked.wall += began.elapsed();
            let (took, found) = match self.get(&state, range.clone(), &progress) {
                Err(Error::Unsupported { .. }) => self.fold(&state, range.clone())?,
                other => other?,
            };
            clocked.running += took.running;
            clocked.wall += took.wall;
            clocked.items += took.items;
            verified.merge(found);
            start = range.end;
        }
        Ok((clocked, verified))
    }

    fn get(
        &self,
        state: &FinalState,
        range: Range<u64>,
        progress: &(impl Fn(u64) + Sync),
    ) -> engines::Result<(Clocked, Verified)> {
        let items = range.end - range.start;
        let share = fair_share(items, self.threads, 1, SHARE);
        let threads = self.threads;
        let rounds = Rounds { items, threads, share, limit: None, each_sees_all: false };
        let reader = |_| Reader {
            engine: self.engine,
            records: self.job.records(),
            state,
            first: range.start,
            expected: Vec::new(),
            bytes: Vec::new(),
            found: Verified::default(),
        };
        let (clocked, readers) = rounds.run(reader, |done| progress(range.start + done))?;
        let mut verified = Verified::default();
        readers.iter().for_each(|reader| verified.merge(reader.found));
        Ok((clocked, verified))
    }

    /// Visits all records and looks at those of `range`.
    fn fold(&self, state: &FinalState, range: Range<u64>) -> engines::Result<(Clocked, Verified)> {
        let began = Instant::now();
        let records = self.job.records();
        let mut seen = Bits::new(range.end - range.start);
        let (mut verified, mut expected) = (Verified::default(), Vec::new());
        self.engine.fold(&mut |key, value| {
            let number = records.record_of(key).filter(|number| range.contains(number));
            let number = number.filter(|number| state.version(*number).is_some());
            if let Some(number) = number.filter(|number| seen.set(number - range.start)) {
                let mut versions =
                    [state.version(number)].into_iter().chain(state.alternatives(number));
                let right = versions
                    .any(|version| is_version(records, number, version, value, &mut expected));
                verified.note(right, key, value);
            }
            ControlFlow::Continue(())
        })?;
        for number in range.clone().filter(|&number| state.version(number).is_some()) {
            let may_be_absent = state.alternatives(number).any(|version| version.is_none());
            verified.lost += u64::from(!seen.get(number - range.start) && !may_be_absent);
        }
        let wall = began.elapsed();
        Ok((Clocked { running: wall, wall, items: range.end - range.start }, verified))
    }
}

/// Whether `value` is what `record` has at `version`.
fn is_version(
    records: &dyn Records,
    record: u64,
    version: Option<u64>,
    value: &[u8],
    buffer: &mut Vec<u8>,
) -> bool {
    let Some(version) = version else { return false };
    buffer.clear();
    records.write_value(record, version, buffer);
    buffer == value
}

impl Verified {
    fn note(&mut self, right: bool, key: &[u8], value: &[u8]) {
        *(if right { &mut self.read_back } else { &mut self.wrong }) += 1;
        self.live_bytes += (key.len() + value.len()) as u64;
    }
}

/// The records that are there beyond those that were read back: never written, or there twice.
/// `None` if the engine cannot be folded over.
pub(crate) fn count_extra(
    engine: &dyn Engine,
    verified: &Verified,
) -> engines::Result<Option<u64>> {
    let mut count = 0u64;
    let counted = engine.fold(&mut |_, _| {
        count += 1;
        ControlFlow::Continue(())
    });
    match counted {
        Ok(()) => Ok(Some(count.saturating_sub(verified.read_back + verified.wrong))),
        Err(Error::Unsupported { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

struct Reader<'a> {
    engine: &'a dyn Engine,
    records: &'a dyn Records,
    state: &'a FinalState,
    /// The record that item 0 of the rounds is.
    first: u64,
    expected: Vec<Expected>,
    bytes: Vec<u8>,
    found: Verified,
}

/// A record that should be there: its key, and behind it its value, among the bytes.
struct Expected {
    record: u64,
    key: Range<usize>,
    value_end: usize,
}

impl Worker for Reader<'_> {
    fn prepare(&mut self, range: Range<u64>, _: u64) -> engines::Result<()> {
        self.expected.clear();
        self.bytes.clear();
        for record in self.first + range.start..self.first + range.end {
            let Some(version) = self.state.version(record) else { continue };
            let start = self.bytes.len();
            self.records.write_key(record, &mut self.bytes);
            let key = start..self.bytes.len();
            self.records.write_value(record, version, &mut self.bytes);
            self.expected.push(Expected { record, key, value_end: self.bytes.len() });
        }
        Ok(())
    }

    fn work(&mut self, _: u64) -> engines::Result<()> {
        let (records, state) = (self.records, self.state);
        for Expected { record, key, value_end } in &self.expected {
            let expected = &self.bytes[key.end..*value_end];
            let key = &self.bytes[key.clone()];
            let found = &mut self.found;
            let was_there = self.engine.get(key, &mut |value| {
                let right = value == expected
                    || state.alternatives(*record).any(|version| {
                        is_version(records, *record, version, value, &mut Vec::new())
                    });
                found.note(right, key, value);
            })?;
            if !was_there && !state.alternatives(*record).any(|version| version.is_none()) {
                self.found.lost += 1;
            }
        }
        Ok(())
    }
}

/// One bit for each record.
struct Bits(Vec<u64>);

impl Bits {
    fn new(count: u64) -> Self {
        let words = usize::try_from(count.div_ceil(64)).unwrap_or(usize::MAX);
        Self(vec![0; words])
    }

    /// Sets a bit; false if it was set already.
    fn set(&mut self, number: u64) -> bool {
        let word = usize::try_from(number / 64).ok().and_then(|at| self.0.get_mut(at));
        let Some(word) = word else { return false };
        let bit = 1 << (number % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    fn get(&self, number: u64) -> bool {
        let word = usize::try_from(number / 64).ok().and_then(|at| self.0.get(at));
        word.is_some_and(|word| word & (1 << (number % 64)) != 0)
    }
}
