//! What every record must be in the end: found by going through the operations once more, without
//! an engine.
//!
//! A run may have any number of records, so they are taken in parts, each with a pass of its own
//! over the operations. Where several threads wrote one record at a time that nothing orders, any
//! of their last writes may be the one that stayed.

use std::collections::HashMap;
use std::ops::Range;

use crate::run::cut::Cut;
use crate::run::traffic::Done;
use crate::workload::job::{Job, Stream, Traffic, Work};
use crate::workload::op::{Kind, Op};

/// The records of one pass: 8 bytes each are kept.
const RECORDS_A_PASS: u64 = 4 << 20;

/// The same where each may have been written by several threads at a time: of each up to 150 bytes
/// are kept.
const UNORDERED_A_PASS: u64 = 1 << 19;

/// A record that is not there. No workload has so many versions.
const ABSENT: u64 = u64::MAX;

/// A record that was not written. Neither has one so many.
const UNTOUCHED: u64 = ABSENT - 1;

/// The records of a range, after all operations.
pub(crate) struct FinalState {
    range: Range<u64>,
    versions: Vec<u64>,
    /// Other versions that the record may have instead.
    rivals: HashMap<u64, Vec<u64>>,
}

impl FinalState {
    /// The records of one pass over what was executed.
    pub(crate) fn records_a_pass(executed: &[Done]) -> u64 {
        let is_unordered =
            |done: &Done| matches!(done.cut, Cut::Paced { .. }) && !done.cut.is_ordered();
        if executed.iter().any(is_unordered) { UNORDERED_A_PASS } else { RECORDS_A_PASS }
    }

    /// Goes through the operations that were executed: those of the job's traffic phases, in order,
    /// each with the steps that were done and how they were shared.
    pub(crate) fn replay(job: &dyn Job, executed: &[Done], range: Range<u64>) -> Self {
        let count = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        let mut state = Self { range, versions: vec![ABSENT; count], rivals: HashMap::new() };
        let mut executed = executed.iter();
        for phase in job.phases() {
            match &phase.work {
                Work::Traffic(traffic) => {
                    let Some(done) = executed.next() else { break };
                    state.go_through(traffic, done.steps, done.cut);
                    if let Some(stream) = &traffic.background {
                        state.go_straight(stream(), done.steps_beside, |step| step);
                    }
                }
                Work::Anew => {
                    state.versions.fill(ABSENT);
                    state.rivals.clear();
                }
                _ => {}
            }
        }
        state
    }

    /// The version that `record` has, or one of them; `None` if it cannot be there, or is not in
    /// range.
    pub(crate) fn version(&self, record: u64) -> Option<u64> {
        let at = usize::try_from(record.checked_sub(self.range.start)?).ok()?;
        self.versions.get(at).copied().filter(|&version| version != ABSENT)
    }

    /// What the record may be instead: other versions, or absent (`None`).
    pub(crate) fn alternatives(&self, record: u64) -> impl Iterator<Item = Option<u64>> {
        let rivals = self.rivals.get(&record).into_iter().flatten();
        rivals.map(|&version| (version != ABSENT).then_some(version))
    }

    fn go_through(&mut self, traffic: &Traffic<'_>, steps: u64, cut: Cut) {
        match cut {
            _ if cut.is_ordered() => {
                self.go_straight((traffic.stream)(), steps, |step| cut.settled(step, step));
            }
            Cut::Rounds(rounds) => {
                let mut streams = streams(traffic, rounds.threads);
                for start in rounds.starts().take_while(|&start| start < steps) {
                    let mut round = Unordered::default();
                    for (thread, stream) in (0..).zip(&mut streams) {
                        let part = rounds.part(start, thread);
                        let settled = |step| cut.settled(step, start);
                        self.note(&mut round, thread, stream.as_mut(), part, settled);
                    }
                    self.settle(round);
                }
            }
            Cut::Paced { pace, batch, .. } => {
                let batch = u64::from(batch);
                let mut is_written = vec![false; self.versions.len()];
                for (thread, stream) in (0u64..).zip(streams(traffic, pace.threads)) {
                    let calls = (thread..steps.div_ceil(batch)).step_by(pace.threads as usize);
                    let part = calls.flat_map(|call| call * batch..steps.min((call + 1) * batch));
                    let last = self.last_writes(stream, part, |step| cut.settled(step, step));
                    self.join(&last, &mut is_written);
                }
            }
        }
    }

