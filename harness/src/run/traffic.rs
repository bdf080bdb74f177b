//! Carries out a phase's operations: by the closed loop of [`rounds`](super::rounds), or by the
//! open loop of [`paced`](super::paced).

use std::ops::Range;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use engines::Engine;
use quanta::Clock;

use super::background::{self, Beside, Gate};
use super::block::Block;
use super::cut::{Cut, SHARE_BYTES, due, fair_share};
use super::paced::PacedWorker;
use super::rounds::{Clocked, Rounds, Worker};
use super::stream_hash::StreamHash;
use crate::measure::recorder::Recorder;
use crate::workload::job::{Records, Stream, Traffic};
use crate::workload::op::Op;
use crate::workload::rng::mix;

/// What a phase was.
pub(crate) struct Executed {
    /// The engine's time, and the time with preparation.
    pub(crate) clocked: Clocked,
    /// What the threads recorded.
    pub(crate) recorder: Recorder,
    /// The hash of what was acknowledged.
    pub(crate) hash: StreamHash,
    /// What the thread beside the clients did, if there was one.
    pub(crate) beside: Option<Beside>,
}

/// The part of a phase that was executed: what checking the records afterwards goes by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    /// Steps of the stream.
    pub(crate) steps: u64,
    /// How they were shared.
    pub(crate) cut: Cut,
    /// Steps of the stream beside.
    pub(crate) steps_beside: u64,
}

/// Carries out `traffic` on `engine`, and what is beside it, telling `progress` the steps done.
///
/// # Errors
/// The first error of the engine.
pub(crate) fn execute(
    engine: &dyn Engine,
    records: &dyn Records,
    traffic: &Traffic<'_>,
    cut: Cut,
    clock: &Clock,
    progress: impl Fn(u64) + Sync,
) -> engines::Result<Executed> {
    let Some(stream) = &traffic.background else {
        return clients(engine, records, traffic, cut, clock, None, progress);
    };
    let gate = Gate::default();
    // The clients may be done before a thread that was just made runs at all.
    let is_there = Barrier::new(2);
    thread::scope(|scope| {
        let beside = scope.spawn(|| {
            is_there.wait();
            background::run(engine, records, stream(), &gate, clock)
        });
        is_there.wait();
        let executed = clients(engine, records, traffic, cut, clock, Some(&gate), progress);
        gate.close();
        let beside = beside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(Executed { beside: Some(beside?), ..executed? })
    })
}

/// Carries out `traffic` without what is beside it, which `gate` keeps in step.
fn clients(
    engine: &dyn Engine,
    records: &dyn Records,
    traffic: &Traffic<'_>,
    cut: Cut,
    clock: &Clock,
    gate: Option<&Gate>,
    progress: impl Fn(u64) + Sync,
) -> engines::Result<Executed> {
    let client = |thread| Client {
        engine,
        records,
        batch: traffic.batch,
        cut,
        steps: traffic.steps,
        stream: (traffic.stream)(),
        own: cut.by_record().map(|threads| Own { thread, threads, is_own: thread == 0 }),
        step: Vec::new(),
        ops: Vec::new(),
        block: Block::default(),
        recorder: Recorder::new(clock.clone()),
        acknowledged: StreamHash::default(),
        gate,
    };
    let (clocked, clients) = match cut {
        Cut::Rounds(rounds) => rounds.run(client, progress)?,
        Cut::Paced { pace, rate, batch, steps } => {
            // Whoever made the cut found the calls due at some time.
            let due = due(traffic, rate).unwrap_or(Box::new(|_| Duration::ZERO));
            // Calls are due at any time: there is no moment at which the clock stands.
            gate.inspect(|gate| gate.enter());
            let began = Instant::now();
            let (running, clients) = pace.run(due.as_ref(), clock, client, |calls| {
                progress(calls.saturating_mul(batch.into()))
            })?;
            (Clocked { running, wall: began.elapsed(), items: steps }, clients)
        }
    };
    let mut recorder = Recorder::new(clock.clone());
    let mut hash = StreamHash::default();
    for client in clients {
        recorder.merge(client.recorder);
        hash.merge(client.acknowledged);
    }
    Ok(Executed { clocked, recorder, hash, beside: None })
}

/// One thread that uses the engine.
struct Client<'a> {
    engine: &'a dyn Engine,
    records: &'a dyn Records,
    batch: u32,
    cut: Cut,
    steps: u64,
    stream: Box<dyn Stream + 'a>,
    /// Which of all operations it takes, where each thread has records of its own.
    own: Option<Own>,
    /// The operations of one step, before those of others are left out.
    step: Vec<Op>,
    ops: Vec<Op>,
    block: Block,
    recorder: Recorder,
    acknowledged: StreamHash,
    gate: Option<&'a Gate>,
}

/// The operations of a thread that has records of its own. It sees all of them, in their order.
struct Own {
    thread: u32,
    threads: u32,
    /// Whether the last operation was one of its own.
    is_own: bool,
}

impl Own {
    /// An operation without a record, such as a sync, goes with the one before it.
    fn takes(&mut self, op: &Op) -> bool {
        if op.kind.has_record() {
            self.is_own = mix(op.record) % u64::from(self.threads) == u64::from(self.thread);
        }
        self.is_own
    }
}

