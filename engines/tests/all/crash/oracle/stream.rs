//! One stream of operations, and the laws that what is found of it must keep.

use std::collections::HashMap;

use super::{Operation, text};

/// One operation, or one change of a batch that is not atomic.
pub(super) struct Unit {
    pub(super) operation: usize,
    pub(super) changes: Vec<(usize, Found)>,
}

/// What a key holds: nothing, or the value of a change.
pub(super) type Found = Option<Change>;
pub(super) type Change = usize;

#[derive(Default)]
pub(super) struct Stream {
    pub(super) names: Vec<Vec<u8>>,
    units: Vec<Unit>,
    /// For each key, the units that changed it and what they left.
    versions: Vec<Vec<(usize, Found)>>,
    /// What the keys hold after the first `applied` units.
    model: Vec<Found>,
    applied: usize,
}

/// What one crash means for the operations of one stream.
pub(super) struct View<'a> {
    pub(super) operations: &'a [Operation],
    pub(super) covered: &'a [(usize, usize)],
    pub(super) cut: usize,
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
    /// The index of a new key.
    pub(super) fn add_key(&mut self, name: Vec<u8>) -> usize {
        self.names.push(name);
        self.versions.push(Vec::new());
        self.model.push(None);
        self.names.len() - 1
    }

    pub(super) fn push(&mut self, unit: Unit) {
        for (key, found) in &unit.changes {
            self.versions[*key].push((self.units.len(), *found));
        }
        self.units.push(unit);
    }

    pub(super) fn is_prefix(&mut self, found: &[Found], view: &View<'_>) -> Result<(), String> {
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

    pub(super) fn each_key(&self, found: &[Found], view: &View<'_>) -> Result<(), String> {
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

    pub(super) fn no_hole_in_a_log(&self, found: &[Found], view: &View<'_>) -> Result<(), String> {
        let log_of = |unit: usize| view.operations[self.units[unit].operation].log;
        let (mut newest_kept, mut oldest_lost) = (HashMap::new(), HashMap::new());
        for (key, versions) in self.versions.iter().enumerate() {
            let possible: Vec<_> = (0..versions.len())
                // Deleting what is not there may leave no trace to find.
                .filter(|at| versions[*at].1.is_some() || *at > 0 && versions[at - 1].1.is_some())
                .map(|at| versions[at])
                .filter(|(unit, _)| view.is_possible(&self.units[*unit]))
                .collect();
            let at = possible.iter().rposition(|(_, version)| *version == found[key]);
            // Nothing is found after any of the deletions, or because all is lost: that says only
            // that the puts behind the last deletion are lost.
            if let Some(at) = at.filter(|_| found[key].is_some()) {
                let unit = possible[at].0;
                let newest = newest_kept.entry(log_of(unit)).or_insert(unit);
                *newest = unit.max(*newest);
            }
            for (unit, _) in &possible[at.map_or(0, |at| at + 1)..] {
                let oldest = oldest_lost.entry(log_of(*unit)).or_insert(*unit);
                *oldest = (*unit).min(*oldest);
            }
        }
        let hole = newest_kept.into_iter().find_map(|(log, kept)| {
            let lost = oldest_lost.get(&Some(log?)).filter(|lost| **lost < kept)?;
            Some(format!("a hole in {log:?}: unit {kept} is there, unit {lost} is not"))
        });
        hole.map_or(Ok(()), Err)
    }

    pub(super) fn no_torn_batch(&self, found: &[Found], view: &View<'_>) -> Result<(), String> {
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
