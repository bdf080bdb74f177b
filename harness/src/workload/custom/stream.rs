//! The operations of a phase.

use super::Custom;
use super::choose::{Choice, Growth};
use crate::workload::job::Stream;
use crate::workload::op::{Kind, Op};
use crate::workload::rng::SplitMix64;
use crate::workload::shares::Shares;

/// The stream of a seed. Every step is derived from its number alone, but for a walk through the
/// records, which goes from step to step.
pub(super) struct CustomStream {
    seed: u64,
    growth: Growth,
    /// The kinds but inserts.
    kinds: Shares<Kind>,
    choice: Choice,
    scan_lengths: [u64; 2],
    /// What the versions of this phase begin with.
    first_version: u64,
}

/// Versions are those of the phase and the step, so that no two puts have the same.
const STEP_BITS: u32 = 41;

impl CustomStream {
    /// The operations of phase `at`, which is one of operations.
    pub(super) fn new(custom: &Custom, at: usize, seed: u64) -> Self {
        let phase = &custom.phases[at];
        let seed = SplitMix64::for_index(seed ^ u64::from_le_bytes(*b"a phase."), at as u64);
        let seed = seed.clone().next_u64();
        let kinds = phase.mix.unwrap_or_default().shares().map(|(_, kind, share)| (kind, share));
        let kinds = Shares::new(kinds.into_iter().filter(|(kind, _)| *kind != Kind::Insert));
        let growth = Growth {
            records: custom.records_before(at),
            inserts: phase.inserts(),
            steps: phase.steps(),
        };
        Self {
            seed,
            growth,
            kinds,
            choice: Choice::new(phase, growth, seed),
            scan_lengths: phase.scan_lengths.unwrap_or([1, 100]),
            first_version: (at as u64) << STEP_BITS,
        }
    }

    fn kind(&self, rng: &mut SplitMix64) -> Kind {
        self.kinds.at(rng.fraction() * self.kinds.sum()).unwrap_or(Kind::Read)
    }
}

