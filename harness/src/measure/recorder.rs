//! Recording: what one call cost, in a few tens of nanoseconds.
//!
//! Every thread has a recorder of its own, so that nothing is shared while the clock runs; they are
//! merged afterwards. The clock is the processor's counter, read once a call: the end of one call
//! is the start of the next, so a latency has the few nanoseconds of recording the call before in
//! it. `benches/recording` prints what all of it costs.

use hdrhistogram::Histogram;
use quanta::Clock;

use crate::workload::op::Kind;

/// The length of a bucket of the time line.
pub const BUCKET_NS: u64 = 100_000_000;

/// Latencies up to an hour are told apart; a longer one counts as an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Three significant digits: a latency is off by at most a thousandth.
const DIGITS: u8 = 3;

/// What one thread recorded in one phase.
pub struct Recorder {
    clock: Clock,
    kinds: [Option<Box<KindRecord>>; Kind::ALL.len()],
    /// Operations that ended in each bucket.
    timeline: Vec<u64>,
    /// Where this stretch of running time begins: on the processor's counter, and on the phase's
    /// clock, which stands while operations are prepared.
    stretch_start: u64,
    stretch_offset_ns: u64,
}

/// What was recorded of one kind of operation.
#[derive(Debug, Clone)]
pub struct KindRecord {
    /// The latency of each call in nanoseconds.
    pub latency: Histogram<u64>,
    /// The sum of all latencies in nanoseconds, exact.
    pub total_ns: u128,
    /// Counts of what happened.
    pub counts: Counts,
}

/// What happened in calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Operations: as many as calls, unless a call does several.
    pub operations: u64,
    /// Records that were asked for and not there.
    pub not_found: u64,
    /// Records that scans visited.
    pub visited: u64,
    /// The bytes of the keys and values that were put, and of the keys that were deleted.
    pub written_bytes: u64,
    /// The bytes of the values that were read, and of the keys that scans visited.
    pub read_bytes: u64,
}

impl Counts {
    /// Adds what happened in other calls.
    pub fn add(&mut self, other: Self) {
        self.operations += other.operations;
        self.not_found += other.not_found;
        self.visited += other.visited;
        self.written_bytes += other.written_bytes;
        self.read_bytes += other.read_bytes;
    }
}

impl KindRecord {
    fn new() -> Self {
        #[expect(clippy::expect_used, reason = "fails only for over five digits")]
        let latency = Histogram::new(DIGITS).expect("three digits are allowed");
        Self { latency, total_ns: 0, counts: Counts::default() }
    }
}

impl Recorder {
    /// Nothing recorded yet.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            kinds: Default::default(),
            timeline: Vec::new(),
            stretch_start: 0,
            stretch_offset_ns: 0,
        }
    }

    /// The phase's clock runs again, at `offset_ns`. Returns the processor's counter.
    pub fn resume(&mut self, offset_ns: u64) -> u64 {
        self.stretch_start = self.clock.raw();
        self.stretch_offset_ns = offset_ns;
        self.stretch_start
    }

    /// The phase's clock shows nothing when the processor's counter shows `start`.
    pub fn begin(&mut self, start: u64) {
        self.stretch_start = start;
        self.stretch_offset_ns = 0;
    }

    /// The processor's counter.
    pub fn now(&self) -> u64 {
        self.clock.raw()
    }

    /// What the phase's clock shows at `counter`.
    pub fn at_ns(&self, counter: u64) -> u64 {
        self.stretch_offset_ns + self.clock.delta_as_nanos(self.stretch_start, counter)
    }

    /// Records a call that began when the counter showed `start`, and returns what it shows now.
    #[inline]
    pub fn record(&mut self, kind: Kind, start: u64, counts: Counts) -> u64 {
        let end = self.clock.raw();
        self.add(kind, self.clock.delta_as_nanos(start, end), end, counts);
        end
    }

    /// Records a call that should have begun when the phase's clock showed `intended_ns`.
    pub fn record_since(&mut self, kind: Kind, intended_ns: u64, counts: Counts) {
        let end = self.clock.raw();
        self.add(kind, self.at_ns(end).saturating_sub(intended_ns), end, counts);
    }

    #[inline]
    fn add(&mut self, kind: Kind, latency_ns: u64, end: u64, counts: Counts) {
        let bucket = usize::try_from(self.at_ns(end) / BUCKET_NS).unwrap_or(usize::MAX);
        if bucket >= self.timeline.len() {
            self.lengthen(bucket);
        }
        if let Some(count) = self.timeline.get_mut(bucket) {
            *count += counts.operations;
        }
        let record = self.kinds[kind as usize].get_or_insert_with(|| Box::new(KindRecord::new()));
        // The histogram grows as far as needed, which an hour is the end of: it cannot fail.
        let _ = record.latency.record(latency_ns.min(LONGEST_NS));
        record.total_ns += u128::from(latency_ns);
        record.counts.add(counts);
    }

    #[cold]
    fn lengthen(&mut self, bucket: usize) {
        // A year of buckets: beyond that the clock is wrong, and the time line stays as it is.
        if bucket < 365 * 24 * 36_000 {
            self.timeline.resize(bucket + 1, 0);
        }
    }

    /// Adds what another thread recorded.
    pub fn merge(&mut self, other: Self) {
        if other.timeline.len() > self.timeline.len() {
            self.timeline.resize(other.timeline.len(), 0);
        }
        self.timeline.iter_mut().zip(&other.timeline).for_each(|(sum, count)| *sum += count);
        for (mine, theirs) in self.kinds.iter_mut().zip(other.kinds) {
            let Some(theirs) = theirs else { continue };
            match mine {
                None => *mine = Some(theirs),
                Some(mine) => mine.merge(&theirs),
            }
        }
    }

    /// What was recorded, by kind.
    pub fn kinds(&self) -> impl Iterator<Item = (Kind, &KindRecord)> {
        Kind::ALL
            .into_iter()
            .zip(&self.kinds)
            .filter_map(|(kind, record)| record.as_deref().map(|record| (kind, record)))
    }

    /// Operations that ended in each bucket of the phase's clock.
    pub fn timeline(&self) -> &[u64] {
        &self.timeline
    }
}

