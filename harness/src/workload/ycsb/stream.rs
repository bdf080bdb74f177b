//! The operations of a run.

use super::Ycsb;
use crate::workload::choose::{Chooser, Wanted};
use crate::workload::job::Stream;
use crate::workload::op::{Kind, Op};
use crate::workload::rng::SplitMix64;
use crate::workload::shares::Shares;
use crate::workload::zipf::{GrayZipfian, THETA};

/// The stream of a seed. Step N draws from a generator of its own; only the number of inserts
/// before it is counted from step to step.
pub(super) struct YcsbStream {
    kinds: Shares<Kind>,
    seed: u64,
    records: u64,
    chooser: Chooser,
    scans: ScanLengths,
    executed: InsertCount,
    settled: InsertCount,
}

/// The inserts before a step.
#[derive(Debug, Clone, Copy, Default)]
struct InsertCount {
    step: u64,
    inserts: u64,
}

enum ScanLengths {
    Uniform { least: u64, most: u64 },
    Zipfian { least: u64, ranks: GrayZipfian },
}

impl YcsbStream {
    pub(super) fn new(ycsb: &Ycsb, seed: u64) -> Self {
        let seed = SplitMix64::for_index(seed, u64::from_le_bytes(*b"the mix.")).next_u64();
        let update = if ycsb.write_all_fields { Kind::Update } else { Kind::UpdateField };
        let kinds = [Kind::Read, update, Kind::Insert, Kind::Scan, Kind::ReadModifyWrite];
        let shares = ycsb.mix.shares().map(|(_, share)| share);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let expected_inserts = (ycsb.operations as f64 * ycsb.mix.insert) as u64;
        let [least, most] = ycsb.scan_lengths;
        Self {
            kinds: Shares::new(kinds.into_iter().zip(shares)),
            seed,
            records: ycsb.records,
            chooser: Chooser::new(&Wanted {
                distribution: ycsb.distribution,
                records: ycsb.records,
                expected_inserts,
                hot_records: ycsb.hot_records,
                hot_operations: ycsb.hot_operations,
                theta: THETA,
                seed,
            }),
            scans: match ycsb.zipfian_scan_lengths {
                false => ScanLengths::Uniform { least, most },
                true => ScanLengths::Zipfian { least, ranks: GrayZipfian::new(most - least + 1) },
            },
            executed: InsertCount::default(),
            settled: InsertCount::default(),
        }
    }

    /// The inserts among the steps before `step`, which is not before the one asked for last.
    pub(super) fn inserts_before(&mut self, step: u64) -> u64 {
        let mut count = self.executed;
        self.count(&mut count, step);
        self.executed = count;
        count.inserts
    }

    fn count(&self, count: &mut InsertCount, until: u64) {
        if self.kinds.things().all(|kind| kind != Kind::Insert) {
            count.step = until;
        }
        while count.step < until {
            count.inserts += u64::from(self.kind(&mut self.rng(count.step)) == Kind::Insert);
            count.step += 1;
        }
    }

    fn rng(&self, step: u64) -> SplitMix64 {
        SplitMix64::for_index(self.seed, step)
    }

    fn kind(&self, rng: &mut SplitMix64) -> Kind {
        self.kinds.at(rng.fraction()).unwrap_or(Kind::Read)
    }
}

impl Stream for YcsbStream {
    fn step(&mut self, step: u64, settled: u64, out: &mut Vec<Op>) {
        let mut rng = self.rng(step);
        let kind = self.kind(&mut rng);
        if kind == Kind::Insert {
            let record = self.records + self.inserts_before(step);
            out.push(Op::put(kind, record, 0));
            return;
        }
        let mut count = self.settled;
        self.count(&mut count, settled);
        self.settled = count;
        let newest = (self.records + count.inserts).saturating_sub(1);
        let record = self.chooser.choose(&mut rng, step, newest);
        out.push(match kind {
            Kind::Scan => Op::scan(kind, record, self.scans.length(&mut rng)),
            Kind::Read => Op::read(record),
            // Versions are those of steps, so that no two writes have the same.
            kind => Op::put(kind, record, step + 1),
        });
    }
}

