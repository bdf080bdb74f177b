//! Which record an operation is about: any of those that are there when it is made, what the phase
//! itself has inserted included.

use super::{Distribution, Phase};
use crate::workload::choose::{self, Chooser, Scatter, Wanted};
use crate::workload::rng::SplitMix64;
use crate::workload::shares::spread_before;
use crate::workload::zipf::{THETA, TrueZipfian};

/// The records of a phase, step by step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Growth {
    /// Those that are there when it begins.
    pub(super) records: u64,
    /// Those that it inserts: spread evenly over its steps, of which the first one is an insert.
    pub(super) inserts: u64,
    pub(super) steps: u64,
}

impl Growth {
    /// The records that are there before `step`.
    pub(super) fn before(self, step: u64) -> u64 {
        self.records + spread_before(step, self.inserts, self.steps)
    }

    /// Whether `step` inserts one.
    pub(super) fn inserts_at(self, step: u64) -> bool {
        self.before(step + 1) > self.before(step)
    }
}

/// Chooses records.
pub(super) enum Choice {
    Uniform,
    /// Those that were there when the phase began have the ranks of `ranks` in random order; those
    /// that it inserts have the next ones, so that no record ever changes its rank.
    Zipfian {
        ranks: TrueZipfian,
        scatter: Scatter,
        before: u64,
    },
    Hotspot {
        records: f64,
        operations: f64,
    },
    Sequential(Walk),
    /// By the distance from the newest.
    Newest(Chooser),
}

impl Choice {
    /// Chooses as `phase` says.
    pub(super) fn new(phase: &Phase, growth: Growth, seed: u64) -> Self {
        let before = growth.records.max(1);
        let (hot_records, hot_operations) =
            (phase.hot_records.unwrap_or(0.2), phase.hot_operations.unwrap_or(0.8));
        let theta = phase.theta.unwrap_or(THETA);
        let newest = |distribution| {
            Self::Newest(Chooser::new(&Wanted {
                distribution,
                records: growth.records,
                expected_inserts: growth.inserts,
                hot_records,
                hot_operations,
                theta,
                seed,
            }))
        };
        match phase.distribution.unwrap_or_default() {
            Distribution::Uniform => Self::Uniform,
            Distribution::Zipfian => Self::Zipfian {
                ranks: TrueZipfian::new(before, theta),
                scatter: Scatter::new(before, seed),
                before,
            },
            Distribution::Hotspot => {
                Self::Hotspot { records: hot_records, operations: hot_operations }
            }
            Distribution::Sequential => Self::Sequential(Walk { growth, step: 0, at: 0 }),
            Distribution::Latest => newest(choose::Distribution::Latest),
            Distribution::Exponential => newest(choose::Distribution::Exponential),
        }
    }

    /// The record for `step`, which inserts none: one of the first `count`.
    pub(super) fn choose(&mut self, rng: &mut SplitMix64, step: u64, count: u64) -> u64 {
        match self {
            Self::Uniform => rng.below_u64(count),
            Self::Zipfian { ranks, scatter, before } => {
                ranks.set_items(count);
                match ranks.next(rng) {
                    rank if rank < *before => scatter.place(rank),
                    rank => rank,
                }
            }
            Self::Hotspot { records, operations } => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a share of a count"
                )]
                let hot = (count as f64 * *records) as u64;
                let is_hot = rng.fraction() < *operations;
                match (is_hot && hot > 0) || hot == count {
                    true => rng.below_u64(hot),
                    false => hot + rng.below_u64(count - hot),
                }
            }
            // Other threads may not have inserted yet what is there in the order of the steps.
            Self::Sequential(walk) => walk.at(step) % count,
            Self::Newest(chooser) => chooser.choose(rng, step, count - 1),
        }
    }
}

/// One record after the other, from the beginning again after the last that is there then.
pub(super) struct Walk {
    growth: Growth,
    /// The steps before this one have been gone through.
    step: u64,
    /// Where the next step that chooses goes, unless that is behind the end.
    at: u64,
}

impl Walk {
    /// Where `step` is, which chooses, and is not before the one asked for last.
    fn at(&mut self, step: u64) -> u64 {
        if self.growth.inserts == 0 {
            return step % self.growth.records.max(1);
        }
        while self.step < step {
            if !self.growth.inserts_at(self.step) {
                self.at = self.place(self.step) + 1;
            }
            self.step += 1;
        }
        self.place(step)
    }

    fn place(&self, step: u64) -> u64 {
        if self.at < self.growth.before(step) { self.at } else { 0 }
    }
}
