//! A run, inside the child:
//!
//! 1. `open` in an empty directory, then the phases of the workload
//! 2. `close` and `reopen`: what is verified has been on disk
//! 3. `verify`: get every record; `count`: fold over all of them, for what should not be there
//!
//! An engine that keeps nothing on disk is verified before it is closed, and not reopened.

use std::fs;
use std::time::Instant;

use engines::{Engine, Error, registry};
use quanta::Clock;

use super::child::Open;
use super::cut::Cut;
use super::event::{Event, Events};
use super::plan::RunPlan;
use super::rounds::Clocked;
use super::stream_hash::StreamHash;
use super::traffic::{self, Done, Executed};
use crate::Result;
use crate::measure::disk;
use crate::measure::figures;
use crate::measure::resources::{Memory, Usage};
use crate::measure::sampler::Sampler;
use crate::measure::told;
use crate::results::{Operations, Phase, Traffic as TrafficResult};
use crate::verify::read_back::{ReadBack, count_extra};
use crate::workload::job::{FIRST_PHASE, Job, LAST_PHASES, Traffic, Work, closing_before};
use crate::workload::op::Kind;

/// Carries out `plan`, telling `events` of it.
///
/// # Errors
/// What the engine or the operating system refuses.
pub(super) fn run(plan: &RunPlan, open: &Open<'_>, events: &Events) -> Result<()> {
    let job = plan.workload.spec().job(&plan.client)?;
    let mut run = Run {
        plan,
        job: job.as_ref(),
        open,
        events,
        clock: Clock::new(),
        executed: Vec::new(),
        hash: StreamHash::default(),
        is_determined: true,
    };
    run.announce()?;
    let mut engine = run.open("open")?;
    run.tell_engine(engine.as_ref());
    for phase in run.job.phases() {
        match &phase.work {
            Work::Traffic(traffic) => run.traffic(&phase.name, traffic, engine.as_ref())?,
            Work::Quiesce => run.timed(&phase.name, || engine.quiesce())?,
            Work::Compact => run.timed(&phase.name, || engine.compact())?,
            Work::Sync => run.timed(&phase.name, || engine.sync())?,
            Work::Reopen if engine.capabilities().persistent => {
                run.timed(&closing_before(&phase.name), || engine.close())?;
                engine = run.open(&phase.name)?;
            }
            Work::Reopen => {}
            Work::OpenAgain(times) if engine.capabilities().persistent => {
                engine = run.timed(&phase.name, || {
                    (0..*times).try_fold(engine, |engine, _| {
                        engine.close()?;
                        run.opened()
                    })
                })?;
            }
            Work::OpenAgain(_) => run.leave_out(&phase.name, "it keeps nothing on disk"),
            Work::Anew => {
                run.is_determined = true;
                engine.close()?;
                engine = run.timed(&phase.name, || {
                    run.empty_directory()?;
                    run.opened()
                })?;
            }
            Work::Stats => run.tell_stats(&phase.name, engine.as_ref())?,
        }
    }
    run.tell_operations();
    if !engine.capabilities().persistent {
        run.verify(engine.as_ref())?;
        return run.timed("close", || engine.close());
    }
    run.timed("close", || engine.close())?;
    let engine = run.open("reopen")?;
    run.verify(engine.as_ref())?;
    Ok(engine.close()?)
}

struct Run<'a> {
    plan: &'a RunPlan,
    job: &'a dyn Job,
    open: &'a Open<'a>,
    events: &'a Events,
    clock: Clock,
    /// What was done of each traffic phase.
    executed: Vec<Done>,
    hash: StreamHash,
    /// Whether the operations alone determine what is there, and neither time nor the meeting of
    /// threads: then it is the same for every engine.
    is_determined: bool,
}