impl ScanLengths {
    fn length(&self, rng: &mut SplitMix64) -> u64 {
        match self {
            Self::Uniform { least, most } => least + rng.below_u64(most - least + 1),
            Self::Zipfian { least, ranks } => least + ranks.next(rng),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::ycsb::{Distribution, Mix};

    fn ycsb(mix: [f64; 5], distribution: Distribution) -> Ycsb {
        let [read, update, insert, scan, read_modify_write] = mix;
        Ycsb {
            records: 1_000,
            operations: 20_000,
            mix: Mix { read, update, insert, scan, read_modify_write },
            distribution,
            scan_lengths: [1, 100],
            ..Ycsb::default()
        }
    }

    fn ops(ycsb: &Ycsb, steps: impl Iterator<Item = u64>, lag: u64) -> Vec<Op> {
        let (mut stream, mut ops) = (YcsbStream::new(ycsb, 42), Vec::new());
        steps.for_each(|step| stream.step(step, step.saturating_sub(lag), &mut ops));
        ops
    }

    #[test]
    fn the_mix_is_as_asked_for() {
        let ycsb = ycsb([0.4, 0.3, 0.1, 0.05, 0.15], Distribution::Zipfian);
        let ops = ops(&ycsb, 0..20_000, 0);
        for (kind, share) in [
            (Kind::Read, 0.4f64),
            (Kind::UpdateField, 0.3),
            (Kind::Insert, 0.1),
            (Kind::Scan, 0.05),
            (Kind::ReadModifyWrite, 0.15),
        ] {
            let count = ops.iter().filter(|op| op.kind == kind).count() as f64;
            // Five standard deviations.
            let allowed = 5.0 * (20_000.0 * share * (1.0 - share)).sqrt();
            assert!((count - 20_000.0 * share).abs() < allowed, "{kind}: {count}");
        }
        let whole = Ycsb { write_all_fields: true, ..ycsb };
        let updates = self::ops(&whole, 0..1_000, 0);
        assert!(updates.iter().any(|op| op.kind == Kind::Update));
        assert!(updates.iter().all(|op| op.kind != Kind::UpdateField));
    }

    #[test]
    fn inserts_are_numbered_on_and_read_once_they_are_settled() {
        let ycsb = ycsb([0.5, 0.0, 0.5, 0.0, 0.0], Distribution::Latest);
        for lag in [0, 64] {
            let mut inserted_at = Vec::new();
            let mut newest_reads = 0;
            for (step, op) in ops(&ycsb, 0..20_000, lag).into_iter().enumerate() {
                if op.kind == Kind::Insert {
                    assert_eq!(op.record, 1_000 + inserted_at.len() as u64);
                    inserted_at.push(step as u64);
                } else if let Some(at) = op.record.checked_sub(1_000) {
                    let inserted = inserted_at[usize::try_from(at).unwrap()];
                    assert!(inserted < (step as u64).saturating_sub(lag).max(1), "{step}");
                    newest_reads += u64::from(op.record == 999 + inserted_at.len() as u64);
                }
            }
            let job = super::super::YcsbJob::new(&ycsb, 42);
            use crate::workload::job::Job;
            assert_eq!(job.record_count(), 1_000 + inserted_at.len() as u64);
            // The newest is the most popular, unless it is not settled yet.
            assert_eq!(newest_reads > 500, lag == 0, "{newest_reads}");
        }
    }

    #[test]
    fn steps_are_the_same_whoever_asks_for_them() {
        let ycsb = ycsb([0.3, 0.2, 0.3, 0.1, 0.1], Distribution::TrueZipfian);
        let all = ops(&ycsb, 0..1_000, 0);
        let odd = ops(&ycsb, (1..1_000).step_by(2), 0);
        let of_all: Vec<Op> = all.iter().copied().skip(1).step_by(2).collect();
        assert_eq!(odd, of_all);
    }

    #[test]
    fn scan_lengths_keep_to_their_bounds() {
        for zipfian_scan_lengths in [false, true] {
            let ycsb = Ycsb {
                zipfian_scan_lengths,
                ..ycsb([0.0, 0.0, 0.0, 1.0, 0.0], Distribution::Uniform)
            };
            let lengths: Vec<u64> = ops(&ycsb, 0..20_000, 0).iter().map(|op| op.length).collect();
            assert_eq!(lengths.iter().min(), Some(&1));
            assert!(lengths.iter().max().unwrap() >= &99, "{:?}", lengths.iter().max());
            assert!(lengths.iter().all(|length| (1..=100).contains(length)));
            let mean = lengths.iter().sum::<u64>() as f64 / 20_000.0;
            assert_eq!(mean < 30.0, zipfian_scan_lengths, "{mean}");
            assert!(zipfian_scan_lengths || (mean - 50.5).abs() < 1.1, "{mean}");
        }
    }
}
