//! What may be found after a crash, told from what was asked of the engine and when it answered.
//!
//! The threads of a workload write keys of their own: each thread's operations are a stream, in
//! order. Every value is unlike all others, so what is found tells which operation left it.
//! Positions are marks in the one order of all file calls (see `SimFs::mark`).

use std::collections::{BTreeMap, HashMap};

use engines::Durability;
use engines::fs::sim::CrashModel;

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
    /// Each key is as after one of its operations; a batch is there as a whole or not at all.
    EachKey,
}

impl Law {
    /// The law that engines keep under a model. Pages and names lost at random may well leave
    /// holes among the writes that nobody was promised.
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

/// One operation, or one change of a batch that is not atomic.
struct Unit {
    operation: usize,
    changes: Vec<(usize, Found)>,
}

/// What a key holds: nothing, or the value of a change.
type Found = Option<Change>;
type Change = usize;

struct Stream {
    names: Vec<Vec<u8>>,
    units: Vec<Unit>,
    /// For each key, the units that changed it and what they left.
    versions: Vec<Vec<(usize, Found)>>,
    /// What the keys hold after the first `applied` units.
    model: Vec<Found>,
    applied: usize,
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
                Law::EachKey => stream.each_key(&found[index], &view).and_then(|()| {
                    let atomic = self.history.atomic_batch;
                    if atomic { stream.no_torn_batch(&found[index], &view) } else { Ok(()) }
                }),
            };
            verdict.map_err(|problem| format!("stream {index}: {problem}"))?;
        }
        Ok(())
    }

    fn index(&mut self, number: usize) -> Stream {
        let mut stream = Stream {
            names: Vec::new(),
            units: Vec::new(),
            versions: Vec::new(),
            model: Vec::new(),
            applied: 0,
        };
        for (operation, done) in self.history.streams[number].iter().enumerate() {
            let mut unit = Unit { operation, changes: Vec::new() };
            for (key, value) in &done.changes {
                let (_, key) = *self.keys.entry(key.clone()).or_insert_with(|| {
                    stream.names.push(key.clone());
                    stream.versions.push(Vec::new());
                    (number, stream.names.len() - 1)
                });
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
        stream.model = vec![None; stream.names.len()];
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

/// What one crash means for the operations of one stream.
struct View<'a> {
    operations: &'a [Operation],
    covered: &'a [(usize, usize)],
    cut: usize,
}

impl View<'_> {
    fn is_guaranteed(&self, unit: &Unit) -> bool {
        let Operation { phase, acked, .. } = &self.operations[unit.operation];
        acked.is_some_and(|acked| {
            self.covered.iter().any(|(since, end)| since <= phase && acked <= *end)
        })
    }

    /// Whether it began before the crash, so that it may have left something. One that needed no
    /// file call, such as deleting what is not there, may be guaranteed as soon as it is issued.
    fn is_possible(&self, unit: &Unit) -> bool {
        self.operations[unit.operation].issued < self.cut || self.is_guaranteed(unit)
    }
}

impl Stream {
    fn push(&mut self, unit: Unit) {
        for (key, found) in &unit.changes {
            self.versions[*key].push((self.units.len(), *found));
        }
        self.units.push(unit);
    }

    fn is_prefix(&mut self, found: &[Found], view: &View<'_>) -> Result<(), String> {
        let floor = self.units.partition_point(|unit| view.is_guaranteed(unit));
        let ceiling = self.units.partition_point(|unit| view.is_possible(unit));
        self.rewind_to(floor);
        let mut model = self.model.clone();
        let mut differing =
            model.iter().zip(found).filter(|(expected, found)| expected != found).count();
        for unit in &self.units[floor..ceiling] {
            if differing == 0 {
                return Ok(());
            }
            for (key, after) in &unit.changes {
                differing -= usize::from(model[*key] != found[*key]);
                model[*key] = *after;
                differing += usize::from(model[*key] != found[*key]);
            }
        }
        if differing == 0 {
            return Ok(());
        }
        Err(format!(
            "no prefix between {floor} and {ceiling} units: {}",
            self.differences(&model, found)
        ))
    }

    /// Brings the kept model to the first `count` units.
    fn rewind_to(&mut self, count: usize) {
        if count < self.applied {
            self.model.fill(None);
            self.applied = 0;
        }
        for unit in &self.units[self.applied..count] {
            for (key, found) in &unit.changes {
                self.model[*key] = *found;
            }
        }
        self.applied = count;
    }

    /// Up to four keys that differ from the state after the guaranteed units and after all.
    fn differences(&self, last: &[Found], found: &[Found]) -> String {
        let keys = (0..found.len())
            .filter(|key| found[*key] != self.model[*key] || found[*key] != last[*key]);
        let shown: Vec<_> = keys
            .take(4)
            .map(|key| {
                format!(
                    "{} holds {}, {} was guaranteed, {} was last",
                    text(&self.names[key]),
                    self.unit_of(key, found[key]),
                    self.unit_of(key, self.model[key]),
                    self.unit_of(key, last[key])
                )
            })
            .collect();
        shown.join("; ")
    }

    fn unit_of(&self, key: usize, found: Found) -> String {
        match found {
            None => "nothing".to_owned(),
            Some(_) => match self.versions[key].iter().find(|(_, version)| *version == found) {
                Some((unit, _)) => format!("unit {unit}"),
                None => "the value of another key, or of within a batch".to_owned(),
            },
        }
    }

    fn each_key(&self, found: &[Found], view: &View<'_>) -> Result<(), String> {
        for (key, versions) in self.versions.iter().enumerate() {
            let floor =
                versions.iter().rposition(|(unit, _)| view.is_guaranteed(&self.units[*unit]));
            let mut allowed = versions[floor.unwrap_or(0)..]
                .iter()
                .filter(|(unit, _)| view.is_possible(&self.units[*unit]))
                .map(|(_, version)| *version)
                .chain(floor.is_none().then_some(None));
            if !allowed.any(|version| version == found[key]) {
                return Err(format!(
                    "key {} holds {}; guaranteed was {}",
                    text(&self.names[key]),
                    self.unit_of(key, found[key]),
                    floor.map_or("nothing".to_owned(), |at| {
                        let (unit, version) = versions[at];
                        let what = if version.is_some() { "put" } else { "deletion" };
                        format!("the {what} of unit {unit}")
                    })
                ));
            }
        }
        Ok(())
    }

    fn no_torn_batch(&self, found: &[Found], view: &View<'_>) -> Result<(), String> {
        let batches = self.units.iter().enumerate().filter(|(_, unit)| unit.changes.len() > 1);
        for (number, unit) in batches {
            let shown =
                unit.changes.iter().find(|(key, left)| left.is_some() && found[*key] == *left);
            let missing = unit
                .changes
                .iter()
                .find(|(key, _)| self.is_before(*key, found[*key], number, view));
            if let (Some((shown, _)), Some((missing, _))) = (shown, missing) {
                return Err(format!(
                    "half a batch, unit {number}: {} has its change, {} does not",
                    text(&self.names[*shown]),
                    text(&self.names[*missing])
                ));
            }
        }
        Ok(())
    }

    /// Whether what the key holds is surely from before `unit`.
    fn is_before(&self, key: usize, found: Found, unit: usize, view: &View<'_>) -> bool {
        !self.versions[key].iter().any(|(at, version)| {
            *at >= unit && *version == found && view.is_possible(&self.units[*at])
        })
    }
}

/// The start of some bytes, for people.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(24)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEP: CrashModel = CrashModel::KeepAll;
    const DROP: CrashModel = CrashModel::DropUnsynced;

    /// Operation `n` is issued at mark 10·n and acknowledged at 10·n + 5.
    fn history(durability: Durability, operations: &[&[(&str, Option<&str>)]]) -> History {
        let operations = operations.iter().enumerate().map(|(number, changes)| Operation {
            changes: changes
                .iter()
                .map(|(key, value)| ((*key).into(), value.map(|value| value.as_bytes().to_vec())))
                .collect(),
            phase: 0,
            issued: 10 * number,
            acked: Some(10 * number + 5),
        });
        let streams = vec![operations.collect()];
        History { durability, atomic_batch: true, streams, barriers: Vec::new() }
    }

    fn state(records: &[(&str, &str)]) -> State {
        records.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
    }

    fn verdict(history: &History, records: &[(&str, &str)], cut: usize, law: Law) -> bool {
        let model = if law == Law::Prefix { KEEP } else { DROP };
        Oracle::new(history.clone()).check(&state(records), cut, model, law).is_ok()
    }

    fn three() -> [&'static [(&'static str, Option<&'static str>)]; 3] {
        [&[("a", Some("1"))], &[("b", Some("2"))], &[("a", None)]]
    }

    #[test]
    fn acknowledged_operations_must_be_there_and_those_not_issued_must_not() {
        let history = history(Durability::Process, &three());
        let outcomes: [&[(&str, &str)]; 4] =
            [&[], &[("a", "1")], &[("a", "1"), ("b", "2")], &[("b", "2")]];
        let allowed = |cut| outcomes.map(|records| verdict(&history, records, cut, Law::Prefix));
        assert_eq!(allowed(0), [true, false, false, false]);
        assert_eq!(allowed(1), [true, true, false, false]);
        assert_eq!(allowed(5), [false, true, false, false]);
        assert_eq!(allowed(12), [false, true, true, false]);
        assert_eq!(allowed(24), [false, false, true, true]);
        assert_eq!(allowed(25), [false, false, false, true]);
    }

    #[test]
    fn a_barrier_covers_what_was_acknowledged_before_it_was_issued() {
        let mut history = history(Durability::Process, &three());
        let check = |history: &History, records: &[(&str, &str)], cut| {
            Oracle::new(history.clone()).check(&state(records), cut, DROP, Law::Prefix).is_ok()
        };
        assert!(check(&history, &[], 100));
        history.barriers.push(Barrier {
            level: Durability::Process,
            since: 0,
            issued: 7,
            acked: 9,
        });
        assert!(check(&history, &[], 100), "only against the death of the process");
        history.barriers.push(Barrier { level: Durability::Power, since: 0, issued: 7, acked: 9 });
        assert!(check(&history, &[], 8));
        assert!(!check(&history, &[], 9));
        assert!(check(&history, &[("a", "1")], 9));
        assert!(!check(&history, &[("b", "2")], 12), "a hole");
        assert!(check(&history, &[("b", "2")], 24));
        history.barriers[1].since = 1;
        assert!(check(&history, &[], 100));
    }

    #[test]
    fn the_law_of_each_key_forgives_holes_but_not_resurrection_nor_foreign_bytes() {
        let mut history = history(Durability::Process, &three());
        assert!(!verdict(&history, &[("b", "2")], 15, Law::Prefix));
        assert!(verdict(&history, &[("b", "2")], 15, Law::EachKey));
        assert!(!verdict(&history, &[("b", "1")], 15, Law::EachKey));
        assert!(!verdict(&history, &[("b", "3")], 15, Law::EachKey));
        assert!(!verdict(&history, &[("c", "1")], 15, Law::EachKey));
        history.barriers.push(Barrier {
            level: Durability::Power,
            since: 0,
            issued: 30,
            acked: 31,
        });
        assert!(verdict(&history, &[("b", "2")], 31, Law::EachKey));
        assert!(!verdict(&history, &[("b", "2"), ("a", "1")], 31, Law::EachKey), "deleted");
        assert!(!verdict(&history, &[], 31, Law::EachKey), "lost");
    }

    #[test]
    fn half_a_batch_is_noticed_unless_batches_are_not_atomic() {
        let batch: [&[(&str, Option<&str>)]; 2] = [
            &[("a", Some("0"))],
            &[("a", None), ("b", Some("1")), ("c", Some("2")), ("c", Some("3"))],
        ];
        let mut history = history(Durability::Buffered, &batch);
        let halves: [&[(&str, &str)]; 3] =
            [&[("a", "0"), ("b", "1")], &[("b", "1")], &[("b", "1"), ("c", "2")]];
        for half in halves {
            for law in [Law::Prefix, Law::EachKey] {
                assert!(!verdict(&history, half, 15, law), "{half:?} {law:?}");
            }
        }
        for law in [Law::Prefix, Law::EachKey] {
            assert!(verdict(&history, &[("b", "1"), ("c", "3")], 15, law));
            assert!(verdict(&history, &[("a", "0")], 15, law));
        }
        history.atomic_batch = false;
        assert!(!verdict(&history, halves[0], 15, Law::Prefix), "a hole within the batch");
        assert!(verdict(&history, halves[1], 15, Law::Prefix));
        assert!(verdict(&history, halves[2], 15, Law::Prefix));
    }

    #[test]
    fn a_failed_operation_may_have_happened_until_a_later_one_of_its_key_is_guaranteed() {
        let operations: [&[(&str, Option<&str>)]; 3] =
            [&[("a", Some("1"))], &[("a", Some("2"))], &[("a", Some("3"))]];
        let mut history = history(Durability::Power, &operations);
        history.streams[0][1].acked = None;
        assert!(verdict(&history, &[("a", "1")], 20, Law::EachKey));
        assert!(verdict(&history, &[("a", "2")], 20, Law::EachKey));
        assert!(!verdict(&history, &[], 20, Law::EachKey));
        assert!(!verdict(&history, &[("a", "2")], 25, Law::EachKey));
        assert!(verdict(&history, &[("a", "3")], 25, Law::EachKey));
    }
}