    /// The last write of one thread to each record of the range.
    fn last_writes(
        &self,
        mut stream: Box<dyn Stream + '_>,
        steps: impl Iterator<Item = u64>,
        settled: impl Fn(u64) -> u64,
    ) -> Vec<u64> {
        let mut last = vec![UNTOUCHED; self.versions.len()];
        let mut ops = Vec::new();
        for step in steps {
            ops.clear();
            stream.step(step, settled(step), &mut ops);
            for op in &ops {
                let at = op.record.checked_sub(self.range.start).map(usize::try_from);
                let slot = at.and_then(|at| last.get_mut(at.ok()?));
                if let (Some(slot), Some(version)) = (slot, written(op)) {
                    *slot = version;
                }
            }
        }
        last
    }

    /// Takes the last writes of a thread to those of the threads before it, of the same phase.
    fn join(&mut self, last: &[u64], is_written: &mut [bool]) {
        for ((record, &version), is_written) in (self.range.start..).zip(last).zip(is_written) {
            if version == UNTOUCHED {
                continue;
            }
            let mut versions = vec![version];
            if *is_written {
                versions.extend(self.rivals.remove(&record).into_iter().flatten());
                versions.push(self.version(record).unwrap_or(ABSENT));
            }
            *is_written = true;
            self.choose(record, versions);
        }
    }

    /// Every write to a record is after those before it.
    fn go_straight(
        &mut self,
        mut stream: Box<dyn Stream + '_>,
        steps: u64,
        settled: impl Fn(u64) -> u64,
    ) {
        let mut ops = Vec::new();
        for step in 0..steps {
            ops.clear();
            stream.step(step, settled(step), &mut ops);
            for op in &ops {
                if let Some(version) = written(op) {
                    self.set(op.record, version);
                }
            }
        }
    }

    /// Notes the last write of `thread` to each record of the range.
    fn note(
        &self,
        round: &mut Unordered,
        thread: u64,
        stream: &mut dyn Stream,
        steps: Range<u64>,
        settled: impl Fn(u64) -> u64,
    ) {
        let mut ops = Vec::new();
        for step in steps {
            ops.clear();
            stream.step(step, settled(step), &mut ops);
            for op in ops.iter().filter(|op| self.range.contains(&op.record)) {
                if let Some(version) = written(op) {
                    round.entry(op.record).or_default().insert(thread, version);
                }
            }
        }
    }

    fn settle(&mut self, round: Unordered) {
        for (record, last_writes) in round {
            self.choose(record, last_writes.into_values().collect());
        }
    }

    /// Any of these may be what the record has.
    fn choose(&mut self, record: u64, mut versions: Vec<u64>) {
        // Being absent is the last choice: a record that may be there is looked for.
        versions.sort_unstable_by_key(|version| version.wrapping_add(1));
        versions.dedup();
        if let Some(version) = versions.pop() {
            self.set(record, version);
        }
        if !versions.is_empty() {
            self.rivals.insert(record, versions);
        }
    }

    fn set(&mut self, record: u64, version: u64) {
        let Some(at) = record.checked_sub(self.range.start) else { return };
        let at = usize::try_from(at).ok();
        if let Some(slot) = at.and_then(|at| self.versions.get_mut(at)) {
            *slot = version;
            if !self.rivals.is_empty() {
                self.rivals.remove(&record);
            }
        }
    }
}

/// The last write of each thread to each record, between two moments at which all had finished.
type Unordered = HashMap<u64, HashMap<u64, u64>>;

fn streams<'a>(traffic: &Traffic<'a>, threads: u32) -> Vec<Box<dyn Stream + 'a>> {
    (0..threads).map(|_| (traffic.stream)()).collect()
}

