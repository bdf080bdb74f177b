//! Workloads for crash tests: what is done, and the history of having done it.

use std::sync::Mutex;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use engines::fs::sim::{Call, SimFs, Trace};
use engines::{Batch, Durability, Engine, Result};

use super::fold;
use super::oracle::{Barrier, History, Operation, State};

/// An engine under test, at one level and with options that make everything happen soon.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) name: &'a str,
    pub(crate) durability: Durability,
    /// How the paths end of the files that writes go to first, if within one of them no write may
    /// be found that is newer than a lost one, even if pages are lost at random.
    pub(crate) log_suffix: Option<&'a str>,
    pub(crate) open: &'a (dyn Fn(&SimFs) -> Result<Box<dyn Engine>> + Sync),
}

/// What is done by the threads together, between two openings of the engine.
pub(crate) type Phase = Vec<Vec<Step>>;

/// One call of one thread.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Write(Vec<(Vec<u8>, Option<Vec<u8>>)>),
    Sync,
    Compact,
    Quiesce,
}

/// How a workload is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) seed: u64,
    pub(crate) phases: usize,
    pub(crate) threads: usize,
    pub(crate) steps: usize,
    pub(crate) keys: usize,
    /// Values are mostly shorter, in bytes.
    pub(crate) value_bytes: usize,
}

impl Shape {
    /// The steps, the same for the same shape.
    pub(crate) fn draw(&self) -> Vec<Phase> {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        let mut serial = 0;
        let mut phase = |random: &mut ChaCha8Rng| {
            (0..self.threads)
                .map(|thread| {
                    (0..self.steps).map(|_| self.step(thread, random, &mut serial)).collect()
                })
                .collect()
        };
        (0..self.phases).map(|_| phase(&mut random)).collect()
    }

    fn step(&self, thread: usize, random: &mut ChaCha8Rng, serial: &mut u64) -> Step {
        match random.random_range(0..100) {
            0..60 => Step::Write(vec![self.change(thread, 0.0, random, serial)]),
            60..76 => Step::Write(vec![self.change(thread, 1.0, random, serial)]),
            76..90 => {
                let count = random.random_range(2..8);
                let changes = (0..count).map(|_| self.change(thread, 0.25, random, serial));
                Step::Write(changes.collect())
            }
            90..96 => Step::Sync,
            96..98 => Step::Quiesce,
            _ => Step::Compact,
        }
    }

    fn change(
        &self,
        thread: usize,
        deletions: f64,
        random: &mut ChaCha8Rng,
        serial: &mut u64,
    ) -> (Vec<u8>, Option<Vec<u8>>) {
        let key = format!("{thread}/{:03}", random.random_range(0..self.keys)).into_bytes();
        if random.random_bool(deletions) {
            return (key, None);
        }
        *serial += 1;
        let mut value = format!("value {serial}|").into_bytes();
        // Now and then one over a page, or over a block of a log.
        let most = match random.random_range(0..200) {
            0 => 40_000,
            1..4 => 6_000,
            _ => self.value_bytes,
        };
        let length = random.random_range(0..most);
        value.extend((0..length).map(|_| random.random_range(b'a'..=b'd')));
        (key, Some(value))
    }
}

/// What happened: the file calls, and what the engine answered when.
pub(crate) struct Recording {
    pub(crate) trace: Trace,
    pub(crate) history: History,
    /// What a fold found at the end of each phase, before closing, and the history until then.
    pub(crate) live: Vec<(History, std::result::Result<State, String>)>,
    /// What failed, in the order it did.
    pub(crate) errors: Vec<String>,
}

