//! What may be found after a crash, told from what was asked of the engine and when it answered.
//!
//! The threads of a workload write keys of their own: each thread's operations are a stream, in
//! order. Every value is unlike all others, so what is found tells which operation left it.
//! Positions are marks in the one order of all file calls (see `SimFs::mark`).

mod stream;

use std::collections::{BTreeMap, HashMap};

use engines::Durability;
use engines::fs::sim::{CrashModel, FileNumber};

use stream::{Change, Found, Stream, Unit, View};

/// The records that an engine holds.
pub(crate) type State = BTreeMap<Vec<u8>, Vec<u8>>;

/// What was done, and when.
#[derive(Debug, Clone)]
pub(crate) struct History {
    pub(crate) durability: Durability,
    pub(crate) atomic_batch: bool,
    pub(crate) streams: Vec<Vec<Operation>>,
    pub(crate) barriers: Vec<Barrier>,
}

/// A put, a deletion or a batch.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) changes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Which opening of the engine it was made through.
    pub(crate) phase: usize,
    pub(crate) issued: usize,
    /// `None` if it failed: it may have happened or not.
    pub(crate) acked: Option<usize>,
    /// The log file it was written to, where that is known.
    pub(crate) log: Option<FileNumber>,
}

/// A call that makes everything acknowledged before it was issued survive what `level` says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Barrier {
    pub(crate) level: Durability,
    /// The phase from which on it covers: what an engine held that failed is not its business.
    pub(crate) since: usize,
    pub(crate) issued: usize,
    pub(crate) acked: usize,
}

/// How much is asked of what was not yet guaranteed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Law {
    /// Each stream is as after some prefix of its operations: no hole.
    Prefix,
    /// Each key is as after one of its operations; a batch is there as a whole or not at all; and
    /// no operation is there that is newer than a lost one in the same log.
    EachKey,
}

impl Law {
    /// The law that engines keep under a model. Pages and names lost at random may well leave
    /// the newer one of two logs, of which nothing was promised yet.
    pub(crate) fn of(model: CrashModel) -> Self {
        match model {
            CrashModel::RandomSubset { .. } => Self::EachKey,
            _ => Self::Prefix,
        }
    }
}

/// Judges what was found.
pub(crate) struct Oracle {
    history: History,
    keys: HashMap<Vec<u8>, (usize, usize)>,
    /// The change that wrote a value.
    writers: HashMap<Vec<u8>, Change>,
    streams: Vec<Stream>,
}

impl Oracle {
    pub(crate) fn new(history: History) -> Self {
        let mut oracle =
            Self { keys: HashMap::new(), writers: HashMap::new(), streams: Vec::new(), history };
        for stream in 0..oracle.history.streams.len() {
            let built = oracle.index(stream);
            oracle.streams.push(built);
        }
        oracle
    }

    /// Every key that was ever written.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.keys().map(Vec::as_slice)
    }

    /// Whether `state` may be found after a crash at `cut`.
    pub(crate) fn check(
        &mut self,
        state: &State,
        cut: usize,
        model: CrashModel,
        law: Law,
    ) -> Result<(), String> {
        let found = self.identify(state)?;
        let covered = self.covered(cut, model);
        for (index, stream) in self.streams.iter_mut().enumerate() {
            let view = View { operations: &self.history.streams[index], covered: &covered, cut };
            let verdict = match law {
                Law::Prefix => stream.is_prefix(&found[index], &view),
                Law::EachKey => stream
                    .each_key(&found[index], &view)
                    .and_then(|()| stream.no_hole_in_a_log(&found[index], &view))
                    .and_then(|()| {
                        let atomic = self.history.atomic_batch;
                        if atomic { stream.no_torn_batch(&found[index], &view) } else { Ok(()) }
                    }),
            };
            verdict.map_err(|problem| format!("stream {index}: {problem}"))?;
        }
        Ok(())
    }

    fn index(&mut self, number: usize) -> Stream {
        let mut stream = Stream::default();
        for (operation, done) in self.history.streams[number].iter().enumerate() {
            let mut unit = Unit { operation, changes: Vec::new() };
            for (key, value) in &done.changes {
                let (_, key) = *self
                    .keys
                    .entry(key.clone())
                    .or_insert_with(|| (number, stream.add_key(key.clone())));
                let change = self.writers.len();
                let found = value.as_ref().map(|value| {
                    assert!(self.writers.insert(value.clone(), change).is_none(), "values differ");
                    change
                });
                if !self.history.atomic_batch && !unit.changes.is_empty() {
                    stream.push(std::mem::replace(
                        &mut unit,
                        Unit { operation, changes: Vec::new() },
                    ));
                }
                unit.changes.retain(|(changed, _)| *changed != key);
                unit.changes.push((key, found));
            }
            stream.push(unit);
        }
        stream
    }

    /// Tells for each key of each stream which change it holds.
    fn identify(&self, state: &State) -> Result<Vec<Vec<Found>>, String> {
        let mut found: Vec<Vec<Found>> =
            self.streams.iter().map(|stream| vec![None; stream.names.len()]).collect();
        for (key, value) in state {
            let Some((stream, index)) = self.keys.get(key) else {
                return Err(format!("key {} was never written", text(key)));
            };
            let Some(change) = self.writers.get(value) else {
                return Err(format!(
                    "key {} holds a value that was never written: {} ({} bytes)",
                    text(key),
                    text(value),
                    value.len()
                ));
            };
            found[*stream][*index] = Some(*change);
        }
        Ok(found)
    }

    /// Phases and marks: operations survive that were made in that phase or later, and were
    /// acknowledged up to that mark.
    fn covered(&self, cut: usize, model: CrashModel) -> Vec<(usize, usize)> {
        let (needed, until) = match model {
            CrashModel::KeepAll => (Durability::Process, cut),
            // The last call did not return.
            CrashModel::TornWrite { .. } => (Durability::Process, cut.saturating_sub(1)),
            CrashModel::DropUnsynced | CrashModel::RandomSubset { .. } => (Durability::Power, cut),
        };
        if self.history.durability >= needed {
            return vec![(0, until)];
        }
        let mut covered = BTreeMap::new();
        for barrier in &self.history.barriers {
            if barrier.level >= needed && barrier.acked <= until {
                let end = covered.entry(barrier.since).or_insert(0);
                *end = barrier.issued.max(*end);
            }
        }
        covered.into_iter().collect()
    }
}

/// The start of some bytes, for people.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(24)]).into_owned()
}

#[cfg(test)]
mod tests;
