//! The operations of each benchmark.
//!
//! A number is drawn for each step from the step's own generator, with replacement, as db_bench
//! does: after N draws of N keys about 63 % of the keys are there.

use super::bench::Bench;
use super::entries::{KEY_BYTES, missing, version, version_beside};
use super::{BATCH, Dbbench, MULTI};
use crate::workload::choose::Scatter;
use crate::workload::job::Traffic;
use crate::workload::op::{Kind, Op};
use crate::workload::rng::{SplitMix64, mix};

/// A benchmark at its place in the list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) dbbench: &'a Dbbench,
    pub(super) bench: Bench,
    /// Its number in the list, from 0.
    pub(super) phase: usize,
    /// The run's.
    pub(super) seed: u64,
}

/// The largest step of `seekordered`, and one.
const STRIDE: u64 = 100;

impl<'a> Place<'a> {
    /// Its operations; `None` where it has none.
    pub(super) fn traffic(self) -> Option<Traffic<'a>> {
        let Dbbench { num, reads, .. } = *self.dbbench;
        let draw = self.draws(num);
        let hot = self.draws(num.div_ceil(100));
        let put = move |kind, record, step| Op::put(kind, record, version(self.phase, step));
        let writes = self.dbbench.writes(self.bench);
        let mut traffic = match self.bench {
            Bench::FillSeq => self.each(num, move |step| put(Kind::Insert, step, step)),
            Bench::FillBatch => {
                let mut batches = self.each(num, move |step| put(Kind::Insert, step, step));
                batches.batch = BATCH;
                batches
            }
            Bench::FillUniqueRandom => {
                let scatter = Scatter::new(num, self.own_seed());
                self.each(num, move |step| put(Kind::Insert, scatter.place(step), step))
            }
            Bench::FillRandom | Bench::Overwrite | Bench::Fill100K => {
                self.each(writes, move |step| put(Kind::Update, draw(step), step))
            }
            Bench::FillSync => Traffic::new(writes, self.step_bytes(), move || {
                move |step: u64, out: &mut Vec<Op>| {
                    out.extend([put(Kind::Update, draw(step), step), Op::sync()]);
                }
            }),
            Bench::UpdateRandom => {
                self.each(num, move |step| put(Kind::ReadModifyWrite, draw(step), step))
            }
            Bench::DeleteSeq => self.each(num, Op::delete),
            Bench::DeleteRandom => self.each(num, move |step| Op::delete(draw(step))),
            Bench::ReadSeq => self.each(1, move |_| Op::scan(Kind::Scan, 0, reads)),
            Bench::ReadReverse => self.each(1, move |_| Op::scan(Kind::ScanBack, num, reads)),
            Bench::ReadRandom => self.each(reads, move |step| Op::read(draw(step))),
            Bench::ReadMissing => self.each(reads, move |step| Op::read(missing(draw(step)))),
            Bench::ReadHot => self.each(reads, move |step| Op::read(hot(step))),
            Bench::MultiReadRandom => {
                let mut several = self.each(reads, move |step| Op::read(draw(step)));
                several.batch = MULTI;
                several
            }
            Bench::SeekRandom => self.each(reads, move |step| seek(draw(step))),
            Bench::SeekOrdered => self.ordered(),
            Bench::ReadWhileWriting => {
                self.each(reads, move |step| Op::read(draw(step))).beside(move || self.writer())
            }
            Bench::SeekRandomWhileWriting => {
                self.each(reads, move |step| seek(draw(step))).beside(move || self.writer())
            }
            Bench::ReadWhileScanning => self
                .each(reads, move |step| Op::read(draw(step)))
                .beside(|| |_: u64, out: &mut Vec<Op>| out.push(Op::scan_all())),
            Bench::Open | Bench::Compact | Bench::WaitForCompaction | Bench::Stats => return None,
        };
        traffic.optional = true;
        traffic.paced = !matches!(self.bench, Bench::ReadSeq | Bench::ReadReverse);
        Some(traffic)
    }

    /// One operation a step.
    fn each(self, steps: u64, op: impl Fn(u64) -> Op + Copy + Send + Sync + 'a) -> Traffic<'a> {
        Traffic::new(steps, self.step_bytes(), move || {
            move |step: u64, out: &mut Vec<Op>| out.push(op(step))
        })
    }

    /// Each seek is to a key that is a random stride of up to 99 after the one before.
    fn ordered(self) -> Traffic<'a> {
        let Dbbench { num, reads, .. } = *self.dbbench;
        let stride = self.draws(STRIDE);
        Traffic::new(reads, self.step_bytes(), move || {
            let (mut next, mut at) = (0, 0);
            move |step: u64, out: &mut Vec<Op>| {
                while next <= step {
                    at = (at + stride(next)) % num;
                    next += 1;
                }
                out.push(seek(at));
            }
        })
    }

    /// Overwrites keys drawn at random, without end.
    fn writer(self) -> impl FnMut(u64, &mut Vec<Op>) + Send + use<> {
        let draw = draws(mix(self.own_seed()), self.dbbench.num);
        let phase = self.phase;
        move |step: u64, out: &mut Vec<Op>| {
            out.push(Op::put(Kind::Update, draw(step), version_beside(phase, step)));
        }
    }

    fn own_seed(self) -> u64 {
        SplitMix64::for_index(self.seed ^ u64::from_le_bytes(*b"dbbench."), self.phase as u64)
            .next_u64()
    }

    fn draws(self, below: u64) -> impl Fn(u64) -> u64 + Copy + Send + Sync + use<> {
        draws(self.own_seed(), below)
    }

    fn step_bytes(self) -> u64 {
        match self.dbbench.writes(self.bench) {
            0 => KEY_BYTES,
            _ => KEY_BYTES + self.dbbench.value_bytes(self.bench),
        }
    }
}

fn seek(record: u64) -> Op {
    Op::scan(Kind::Seek, record, 1)
}

/// A number below `below` for each step.
fn draws(seed: u64, below: u64) -> impl Fn(u64) -> u64 + Copy + Send + Sync + use<> {
    move |step| SplitMix64::for_index(seed, step).below_u64(below)
}
