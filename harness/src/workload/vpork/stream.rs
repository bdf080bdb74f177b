//! The iterations.

use super::Vpork;
use crate::workload::job::Stream;
use crate::workload::op::{Kind, Op};
use crate::workload::rng::SplitMix64;

/// The stream of a seed. Step N draws from a generator of its own; only the number of writes before
/// it is counted from step to step.
pub(super) struct VporkStream {
    seed: u64,
    write_odds: f64,
    read_odds: f64,
    /// The newest records, which are not read.
    untouched: u64,
    /// The step up to which writes have been counted, and their number.
    step: u64,
    writes: u64,
}

/// What an iteration draws.
struct Draws {
    writes: bool,
    reads: bool,
    x: f64,
}

impl VporkStream {
    pub(super) fn new(vpork: &Vpork, seed: u64, threads: u32) -> Self {
        Self {
            seed: SplitMix64::for_index(seed, u64::from_le_bytes(*b"vpork...")).next_u64(),
            write_odds: vpork.write_odds,
            read_odds: vpork.read_odds,
            untouched: 3 * u64::from(threads),
            step: 0,
            writes: 0,
        }
    }

    /// The writes in the steps before `step`, which is not before the one asked for last.
    pub(super) fn writes_before(&mut self, step: u64) -> u64 {
        while self.step < step {
            self.writes += u64::from(self.draws(self.step).writes);
            self.step += 1;
        }
        self.writes
    }

    fn draws(&self, step: u64) -> Draws {
        let mut rng = SplitMix64::for_index(self.seed, step);
        Draws {
            writes: unit(rng.next_u64()) < self.write_odds,
            reads: unit(rng.next_u64()) < self.read_odds,
            x: unit(rng.next_u64()),
        }
    }
}

impl Stream for VporkStream {
    fn step(&mut self, step: u64, _settled: u64, out: &mut Vec<Op>) {
        let before = self.writes_before(step);
        let draws = self.draws(step);
        if draws.writes {
            out.push(Op::put(Kind::Insert, before, 0));
        }
        let so_far = before + u64::from(draws.writes);
        if let Some(newest) = so_far.checked_sub(self.untouched).filter(|_| draws.reads) {
            out.push(Op::read(chosen(newest, draws.x)));
        }
    }
}

/// The record that is read when `newest` may be and `x` was drawn.
fn chosen(newest: u64, x: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to `newest`")]
    let back = ((1.0 - x).powi(10) * newest as f64).floor() as u64;
    newest.saturating_sub(back)
}

/// A number in [0, 1) of 53 bits.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const VPORK: Vpork =
        Vpork { iterations: 2_000, write_odds: 0.8, read_odds: 0.1, data_size: 24_000 };

    fn ops(threads: u32) -> Vec<Vec<Op>> {
        let mut stream = VporkStream::new(&VPORK, 42, threads);
        let steps = VPORK.iterations * u64::from(threads);
        let step = |step| {
            let mut ops = Vec::new();
            stream.step(step, 0, &mut ops);
            ops
        };
        (0..steps).map(step).collect()
    }

    /// By hand: (1−x)^10 is 1, 1/1024, and 0.25^10 = 9.5e-7.
    #[test]
    fn the_record_read_follows_the_formula() {
        assert_eq!(chosen(5_000, 0.0), 0);
        assert_eq!(chosen(5_000, 0.5), 5_000 - 4);
        assert_eq!(chosen(5_000, 0.75), 5_000);
        assert_eq!(chosen(0, 0.3), 0);
    }

    /// The published counts, of 30 and of 100 threads, within four standard deviations of a
    /// binomial distribution.
    #[test]
    fn writes_and_reads_are_as_many_as_published() {
        for (threads, writes, reads) in [(30, 48_072.0, 5_889.0), (100, 159_855.0, 19_872.0)] {
            let all: Vec<Op> = ops(threads).into_iter().flatten().collect();
            let count = |kind| all.iter().filter(|op| op.kind == kind).count() as f64;
            let steps = f64::from(threads) * 2_000.0;
            let allowed = |odds: f64| 4.0 * 2f64.sqrt() * (steps * odds * (1.0 - odds)).sqrt();
            assert!((count(Kind::Insert) - writes).abs() < allowed(0.8), "{threads} threads");
            assert!((count(Kind::Read) - reads).abs() < allowed(0.1), "{threads} threads");
        }
    }

    /// Numbers ascend by one, no read touches the newest 90 records less the one that the formula
    /// leaves, and none is of a record that was not written three iterations of all threads before.
    #[test]
    fn no_read_touches_the_newest_records() {
        let mut written = 0;
        for ops in ops(30) {
            for op in ops {
                match op.kind {
                    Kind::Insert => {
                        assert_eq!(op.record, written);
                        written += 1;
                    }
                    _ => assert!(written >= 90 && op.record <= written - 90, "{op:?}, {written}"),
                }
            }
        }
    }

    /// The share of reads within a tenth of the records from the newest one back is that of
    /// (1−x)^10 < 0.1: 1 − 0.1^0.1 < x, which is 0.794.
    #[test]
    fn reads_are_mostly_of_recent_records() {
        let (mut written, mut reads, mut recent) = (0u64, 0.0, 0.0);
        for op in ops(100).into_iter().flatten() {
            match op.kind {
                Kind::Insert => written += 1,
                _ => {
                    let newest = written - 300;
                    reads += 1.0;
                    recent += f64::from(u8::from((newest - op.record) * 10 < newest));
                }
            }
        }
        let share = recent / reads;
        assert!((share - 0.1f64.powf(0.1)).abs() < 0.015, "{share}");
    }

    /// Threads that take every other step count the same writes.
    #[test]
    fn a_stream_may_skip_the_steps_of_others() {
        let whole = ops(30);
        let mut stream = VporkStream::new(&VPORK, 42, 30);
        for step in (0..60_000).step_by(7) {
            let mut ops = Vec::new();
            stream.step(step, 0, &mut ops);
            assert_eq!(ops, whole[usize::try_from(step).unwrap()]);
        }
    }
}