impl KindRecord {
    fn merge(&mut self, other: &Self) {
        // Fails for values beyond the largest of a histogram that does not grow; this one grows.
        let _ = self.latency.add(&other.latency);
        self.total_ns += other.total_ns;
        self.counts.add(other.counts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(operations: u64) -> Counts {
        Counts { operations, ..Counts::default() }
    }

    #[test]
    fn a_latency_is_what_the_clock_says_and_ends_in_its_bucket() {
        let (clock, mock) = Clock::mock();
        let mut recorder = Recorder::new(clock);
        let start = recorder.resume(0);
        mock.increment(30_000_000u64);
        let next = recorder.record(Kind::Read, start, one(1));
        mock.increment(70_000_000u64);
        recorder.record(Kind::Read, next, one(1));
        // The clock stood while a second went by.
        mock.increment(1_000_000_000u64);
        let start = recorder.resume(100_000_000);
        mock.increment(250_000_000u64);
        recorder.record(Kind::Insert, start, one(5));
        assert_eq!(recorder.timeline(), [1, 1, 0, 5]);
        let kinds: Vec<_> = recorder.kinds().collect();
        assert_eq!(
            kinds.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(),
            [Kind::Insert, Kind::Read]
        );
        let read = kinds[1].1;
        assert_eq!((read.latency.len(), read.total_ns), (2, 100_000_000));
        // A thousandth is the histogram's own.
        assert!(read.latency.max().abs_diff(70_000_000) <= 70_000, "{}", read.latency.max());
        assert!(read.latency.min().abs_diff(30_000_000) <= 30_000, "{}", read.latency.min());
        assert_eq!(kinds[0].1.counts.operations, 5);
    }

    #[test]
    fn an_open_loop_counts_from_the_intended_start() {
        let (clock, mock) = Clock::mock();
        let mut recorder = Recorder::new(clock);
        recorder.resume(0);
        mock.increment(50_000_000u64);
        recorder.record_since(Kind::Read, 10_000_000, one(1));
        // Ended before it was due, by a clock that is not exact.
        recorder.record_since(Kind::Read, 60_000_000, one(1));
        let (_, read) = recorder.kinds().next().unwrap();
        assert_eq!(read.total_ns, 40_000_000);
        assert_eq!(read.latency.len(), 2);
    }

    #[test]
    fn threads_are_added_up() {
        let (clock, mock) = Clock::mock();
        let (mut a, mut b) = (Recorder::new(clock.clone()), Recorder::new(clock));
        let (start, other) = (a.resume(0), b.resume(0));
        mock.increment(1_000u64);
        a.record(Kind::Read, start, one(1));
        mock.increment(200_000_000u64);
        b.record(Kind::Read, other, Counts { operations: 1, not_found: 1, ..one(1) });
        b.record(Kind::Scan, other, one(1));
        a.merge(b);
        assert_eq!(a.timeline(), [1, 0, 2]);
        let read = a.kinds().next().unwrap().1;
        assert_eq!((read.latency.len(), read.counts.not_found), (2, 1));
        assert_eq!(read.total_ns, 1_000 + 200_001_000);
        assert_eq!(a.kinds().count(), 2);
    }
}
