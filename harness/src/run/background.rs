//! One thread beside the clients, which works as long as they do: the writer of "read while
//! writing".
//!
//! The clients' clock stands while they make operations; the thread rests then, between two of its
//! calls, so that it has no more time than they have. Its operations are made as it goes.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use engines::Engine;
use quanta::Clock;

use super::block::Block;
use crate::measure::recorder::Recorder;
use crate::workload::job::{Records, Stream};

/// Tells the thread beside whether the clients work.
#[derive(Default)]
pub(super) struct Gate {
    working: AtomicU32,
    is_over: AtomicBool,
}

impl Gate {
    /// One client more works.
    pub(super) fn enter(&self) {
        self.working.fetch_add(1, Ordering::AcqRel);
    }

    /// One client less works.
    pub(super) fn leave(&self) {
        self.working.fetch_sub(1, Ordering::AcqRel);
    }

    /// The clients are done, or one has failed.
    pub(super) fn close(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Waits until clients work; false if they are done.
    fn may_work(&self) -> bool {
        loop {
            if self.is_over.load(Ordering::Acquire) {
                return false;
            }
            if self.working.load(Ordering::Acquire) > 0 {
                return true;
            }
            thread::yield_now();
        }
    }
}

/// What the thread did.
pub(crate) struct Beside {
    /// Steps of its stream, all of them acknowledged.
    pub(crate) steps: u64,
    /// What it recorded.
    pub(crate) recorder: Recorder,
}

/// Goes through `stream` until the gate is closed.
///
/// # Errors
/// The first error of the engine; the clients go on meanwhile.
pub(super) fn run(
    engine: &dyn Engine,
    records: &dyn Records,
    mut stream: Box<dyn Stream + '_>,
    gate: &Gate,
    clock: &Clock,
) -> engines::Result<Beside> {
    let mut beside = Beside { steps: 0, recorder: Recorder::new(clock.clone()) };
    let (mut ops, mut block) = (Vec::new(), Block::default());
    beside.recorder.resume(0);
    loop {
        ops.clear();
        stream.step(beside.steps, beside.steps, &mut ops);
        block.fill(records, &ops, 1)?;
        if !gate.may_work() {
            return Ok(beside);
        }
        let mut start = beside.recorder.now();
        for call in block.calls() {
            let counts = block.execute(engine, call)?;
            start = beside.recorder.record(call.kind, start, counts);
        }
        beside.steps += 1;
    }
}