impl Stream for CustomStream {
    fn step(&mut self, step: u64, settled: u64, out: &mut Vec<Op>) {
        let version = self.first_version + step + 1;
        if self.growth.inserts_at(step) {
            out.push(Op::put(Kind::Insert, self.growth.before(step), version));
            return;
        }
        let mut rng = SplitMix64::for_index(self.seed, step);
        let kind = self.kind(&mut rng);
        let record = self.choice.choose(&mut rng, step, self.growth.before(settled).max(1));
        out.push(match kind {
            Kind::Read => Op::read(record),
            Kind::Delete => Op::delete(record),
            Kind::Scan | Kind::ScanBack => {
                let [least, most] = self.scan_lengths;
                Op::scan(kind, record, least + rng.below_u64(most - least + 1))
            }
            kind => Op::put(kind, record, version),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::custom::file;

    fn custom(phases: &str) -> Custom {
        let text =
            format!("keys = {{ count = 100_000, bytes = 8 }}\nvalues = {{ bytes = 9 }}\n{phases}");
        file::parse(&text, "test.toml").unwrap()
    }

    fn ops(custom: &Custom, phase: usize, lag: u64) -> Vec<Op> {
        let mut stream = CustomStream::new(custom, phase, 42);
        let mut ops = Vec::new();
        for step in 0..custom.phases[phase].steps() {
            stream.step(step, step.saturating_sub(lag), &mut ops);
        }
        ops
    }

    const LOAD: &str = "[[phases]]\nname = 'load'\noperations = 1000\nmix = { insert = 1 }\n";

    #[test]
    fn the_mix_is_as_asked_for_and_inserts_are_numbered_through_all_phases() {
        let run = "[[phases]]\nname = 'run'\noperations = 20_000\n\
                   mix = { insert = 0.25, read = 0.25, update = 0.2, delete = 0.1, scan = 0.05, \
                   scan_back = 0.05, read_modify_write = 0.1 }\nscan_lengths = [3, 7]\n";
        let custom = custom(&format!("{LOAD}{run}{}", run.replace("'run'", "'again'")));
        assert_eq!(custom.record_count(), 11_000);
        let load = ops(&custom, 0, 0);
        assert!((0..1_000).zip(&load).all(|(at, op)| *op == Op::put(Kind::Insert, at, at + 1)));
        let mut next = 1_000;
        let mut versions = std::collections::HashSet::new();
        for phase in [1, 2] {
            let ops = ops(&custom, phase, 0);
            for (kind, share) in [
                (Kind::Read, 0.25f64),
                (Kind::Update, 0.2),
                (Kind::Delete, 0.1),
                (Kind::Scan, 0.05),
                (Kind::ScanBack, 0.05),
                (Kind::ReadModifyWrite, 0.1),
            ] {
                let count = ops.iter().filter(|op| op.kind == kind).count() as f64;
                let allowed = 5.0 * (20_000.0 * share * (1.0 - share)).sqrt();
                assert!((count - 20_000.0 * share).abs() < allowed, "{kind}: {count}");
            }
            for op in ops {
                if op.kind == Kind::Insert {
                    assert_eq!(op.record, next);
                    next += 1;
                }
                assert!(op.record < next, "{op:?}");
                assert!(!op.kind.puts() || versions.insert(op.version), "{op:?}");
                assert!(!op.kind.needs_order() || (3..=7).contains(&op.length), "{op:?}");
            }
        }
        assert_eq!(next, 11_000);
        assert_ne!(ops(&custom, 1, 0)[1], ops(&custom, 2, 0)[1], "phases are drawn apart");
    }

    /// What is not settled yet is not chosen.
    #[test]
    fn the_newest_settled_record_is_the_most_popular_of_latest() {
        let run = "[[phases]]\nname = 'run'\noperations = 10_000\n\
                   mix = { insert = 0.5, read = 0.5 }\ndistribution = 'latest'\n";
        let custom = custom(&format!("{LOAD}{run}"));
        for lag in [0, 64] {
            let mut hits = 0;
            for (step, op) in (0u64..).zip(ops(&custom, 1, lag)) {
                // Every other step inserts, the first one does.
                let newest = 999 + step.saturating_sub(lag).div_ceil(2);
                assert!(op.kind == Kind::Insert || op.record <= newest, "{op:?} {newest}");
                hits += u64::from(op.kind == Kind::Read && op.record == newest);
            }
            assert!(hits > 500, "{hits}");
        }
    }

    #[test]
    fn a_hotspot_and_an_exponent_are_those_of_the_file() {
        let phase = |more: &str| {
            let run = "[[phases]]\nname = 'run'\noperations = 50_000\nmix = { read = 1 }\n";
            ops(&custom(&format!("{LOAD}{run}{more}")), 1, 0)
        };
        let hot = phase("distribution = 'hotspot'\nhot_records = 0.1\nhot_operations = 0.6\n");
        let hits = hot.iter().filter(|op| op.record < 100).count();
        // Five standard deviations: 110 each.
        assert!(hits.abs_diff(30_000) < 550, "{hits}");
        let zipf = phase("distribution = 'zipfian'\ntheta = 1.5\n");
        let mut counts = std::collections::HashMap::new();
        zipf.iter().for_each(|op| *counts.entry(op.record).or_insert(0u32) += 1);
        let top = f64::from(*counts.values().max().unwrap()) / 50_000.0;
        let expected = 1.0 / (1..=1_000).map(|rank| f64::from(rank).powf(-1.5)).sum::<f64>();
        assert!((top - expected).abs() < 0.012, "{top} {expected}");
    }

    const DISTRIBUTIONS: [&str; 6] =
        ["uniform", "zipfian", "latest", "hotspot", "sequential", "exponential"];

    /// A phase that begins with 1,000 records and inserts `share` of its operations.
    fn growing(distribution: &str, operations: u64, share: f64) -> Custom {
        let run = format!(
            "[[phases]]\nname = 'run'\noperations = {operations}\n\
             mix = {{ insert = {share}, read = {} }}\ndistribution = '{distribution}'\n",
            1.0 - share
        );
        custom(&format!("{LOAD}{run}"))
    }

    #[test]
    fn steps_are_the_same_whoever_asks_for_them() {
        for distribution in DISTRIBUTIONS {
            for share in [0.0, 0.3] {
                let custom = growing(distribution, 1_000, share);
                let mut odd = CustomStream::new(&custom, 1, 42);
                let mut of_odd = Vec::new();
                (1..1_000).step_by(2).for_each(|step| odd.step(step, step, &mut of_odd));
                let all: Vec<Op> = ops(&custom, 1, 0).into_iter().skip(1).step_by(2).collect();
                assert_eq!(of_odd, all, "{distribution} {share}");
            }
        }
    }

    /// Each choice, and how many records there were.
    fn choices(distribution: &str, operations: u64, share: f64) -> Vec<(u64, u64)> {
        let (mut count, mut choices) = (1_000, Vec::new());
        for op in ops(&growing(distribution, operations, share), 1, 0) {
            match op.kind {
                Kind::Insert => count += 1,
                _ => choices.push((op.record, count)),
            }
        }
        choices
    }

    /// Whatever the distribution, what the phase inserted is chosen too, and nothing that is not
    /// there yet, also where what other threads inserted last is not settled.
    #[test]
    fn what_the_phase_inserted_is_chosen_and_nothing_before_it_is_there() {
        for distribution in DISTRIBUTIONS {
            let choices = choices(distribution, 20_000, 0.25);
            assert!(choices.iter().all(|(record, count)| record < count), "{distribution}");
            let of_phase = choices.iter().filter(|(record, _)| *record >= 1_000).count();
            assert!(of_phase > 1_000, "{distribution}: {of_phase}");
            let custom = growing(distribution, 20_000, 0.25);
            for (step, op) in (0u64..).zip(ops(&custom, 1, 500)) {
                let settled = 1_000 + step.saturating_sub(500).div_ceil(4);
                assert!(op.kind == Kind::Insert || op.record < settled, "{distribution} {op:?}");
            }
        }
    }

    /// By counting: no record is left out, however many of the steps between insert.
    #[test]
    fn a_walk_comes_to_every_record_in_turn() {
        for share in [0.0, 0.1, 0.5, 0.7] {
            let mut next = 0;
            for (record, count) in choices("sequential", 10_000, share) {
                let expected = if next == count { 0 } else { next };
                assert_eq!(record, expected, "{share}");
                next = record + 1;
            }
        }
    }

    /// Against what the shares must be at each moment, within five standard deviations.
    #[test]
    fn growing_records_are_chosen_by_their_distribution() {
        let near = |count: f64, expected: f64, what: &str| {
            assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{what}: {count} {expected}");
        };
        let uniform = choices("uniform", 60_000, 0.25);
        let lower = uniform.iter().filter(|(record, count)| record * 3 < *count).count();
        near(lower as f64, uniform.len() as f64 / 3.0, "the lower third");
        let hot = choices("hotspot", 60_000, 0.25);
        let hits = hot.iter().filter(|(record, count)| *record < count / 5).count();
        near(hits as f64, hot.len() as f64 * 0.8, "the hot fifth");
        let zipfian = choices("zipfian", 60_000, 0.25);
        let mut counts = std::collections::HashMap::new();
        zipfian.iter().for_each(|(record, _)| *counts.entry(*record).or_insert(0u32) += 1);
        let top = f64::from(*counts.values().max().unwrap());
        let zeta = crate::workload::zipf::zeta;
        near(top, zipfian.iter().map(|(_, count)| 1.0 / zeta(*count, 0.99)).sum(), "the first");
        let of_phase = zipfian.iter().filter(|(record, _)| *record >= 1_000).count();
        let behind = |count: u64| 1.0 - zeta(1_000, 0.99) / zeta(count, 0.99);
        near(of_phase as f64, zipfian.iter().map(|(_, count)| behind(*count)).sum(), "inserted");
    }
}