impl Run<'_> {
    /// What is there before the engine: the names of the phases, the directory, our own memory.
    fn announce(&self) -> Result<()> {
        let of_workload = self.job.phases().into_iter().flat_map(|phase| phase.names());
        let after = LAST_PHASES.map(str::to_owned);
        let phases = [FIRST_PHASE.to_owned()].into_iter().chain(of_workload).chain(after);
        self.events.send(&Event::Begins {
            phases: phases.collect(),
            disk: disk::usage(&self.plan.directory)?,
            own_memory: Memory::now(),
        });
        Ok(())
    }

    fn open(&self, phase: &str) -> Result<Box<dyn Engine>> {
        self.timed(phase, || self.opened())
    }

    fn opened(&self) -> engines::Result<Box<dyn Engine>> {
        let options = self.plan.settings.open_options();
        self.job.open(&|folder, parts| {
            let directory = match folder {
                "" => self.plan.directory.clone(),
                folder => self.plan.directory.join(folder),
            };
            let memory_bytes = options.memory_bytes / parts.max(1);
            (self.open)(&self.plan.engine, &directory, &options.clone().memory_bytes(memory_bytes))
        })
    }

    fn tell_engine(&self, engine: &dyn Engine) {
        let told = engine.description();
        let settings = told.settings.into_iter().map(|(name, value)| (name.to_owned(), value));
        self.events.send(&Event::Engine {
            version: told.version,
            durability: told.durability,
            settings: settings.collect(),
        });
    }

    fn traffic(&mut self, name: &str, traffic: &Traffic<'_>, engine: &dyn Engine) -> Result<()> {
        let own_ns = self.own_ns(traffic)?;
        let was_determined = std::mem::replace(&mut self.is_determined, false);
        let (threads, rate) = traffic.clients(&self.plan.client);
        let cut = Cut::new(traffic, threads, rate);
        let records = self.job.records();
        let measured = match missing(traffic, engine) {
            Some(missing) => Err(missing.into()),
            None => self.measured(name, || {
                let progress = |done| self.events.progress(done, traffic.steps);
                let done = traffic::execute(engine, records, traffic, cut, &self.clock, progress)?;
                let result = TrafficResult {
                    determined: was_determined && is_determined(traffic, cut, &done),
                    threads,
                    rate,
                    own_ns,
                    ..result(traffic, &done)
                };
                let determined = result.determined;
                Ok((done.clocked, Some(result), (done, determined)))
            }),
        };
        let (executed, is_determined) = match measured {
            // All operations are alike: the first one was refused, and nothing was done.
            Err(crate::Error::Engine(error @ Error::Unsupported { .. })) if traffic.optional => {
                self.leave_out(name, &error.to_string());
                self.executed.push(Done { steps: 0, cut, steps_beside: 0 });
                return Ok(());
            }
            measured => measured?,
        };
        self.is_determined = is_determined;
        self.job.check()?;
        if traffic.limit.is_none() {
            self.hash.merge(executed.hash);
        }
        let steps_beside = executed.beside.map_or(0, |beside| beside.steps);
        self.executed.push(Done { steps: executed.clocked.items, cut, steps_beside });
        Ok(())
    }

    fn leave_out(&self, phase: &str, reason: &str) {
        self.events.send(&Event::LeftOut { phase: phase.to_owned(), reason: reason.to_owned() });
    }

    fn tell_stats(&self, phase: &str, engine: &dyn Engine) -> Result<()> {
        let told = told::told(&self.timed(phase, || engine.stats())?);
        self.events.send(&Event::Stats { phase: phase.to_owned(), told });
        Ok(())
    }

    /// Removes everything in the run's directory, which is this run's alone.
    fn empty_directory(&self) -> engines::Result<()> {
        let directory = &self.plan.directory;
        fs::remove_dir_all(directory).map_err(Error::io("remove", directory))?;
        fs::create_dir(directory).map_err(Error::io("create directory", directory))
    }

    /// What an operation costs without an engine, in nanoseconds.
    fn own_ns(&self, traffic: &Traffic<'_>) -> Result<Option<f64>> {
        // It asks for a directory, and leaves it as it is.
        let null = registry::find("null")?;
        let options = engines::OpenOptions::new();
        let null = self.job.open(&|_, _| (null.open)(&self.plan.directory, &options))?;
        match traffic::own_cost(null.as_ref(), self.job.records(), traffic, &self.clock) {
            Ok(cost) => Ok(Some(cost.as_secs_f64() * 1e9)),
            Err(Error::Unsupported { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn tell_operations(&self) {
        let (count, hash) = (self.hash.count(), self.hash.digest());
        self.events.send(&Event::Operations(Operations { count, hash }));
    }

    fn verify(&self, engine: &dyn Engine) -> Result<()> {
        if keeps_nothing(engine)? {
            return Ok(());
        }
        let threads = self.plan.client.threads.get();
        let read = ReadBack { engine, job: self.job, executed: &self.executed, threads };
        let count = self.job.record_count();
        let mut verified = self.measured("verify", || {
            let (clocked, verified) = read.run(|done| self.events.progress(done, count))?;
            Ok((clocked, None, verified))
        })?;
        self.job.check()?;
        verified.extra = self.timed("count", || count_extra(engine, &verified))?;
        self.events.send(&Event::Verified(verified));
        Ok(())
    }

    fn timed<T>(&self, phase: &str, work: impl FnOnce() -> engines::Result<T>) -> Result<T> {
        self.measured(phase, || {
            let began = Instant::now();
            let outcome = work()?;
            let wall = began.elapsed();
            Ok((Clocked { running: wall, wall, items: 0 }, None, outcome))
        })
    }

    /// Tells of a phase with everything that is measured around it.
    fn measured<T>(
        &self,
        name: &str,
        work: impl FnOnce() -> engines::Result<(Clocked, Option<TrafficResult>, T)>,
    ) -> Result<T> {
        self.events.send(&Event::Begun { phase: name.to_owned() });
        let sampler = Sampler::start(&self.plan.directory);
        let before = Usage::now();
        let outcome = work();
        let usage = Usage::now().since(&before);
        let seen = sampler.stop();
        let (clocked, traffic, outcome) = outcome?;
        self.events.send(&Event::Ended(Box::new(Phase {
            name: name.to_owned(),
            seconds: clocked.running.as_secs_f64(),
            wall_seconds: clocked.wall.as_secs_f64(),
            usage,
            seen,
            disk: disk::usage(&self.plan.directory)?,
            traffic,
        })));
        Ok(outcome)
    }
}

/// What was done of `traffic`.
fn result(traffic: &Traffic<'_>, done: &Executed) -> TrafficResult {
    let beside = done.beside.as_ref();
    TrafficResult {
        operations: done.hash.count(),
        hash: done.hash.digest(),
        time_limited: done.clocked.items < traffic.steps,
        kinds: figures::by_kind(&done.recorder),
        background: beside.map(|beside| figures::by_kind(&beside.recorder)).unwrap_or_default(),
        timeline: done.recorder.timeline().to_vec(),
        ..TrafficResult::default()
    }
}

/// Whether the operations alone determine what they find and leave, where they do what they find.
fn is_determined(traffic: &Traffic<'_>, cut: Cut, done: &Executed) -> bool {
    let kinds = || done.recorder.kinds().map(|(kind, _)| kind);
    let needs_no_order =
        kinds().all(|kind| !kind.writes()) || kinds().all(|kind| kind == Kind::Insert);
    traffic.limit.is_none() && traffic.background.is_none() && (cut.is_ordered() || needs_no_order)
}

/// What `engine` lacks for `traffic`, where the workload goes on without: its first step stands for
/// all of them.
fn missing(traffic: &Traffic<'_>, engine: &dyn Engine) -> Option<Error> {
    if !traffic.optional || engine.capabilities().ordered_scan {
        return None;
    }
    let mut ops = Vec::new();
    (traffic.stream)().step(0, 0, &mut ops);
    let needs_order = ops.iter().any(|op| op.kind.needs_order());
    let (engine, operation) = (engine.description().engine, "ordered scan".to_owned());
    needs_order.then_some(Error::Unsupported { engine, operation })
}

/// Whether this is the reference point that takes everything and keeps nothing: reading back has
/// no meaning then.
fn keeps_nothing(engine: &dyn Engine) -> Result<bool> {
    Ok(!engine.capabilities().persistent && engine.stats()?.live_records == Some(0))
}
