//! The phases of an insert run, inside the child:
//!
//! 1. `open` an empty directory, `load` every record, `quiesce`, `compact`
//! 2. `close` and `reopen`: what is verified has been on disk
//! 3. `verify`: get every record; `count`: fold over all of them, for what should not be there
//!
//! An engine that keeps nothing on disk is verified before it is closed, and not reopened.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Range;
use std::time::Instant;

use engines::{Batch, Engine};

use super::child::Open;
use super::event::{Event, Events, Moment};
use super::plan::RunPlan;
use super::rounds::{Clocked, Rounds, Worker};
use crate::Result;
use crate::measure::disk;
use crate::results::{Operations, Phase};
use crate::verify::read_back;
use crate::workload::insert::{Insert, OperationsHash, Oracle, Records};

/// The memory of one thread's records in one round: enough for the clock to be read seldom, small
/// enough to be in a cache still when the engine gets them.
const SHARE_BYTES: u64 = 4 << 20;

pub(super) fn run(plan: &RunPlan, insert: &Insert, open: &Open<'_>, events: &Events) -> Result<()> {
    let oracle = Oracle::new(insert);
    let run = InsertRun { plan, insert, oracle, open, events };
    run.measure_disk(Moment::Before)?;
    let engine = run.open("open")?;
    run.tell_engine(engine.as_ref());
    run.load(engine.as_ref())?;
    run.measure_disk(Moment::Load)?;
    run.timed("quiesce", || engine.quiesce())?;
    run.measure_disk(Moment::Quiesce)?;
    run.timed("compact", || engine.compact())?;
    run.measure_disk(Moment::Compact)?;
    if !engine.capabilities().persistent {
        run.verify(engine.as_ref())?;
        return run.timed("close", || engine.close());
    }
    run.timed("close", || engine.close())?;
    let engine = run.open("reopen")?;
    run.measure_disk(Moment::Reopen)?;
    run.verify(engine.as_ref())?;
    Ok(engine.close()?)
}

struct InsertRun<'a> {
    plan: &'a RunPlan,
    insert: &'a Insert,
    oracle: Oracle,
    open: &'a Open<'a>,
    events: &'a Events,
}

impl InsertRun<'_> {
    fn open(&self, phase: &str) -> Result<Box<dyn Engine>> {
        let options = self.plan.settings.open_options();
        self.timed(phase, || (self.open)(&self.plan.engine, &self.plan.directory, &options))
    }

    fn tell_engine(&self, engine: &dyn Engine) {
        let description = engine.description();
        let settings: BTreeMap<String, String> = description
            .settings
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        let (version, durability) = (description.version, description.durability);
        self.events.send(&Event::Engine { version, durability, settings });
    }

    fn load(&self, engine: &dyn Engine) -> Result<()> {
        self.begin("load");
        let loader = || Loader {
            engine,
            oracle: &self.oracle,
            batch: self.insert.batch,
            records: Records::default(),
            batches: Vec::new(),
            prepared: OperationsHash::default(),
            acknowledged: OperationsHash::default(),
        };
        let (clocked, loaders) = self.rounds().run(loader, |done| self.progress(done))?;
        self.end("load", clocked);
        let mut hash = OperationsHash::default();
        loaders.iter().for_each(|loader| hash.merge(loader.acknowledged));
        let operations = Operations { count: hash.count(), hash: hash.digest() };
        self.events.send(&Event::Operations(operations));
        Ok(())
    }

    fn verify(&self, engine: &dyn Engine) -> Result<()> {
        if keeps_nothing(engine)? {
            return Ok(());
        }
        self.begin("verify");
        let (clocked, mut verified) =
            read_back::read_back(engine, &self.oracle, self.rounds(), |done| self.progress(done))?;
        self.end("verify", clocked);
        if verified.extra.is_none() {
            verified.extra = self.timed("count", || read_back::count_extra(engine, &verified))?;
        }
        self.events.send(&Event::Verified(verified));
        Ok(())
    }

    /// Rounds of whole batches, small enough for every thread to get a share.
    fn rounds(&self) -> Rounds {
        let (items, threads) = (self.insert.items.get(), self.insert.threads.get());
        let batch = u64::from(self.insert.batch.get());
        let batch_bytes = batch * self.insert.framing.value_bytes() as u64;
        let fair = items.div_ceil(u64::from(threads) * batch);
        Rounds { items, threads, share: batch * (SHARE_BYTES / batch_bytes).clamp(1, fair) }
    }

    fn measure_disk(&self, moment: Moment) -> Result<()> {
        let usage = disk::usage(&self.plan.directory)?;
        self.events.send(&Event::Disk { moment, usage });
        Ok(())
    }

    fn timed<T>(&self, phase: &str, work: impl FnOnce() -> engines::Result<T>) -> Result<T> {
        self.begin(phase);
        let began = Instant::now();
        let outcome = work()?;
        let wall = began.elapsed();
        self.end(phase, Clocked { running: wall, wall });
        Ok(outcome)
    }

    fn begin(&self, phase: &str) {
        self.events.send(&Event::Begun { phase: phase.to_owned() });
    }

    fn progress(&self, done: u64) {
        self.events.progress(done, self.insert.items.get());
    }

    fn end(&self, phase: &str, clocked: Clocked) {
        self.events.send(&Event::Ended(Phase {
            name: phase.to_owned(),
            seconds: clocked.running.as_secs_f64(),
            wall_seconds: clocked.wall.as_secs_f64(),
        }));
    }
}

/// Whether this is the reference point that takes everything and keeps nothing: reading back has
/// no meaning then.
fn keeps_nothing(engine: &dyn Engine) -> Result<bool> {
    Ok(!engine.capabilities().persistent && engine.stats()?.live_records == Some(0))
}

struct Loader<'a> {
    engine: &'a dyn Engine,
    oracle: &'a Oracle,
    batch: NonZeroU32,
    records: Records,
    batches: Vec<Batch>,
    prepared: OperationsHash,
    acknowledged: OperationsHash,
}

impl Worker for Loader<'_> {
    fn prepare(&mut self, range: Range<u64>) -> engines::Result<()> {
        self.records.fill(self.oracle, range);
        self.prepared = self.records.hash();
        if self.batch > NonZeroU32::MIN {
            self.batches = self.records.batches(self.batch)?;
        }
        Ok(())
    }

    fn work(&mut self) -> engines::Result<()> {
        if self.batch > NonZeroU32::MIN {
            for batch in &self.batches {
                self.engine.write(batch)?;
            }
        } else {
            for (key, value) in self.records.iter() {
                self.engine.put(key, value)?;
            }
        }
        self.acknowledged.merge(self.prepared);
        Ok(())
    }
}