/// Runs a workload. Operations that fail are noted as such, and the workload goes on as far as the
/// engine can be opened.
pub(crate) fn record(subject: Subject<'_>, disk: &SimFs, phases: &[Phase]) -> Recording {
    let threads = phases.iter().map(Vec::len).max().unwrap_or(0);
    let history = History {
        durability: subject.durability,
        atomic_batch: true,
        streams: vec![Vec::new(); threads],
        barriers: Vec::new(),
    };
    let mut recorder =
        Recorder { disk, history, errors: Mutex::default(), errors_before: 0, phase: 0, since: 0 };
    let mut live = Vec::new();
    for (number, phase) in phases.iter().enumerate() {
        recorder.phase = number;
        if recorder.errors.get_mut().unwrap().len() > recorder.errors_before {
            recorder.errors_before = recorder.errors.get_mut().unwrap().len();
            recorder.since = number;
        }
        let Some(engine) = recorder.noting("open", || (subject.open)(disk)) else { break };
        recorder.history.atomic_batch = engine.capabilities().atomic_batch;
        recorder.run(engine.as_ref(), phase);
        let issued = disk.mark();
        let (level, since) = (Durability::Process, recorder.since);
        let mut until_now = recorder.history.clone();
        until_now.barriers.push(Barrier { level, since, issued, acked: issued });
        live.push((until_now, fold(engine.as_ref())));
        if recorder.noting("close", || engine.close()).is_some() {
            let acked = disk.mark();
            recorder.history.barriers.push(Barrier { level, since, issued, acked });
        }
    }
    let errors = recorder.errors.into_inner().unwrap();
    let trace = disk.trace();
    if let [stream] = recorder.history.streams.as_mut_slice()
        && let Some(suffix) = subject.log_suffix
        && subject.durability > Durability::Buffered
    {
        find_logs(stream, &trace, suffix);
    }
    Recording { trace, history: recorder.history, live, errors }
}

/// Tells which log each operation of the only thread went to: the one written to meanwhile.
fn find_logs(operations: &mut [Operation], trace: &Trace, suffix: &str) {
    for operation in operations {
        // One that failed may have been cut short anywhere.
        let Some(end) = operation.acked else { continue };
        operation.log = trace.calls()[operation.issued..end].iter().find_map(|call| match call {
            Call::Write { path, file, .. } => {
                path.to_str().is_some_and(|path| path.ends_with(suffix)).then_some(*file)
            }
            _ => None,
        });
    }
}

struct Recorder<'a> {
    disk: &'a SimFs,
    history: History,
    errors: Mutex<Vec<String>>,
    errors_before: usize,
    phase: usize,
    /// The phase behind the last one in which something failed.
    since: usize,
}

impl Recorder<'_> {
    fn run(&mut self, engine: &dyn Engine, phase: &Phase) {
        let this = &*self;
        let done: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                phase.iter().map(|steps| scope.spawn(|| this.run_thread(engine, steps))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        for (stream, (operations, barriers)) in done.into_iter().enumerate() {
            self.history.streams[stream].extend(operations);
            self.history.barriers.extend(barriers);
        }
    }

    fn run_thread(&self, engine: &dyn Engine, steps: &[Step]) -> (Vec<Operation>, Vec<Barrier>) {
        let (mut operations, mut barriers) = (Vec::new(), Vec::new());
        for step in steps {
            let issued = self.disk.mark();
            match step {
                Step::Write(changes) => {
                    let done = self.noting("write", || write(engine, changes));
                    let acked = done.map(|()| self.disk.mark());
                    let (changes, phase) = (changes.clone(), self.phase);
                    operations.push(Operation { changes, phase, issued, acked, log: None });
                }
                Step::Sync => {
                    if self.noting("sync", || engine.sync()).is_some() {
                        let acked = self.disk.mark();
                        let (level, since) = (Durability::Power, self.since);
                        barriers.push(Barrier { level, since, issued, acked });
                    }
                }
                Step::Compact => {
                    self.noting("compact", || engine.compact());
                }
                Step::Quiesce => {
                    self.noting("quiesce", || engine.quiesce());
                }
            }
        }
        (operations, barriers)
    }

    fn noting<T>(&self, what: &str, act: impl FnOnce() -> Result<T>) -> Option<T> {
        act().map_err(|error| self.errors.lock().unwrap().push(format!("{what}: {error}"))).ok()
    }
}

fn write(engine: &dyn Engine, changes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Result<()> {
    if let [(key, value)] = changes {
        return match value {
            Some(value) => engine.put(key, value),
            None => engine.delete(key),
        };
    }
    let mut batch = Batch::new();
    for (key, value) in changes {
        match value {
            Some(value) => batch.put(key, value)?,
            None => batch.delete(key)?,
        }
    }
    engine.write(&batch)
}