impl Client<'_> {
    fn fill(&mut self, steps: Range<u64>, round_start: u64) -> engines::Result<()> {
        self.ops.clear();
        for step in steps {
            let settled = self.cut.settled(step, round_start);
            let Some(own) = &mut self.own else {
                self.stream.step(step, settled, &mut self.ops);
                continue;
            };
            self.step.clear();
            self.stream.step(step, settled, &mut self.step);
            self.ops.extend(self.step.iter().filter(|op| own.takes(op)));
        }
        self.block.fill(self.records, &self.ops, self.batch)
    }
}

impl Worker for Client<'_> {
    fn prepare(&mut self, range: Range<u64>, round_start: u64) -> engines::Result<()> {
        self.fill(range, round_start)
    }

    fn work(&mut self, clock_ns: u64) -> engines::Result<()> {
        self.gate.inspect(|gate| gate.enter());
        let mut start = self.recorder.resume(clock_ns);
        for call in self.block.calls() {
            let counts = self.block.execute(self.engine, call)?;
            start = self.recorder.record(call.kind, start, counts);
        }
        self.gate.inspect(|gate| gate.leave());
        self.acknowledged.merge(self.block.hash());
        Ok(())
    }
}

impl PacedWorker for Client<'_> {
    fn start(&mut self, start: u64) {
        self.recorder.begin(start);
    }

    fn prepare(&mut self, call: u64) -> engines::Result<bool> {
        let batch = u64::from(self.batch.max(1));
        let start = self.steps.min(call.saturating_mul(batch));
        let end = self.steps.min(start.saturating_add(batch));
        self.fill(start..end, start)?;
        Ok(!self.block.calls().is_empty() || self.own.is_none())
    }

    fn work(&mut self, due_ns: u64) -> engines::Result<()> {
        for call in self.block.calls() {
            let counts = self.block.execute(self.engine, call)?;
            self.recorder.record_since(call.kind, due_ns, counts);
        }
        self.acknowledged.merge(self.block.hash());
        Ok(())
    }
}

/// What the same calls cost one thread against an engine that does nothing, for each operation: the
/// laboratory's own share of every latency. The first operations of the stream stand for all of it.
///
/// # Errors
/// Those of making the operations, and `Unsupported` for those that doing nothing does not include.
pub(crate) fn own_cost(
    null: &dyn Engine,
    records: &dyn Records,
    traffic: &Traffic<'_>,
    clock: &Clock,
) -> engines::Result<Duration> {
    const SAMPLE_STEPS: u64 = 50_000;
    const SAMPLE_BYTES: u64 = 16 << 20;
    let enough = (SAMPLE_BYTES / traffic.step_bytes.max(1)).clamp(1, SAMPLE_STEPS);
    let items = traffic.steps.min(enough);
    let batch = u64::from(traffic.batch.max(1));
    let share = fair_share(items, 1, batch, SHARE_BYTES / traffic.step_bytes.max(1));
    let cut = Cut::Rounds(Rounds { items, threads: 1, share, limit: None, each_sees_all: false });
    let executed = clients(null, records, traffic, cut, clock, None, |_| ())?;
    let operations = executed.hash.count().max(1);
    Ok(executed.clocked.running.div_f64(operations as f64))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::workload::insert::{Insert, InsertJob};
    use crate::workload::job::{Job, Work};
    use crate::workload::op::Kind;
    use crate::workload::values::{Corpus, Framing};

    pub(in crate::run) fn job(items: u64, batch: u32) -> InsertJob {
        let (items, batch) = (items.try_into().unwrap(), batch.try_into().unwrap());
        let (corpus, framing) = (Corpus::Varied, Framing::Json);
        let insert = Insert { items, batch, corpus, framing, overwrites: 0.0, deletes: 0.0 };
        InsertJob::new(&insert, 42)
    }

    fn memory() -> Box<dyn Engine> {
        let directory = tempfile::tempdir().unwrap();
        let memory = engines::registry::find("memory").unwrap();
        memory.open(directory.path(), &engines::OpenOptions::new()).unwrap()
    }

    #[test]
    fn both_loops_execute_the_whole_stream_whatever_the_threads() {
        let clock = Clock::new();
        let mut hashes = Vec::new();
        for (threads, batch, rate) in
            [(1, 1, None), (3, 1, None), (2, 7, None), (1, 1, Some(1e6)), (3, 7, Some(1e6))]
        {
            let job = job(500, batch);
            let phases = job.phases();
            let Work::Traffic(traffic) = &phases[0].work else { panic!("no traffic") };
            let engine = memory();
            let cut = Cut::new(traffic, threads, rate);
            let executed =
                execute(engine.as_ref(), job.records(), traffic, cut, &clock, |_| ()).unwrap();
            assert_eq!(engine.stats().unwrap().live_records, Some(500));
            assert_eq!((executed.hash.count(), executed.clocked.items), (500, 500));
            let (kind, record) = executed.recorder.kinds().next().unwrap();
            assert_eq!(kind, if batch == 1 { Kind::Insert } else { Kind::BatchWrite });
            assert_eq!(record.counts.operations, 500);
            assert_eq!(record.latency.len(), 500u64.div_ceil(batch.into()));
            assert_eq!(executed.recorder.timeline().iter().sum::<u64>(), 500);
            hashes.push(executed.hash.digest());
        }
        assert!(hashes.iter().all(|hash| *hash == hashes[0]), "{hashes:?}");
    }
}