/// The version that a record has after `op`, if the operation writes.
fn written(op: &Op) -> Option<u64> {
    match op.kind {
        kind if kind.puts() => Some(op.version),
        Kind::Delete => Some(ABSENT),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::rounds::Rounds;
    use crate::workload::job::{Phase, Records};

    /// Steps written down one by one.
    struct Written(Vec<Op>);

    impl Records for Written {
        fn write_key(&self, _: u64, _: &mut Vec<u8>) {}

        fn write_value(&self, _: u64, _: u64, _: &mut Vec<u8>) {}
    }

    impl Job for Written {
        fn records(&self) -> &dyn Records {
            self
        }

        fn record_count(&self) -> u64 {
            10
        }

        fn phases(&self) -> Vec<Phase<'_>> {
            let traffic = Traffic::new(self.0.len() as u64, 1, || {
                |step: u64, out: &mut Vec<Op>| {
                    out.extend(usize::try_from(step).ok().and_then(|step| self.0.get(step)));
                }
            });
            vec![Phase::traffic("all", traffic)]
        }
    }

    fn put(record: u64, version: u64) -> Op {
        Op::put(Kind::Update, record, version)
    }

    fn state(job: &Written, threads: u32, share: u64, range: Range<u64>) -> FinalState {
        let items = job.0.len() as u64;
        let rounds = Rounds { items, threads, share, limit: None, each_sees_all: false };
        FinalState::replay(job, &[done(items, Cut::Rounds(rounds))], range)
    }

    fn done(steps: u64, cut: Cut) -> Done {
        Done { steps, cut, steps_beside: 0 }
    }

    fn alternatives(state: &FinalState, record: u64) -> Vec<Option<u64>> {
        state.alternatives(record).collect()
    }

    #[test]
    fn for_one_thread_the_last_write_stays() {
        let job = Written(vec![
            put(1, 1),
            put(2, 2),
            put(1, 3),
            Op::read(2),
            Op::delete(2),
            put(3, 4),
            Op::delete(3),
            put(3, 5),
        ]);
        let all = state(&job, 1, 3, 0..10);
        let versions: Vec<_> = (0..10).map(|record| all.version(record)).collect();
        let mut expected = [None; 10];
        (expected[1], expected[3]) = (Some(3), Some(5));
        assert_eq!(versions, expected);
        assert!(alternatives(&all, 1).is_empty());
        // Taken in parts, it is the same.
        let part = state(&job, 1, 3, 3..10);
        assert_eq!((part.version(1), part.version(3), part.version(10)), (None, Some(5), None));
    }

    #[test]
    fn several_threads_leave_open_what_they_wrote_at_once() {
        // Two threads with two steps each a round: [1 1 | 1 2] [2 1 | 9 9].
        let job = Written(vec![
            put(1, 10),
            put(1, 11),
            put(1, 12),
            put(2, 13),
            put(2, 14),
            put(9, 15),
            put(9, 16),
            Op::delete(9),
        ]);
        let all = state(&job, 2, 2, 0..10);
        // The first thread's 10 was over when it wrote 11; which of 11 and 12 was last is open.
        assert_eq!((all.version(1), alternatives(&all, 1)), (Some(12), vec![Some(11)]));
        // Written in two rounds: the later one is last.
        assert_eq!((all.version(2), alternatives(&all, 2)), (Some(14), vec![]));
        // A deletion may be last, or not.
        assert_eq!((all.version(9), alternatives(&all, 9)), (Some(15), vec![None]));
        let later = Written(job.0.iter().copied().chain([put(1, 20)]).collect());
        let later = state(&later, 2, 2, 0..10);
        assert_eq!((later.version(1), alternatives(&later, 1)), (Some(20), vec![]));
    }

    /// A phase, an empty directory, and a phase with another stream beside it.
    struct Anew;

    impl Records for Anew {
        fn write_key(&self, _: u64, _: &mut Vec<u8>) {}

        fn write_value(&self, _: u64, _: u64, _: &mut Vec<u8>) {}
    }

    impl Job for Anew {
        fn records(&self) -> &dyn Records {
            self
        }

        fn record_count(&self) -> u64 {
            10
        }

        fn phases(&self) -> Vec<Phase<'_>> {
            let puts = |first: u64| {
                move || move |step: u64, out: &mut Vec<Op>| out.push(put(step, first + step))
            };
            vec![
                Phase::traffic("before", Traffic::new(6, 1, puts(100))),
                Phase { name: "empty".to_owned(), work: Work::Anew },
                Phase::traffic("after", Traffic::new(3, 1, puts(200)).beside(puts(300))),
            ]
        }
    }

    #[test]
    fn what_was_removed_is_gone_and_the_stream_beside_has_the_last_word() {
        for threads in [1, 2] {
            let rounds = Rounds { items: 6, threads, share: 1, limit: None, each_sees_all: false };
            let cut = Cut::Rounds(rounds);
            let after = Rounds { items: 3, ..rounds };
            let executed =
                [done(6, cut), Done { steps: 3, cut: Cut::Rounds(after), steps_beside: 2 }];
            let all = FinalState::replay(&Anew, &executed, 0..10);
            let versions: Vec<_> = (0..6).map(|record| all.version(record)).collect();
            let expected = [Some(300), Some(301), Some(202), None, None, None];
            assert_eq!(versions, expected);
            assert!((0..6).all(|record| alternatives(&all, record).is_empty()));
            // What left the second phase out did not do any of it.
            let executed = [done(6, cut), done(0, Cut::Rounds(after))];
            let none = FinalState::replay(&Anew, &executed, 0..10);
            assert!((0..10).all(|record| none.version(record).is_none()));
        }
    }

    #[test]
    fn in_an_open_loop_any_threads_last_write_may_stay() {
        let job = Written((0..9).map(|step| put(step % 2, step)).collect());
        let pace = crate::run::paced::Pace { calls: 9, threads: 3, each_sees_all: false };
        let cut = Cut::Paced { pace, rate: Some(1.0), batch: 1, steps: 9 };
        let all = FinalState::replay(&job, &[done(9, cut)], 0..10);
        // Thread 0 has steps 0 3 6, thread 1 has 1 4 7, thread 2 has 2 5 8.
        assert_eq!(all.version(0), Some(8));
        assert_eq!(alternatives(&all, 0), [Some(4), Some(6)]);
        assert_eq!(all.version(1), Some(7));
        assert_eq!(alternatives(&all, 1), [Some(3), Some(5)]);
        // What had not been executed when the time was up has not happened.
        let some = FinalState::replay(&job, &[done(2, cut)], 0..10);
        assert_eq!((some.version(0), some.version(1)), (Some(0), Some(1)));
    }

    #[test]
    fn a_record_of_an_open_loop_may_be_what_any_thread_left_there() {
        let op = |step: u64| match step % 5 {
            0 => Op::delete(step * 7 % 10),
            1 => Op::read(step % 10),
            _ => put(step * step % 10, step),
        };
        let (steps, threads, batch) = (61, 3, 2);
        let job = Written((0..steps).map(op).collect());
        let pace = crate::run::paced::Pace { calls: 31, threads, each_sees_all: false };
        let cut = Cut::Paced { pace, rate: Some(1.0), batch, steps };
        let executed = [done(steps, cut)];
        let expected = |record: u64| {
            let of = |thread: u64| {
                let ops = (0..steps).filter(|step| step / 2 % 3 == thread).map(op);
                ops.filter(|op| op.record == record).filter_map(|op| written(&op)).next_back()
            };
            let mut left: Vec<u64> = (0..3).filter_map(of).collect();
            left.sort_unstable();
            left.dedup();
            if left.is_empty() { vec![ABSENT] } else { left }
        };
        for range in [0..10, 0..4, 4..10] {
            let state = FinalState::replay(&job, &executed, range.clone());
            for record in range {
                let others = alternatives(&state, record).into_iter();
                let all = std::iter::once(state.version(record)).chain(others);
                let mut all: Vec<u64> = all.map(|version| version.unwrap_or(ABSENT)).collect();
                all.sort_unstable();
                assert_eq!(all, expected(record), "record {record}");
            }
        }
    }
}
