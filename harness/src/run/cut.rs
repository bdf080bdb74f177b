//! How the operations of a phase are cut up among threads, rounds and times.

use std::time::Duration;

use super::paced::{Due, Pace, calls_before};
use super::rounds::Rounds;
use crate::workload::job::Traffic;

/// How a phase's steps are shared among threads and time.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cut {
    /// Round by round, as fast as the engine can.
    Rounds(Rounds),
    /// Call by call, each of `batch` steps, at a rate or at the times that the workload says.
    Paced { pace: Pace, rate: Option<f64>, batch: u32, steps: u64 },
}

/// The memory of one thread's operations in one round: enough for the clock to be read seldom,
/// small enough to be in a cache still when the engine gets them.
pub(super) const SHARE_BYTES: u64 = 4 << 20;

/// The memory of all threads' operations in one round.
const ROUND_BYTES: u64 = 64 << 20;

/// The steps of one thread in one round, at most; and where the time is limited, so that not much
/// more of it is taken.
const SHARE_STEPS: u64 = 16 << 10;
const LIMITED_SHARE_STEPS: u64 = 256;

/// With several threads in an open loop, steps this many calls a thread back have been
/// acknowledged, unless a thread stalls.
const SETTLED_CALLS: u64 = 3;

impl Cut {
    /// How `threads` threads share `traffic`, at `rate` operations a second if there is one.
    pub(crate) fn new(traffic: &Traffic<'_>, threads: u32, rate: Option<f64>) -> Self {
        let batch = u64::from(traffic.batch.max(1));
        let each_sees_all = traffic.by_record && threads > 1;
        if let Some(due) = due(traffic, rate) {
            let calls = calls_before(traffic.limit, traffic.steps.div_ceil(batch), due.as_ref());
            let steps = traffic.steps.min(calls.saturating_mul(batch));
            let pace = Pace { calls, threads, each_sees_all };
            return Self::Paced { pace, rate, batch: traffic.batch.max(1), steps };
        }
        let bytes = SHARE_BYTES.min(ROUND_BYTES / u64::from(threads));
        let most = if traffic.limit.is_some() { LIMITED_SHARE_STEPS } else { SHARE_STEPS };
        let most = traffic.steps_together.map_or(most, |together| together.clamp(1, most));
        let share = (bytes / traffic.step_bytes.max(1)).clamp(1, most);
        Self::Rounds(Rounds {
            items: traffic.steps,
            threads,
            share: fair_share(traffic.steps, threads, batch, share),
            limit: traffic.limit,
            each_sees_all,
        })
    }

    /// The threads, of which each takes the operations of its own records, if they do.
    pub(super) fn by_record(&self) -> Option<u32> {
        match self {
            Self::Rounds(Rounds { threads, each_sees_all: true, .. })
            | Self::Paced { pace: Pace { threads, each_sees_all: true, .. }, .. } => Some(*threads),
            _ => None,
        }
    }

    /// Whether what is done with one record is done in the order of the stream.
    pub(crate) fn is_ordered(&self) -> bool {
        match self {
            Self::Rounds(Rounds { threads: 1, .. })
            | Self::Paced { pace: Pace { threads: 1, .. }, .. } => true,
            _ => self.by_record().is_some(),
        }
    }

    /// The steps before `step` that have been acknowledged when it is executed, in the round that
    /// begins with step `round_start`.
    pub(crate) fn settled(&self, step: u64, round_start: u64) -> u64 {
        match self {
            Self::Rounds(Rounds { threads: 1, .. }) => step,
            Self::Rounds(_) => round_start,
            Self::Paced { pace: Pace { threads: 1, .. }, .. } => step,
            Self::Paced { pace, batch, .. } => {
                let back = SETTLED_CALLS * u64::from(pace.threads) * u64::from(*batch);
                step.saturating_sub(back)
            }
        }
    }
}

/// When each call of `traffic` is due, unless it goes as fast as it can.
pub(super) fn due<'a>(traffic: &'a Traffic<'_>, rate: Option<f64>) -> Option<Box<Due<'a>>> {
    let batch = u64::from(traffic.batch.max(1));
    if let Some(times) = &traffic.times {
        return Some(Box::new(move |call| times(call.saturating_mul(batch))));
    }
    let calls_a_second = rate? / batch as f64;
    Some(Box::new(move |call| {
        Duration::try_from_secs_f64(call as f64 / calls_a_second).unwrap_or(Duration::MAX)
    }))
}

/// Whole batches, `wanted` steps of them at most, and small enough for every thread to get some.
pub(crate) fn fair_share(steps: u64, threads: u32, batch: u64, wanted: u64) -> u64 {
    let fair = steps.div_ceil(u64::from(threads).saturating_mul(batch)).max(1);
    batch.saturating_mul((wanted / batch).clamp(1, fair))
}

#[cfg(test)]
mod tests {
    use super::super::traffic::tests::job;
    use super::*;
    use crate::workload::job::{Job, Work};

    #[test]
    fn what_is_settled_was_acknowledged() {
        let job = job(1_000, 1);
        let phases = job.phases();
        let Work::Traffic(traffic) = &phases[0].work else { panic!("no traffic") };
        assert_eq!(Cut::new(traffic, 1, None).settled(70, 64), 70);
        assert_eq!(Cut::new(traffic, 2, None).settled(70, 64), 64);
        assert_eq!(Cut::new(traffic, 1, Some(10.0)).settled(70, 70), 70);
        assert_eq!(Cut::new(traffic, 2, Some(10.0)).settled(70, 70), 64);
        assert_eq!(Cut::new(traffic, 2, Some(10.0)).settled(3, 3), 0);
    }

    #[test]
    fn rounds_are_whole_batches_that_leave_no_thread_without_work() {
        assert_eq!(fair_share(1_000_000, 1, 1, 1_500), 1_500);
        assert_eq!(fair_share(100, 4, 1, 1_500), 25);
        assert_eq!(fair_share(100, 4, 10, 1_500), 30);
        assert_eq!(fair_share(1_000_000, 4, 100, 1_550), 1_500);
        assert_eq!(fair_share(1_000_000, 4, 10_000, 1_500), 10_000);
        assert_eq!(fair_share(0, 4, 1, 1), 1);
    }
}
