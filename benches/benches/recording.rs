//! What the laboratory itself costs: the whole way of an operation through it, with an engine that
//! does nothing, on one thread.
//!
//! ```text
//! cargo bench --bench recording
//! ```
//! It prints what recording an operation costs (the clock, the histogram, the counts and the time
//! line), and the operations a second of YCSB's workload C and of small puts: with the clock that
//! results show, which stands while operations are made, and by the time that all of it took.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::Instant;

use harness::measure::recorder::{Counts, Recorder};
use harness::results::{Client, Run};
use harness::run::child::run_here;
use harness::run::plan::RunPlan;
use harness::workload::Workload;
use harness::workload::op::Kind;
use harness::workload::ycsb::{Distribution, Mix, Ycsb};

const FULL: u64 = 10_000_000;
const TINY: u64 = 10_000;

fn main() -> ExitCode {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let count = if is_bench { FULL } else { TINY };
    println!("recording an operation: {:.1} ns", record(count));
    for (name, ycsb) in [("reads, YCSB C", reads(count)), ("puts of 100 bytes", puts(count))] {
        match through_everything(ycsb, count) {
            Ok((clock, wall)) => println!(
                "{name}: {clock:.2} million a second by the clock of results, {wall:.2} with \
                 making the operations"
            ),
            Err(error) => {
                eprintln!("{name}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// Nanoseconds of a call to the recorder, the reading of the clock in it.
fn record(count: u64) -> f64 {
    let mut recorder = Recorder::new(quanta::Clock::new());
    let mut start = recorder.resume(0);
    let began = Instant::now();
    for number in 0..count {
        let kind = if number % 2 == 0 { Kind::Read } else { Kind::Insert };
        let counts = Counts { operations: 1, read_bytes: number % 128, ..Counts::default() };
        start = recorder.record(black_box(kind), start, black_box(counts));
    }
    let took = began.elapsed();
    assert_eq!(recorder.timeline().iter().sum::<u64>(), count);
    took.as_secs_f64() * 1e9 / count as f64
}

fn reads(operations: u64) -> Ycsb {
    Ycsb {
        records: operations / 100,
        operations,
        mix: Mix { read: 1.0, update: 0.0, insert: 0.0, scan: 0.0, read_modify_write: 0.0 },
        distribution: Distribution::Zipfian,
        ..Ycsb::default()
    }
}

fn puts(operations: u64) -> Ycsb {
    Ycsb {
        field_count: 1,
        field_length: 100,
        write_all_fields: true,
        mix: Mix { read: 0.0, update: 1.0, insert: 0.0, scan: 0.0, read_modify_write: 0.0 },
        ..reads(operations)
    }
}

/// Millions of operations a second of a whole run, with and without the making of operations.
fn through_everything(ycsb: Ycsb, count: u64) -> harness::Result<(f64, f64)> {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .map_err(harness::Error::io("make a directory in", env!("CARGO_TARGET_TMPDIR")))?;
    let plan = RunPlan {
        engine: "null".to_owned(),
        repeat: 1,
        workload: Workload::Ycsb(ycsb),
        client: Client { threads: NonZeroU32::MIN, seed: 42, rate: None },
        settings: Default::default(),
        conditions: Default::default(),
        directory: directory.path().to_path_buf(),
    };
    let run: Run = run_here(&plan)?;
    let millions = |seconds: f64| count as f64 / seconds / 1e6;
    let phase = run.phase("run").cloned().unwrap_or_default();
    Ok((millions(phase.seconds), millions(phase.wall_seconds)))
}
