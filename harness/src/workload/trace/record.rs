//! Writing down what a workload does, without an engine.

use std::fs::File;
use std::path::Path;

use super::facts::{Facts, Format, Recorded};
use super::format::{Description, OP_BYTES, TracePhase, TraceWork, TraceWriter};
use crate::files::output;
use crate::results::Client;
use crate::workload::Workload;
use crate::workload::job::{Phase, Traffic, Work};
use crate::{Error, Result, interrupt};

/// Writes all operations of `workload`, as one thread carries them out, to `file`. Returns how
/// many there are.
///
/// # Errors
/// [`Error::Usage`] for a workload that ends when its time is up or has a thread beside the others,
/// [`Error::Io`].
pub(crate) fn record(
    workload: &Workload,
    client: &Client,
    file: &File,
    path: &Path,
) -> Result<u64> {
    let job = workload.spec().job(client)?;
    let of_job = job.phases();
    let kinds: Vec<TraceWork> = of_job.iter().map(kind).collect::<Result<_>>()?;
    let steps = of_job.iter().map(|phase| match &phase.work {
        Work::Traffic(traffic) => traffic.steps,
        _ => 0,
    });
    // A step is an operation in most workloads.
    output::check_room(path, steps.sum::<u64>().saturating_mul(OP_BYTES as u64))?;
    let mut writer = TraceWriter::new(file, ("write", path))?;
    let (mut phases, mut operations) = (Vec::new(), 0);
    for (phase, kind) in of_job.into_iter().zip(kinds) {
        let Work::Traffic(traffic) = &phase.work else {
            phases.push(TracePhase::without_operations(&phase.name, kind));
            continue;
        };
        let count = write(traffic, &mut writer)?;
        job.check()?;
        operations += count;
        phases.push(TracePhase {
            name: phase.name,
            kind,
            operations: count,
            batch: traffic.batch.max(1),
            step_bytes: traffic.step_bytes,
            optional: traffic.optional,
        });
    }
    let recorded = Recorded { workload: Box::new(workload.clone()), client: *client };
    let facts = Facts { format: Format::Recorded, recorded: Some(recorded), ..Facts::default() };
    let (keys, key_bytes, times) = (0, 0, 0);
    writer.finish(&Description { operations, keys, key_bytes, times, phases, facts })?;
    Ok(operations)
}

/// What a trace calls the phase.
///
/// # Errors
/// [`Error::Usage`] for a phase that no trace can hold.
fn kind(phase: &Phase<'_>) -> Result<TraceWork> {
    let why = match &phase.work {
        Work::Traffic(traffic) if traffic.limit.is_some() => {
            "ends when its time is up: what it does is known only to a run"
        }
        Work::Traffic(traffic) if traffic.background.is_some() => {
            "has a thread beside the others: how much it does is known only to a run"
        }
        Work::Traffic(_) => return Ok(TraceWork::Operations),
        Work::Quiesce => return Ok(TraceWork::Quiesce),
        Work::Compact => return Ok(TraceWork::Compact),
        Work::Sync => return Ok(TraceWork::Sync),
        Work::Reopen => return Ok(TraceWork::Reopen),
        Work::OpenAgain(times) => return Ok(TraceWork::OpenAgain(*times)),
        Work::Anew => return Ok(TraceWork::Anew),
        Work::Stats => return Ok(TraceWork::Stats),
    };
    Err(Error::Usage(format!("phase {:?} {why}", phase.name)))
}

fn write(traffic: &Traffic<'_>, writer: &mut TraceWriter<'_>) -> Result<u64> {
    let (mut stream, mut ops, mut count) = ((traffic.stream)(), Vec::new(), 0);
    for step in 0..traffic.steps {
        interrupt::check()?;
        ops.clear();
        stream.step(step, step, &mut ops);
        count += ops.len() as u64;
        ops.iter().try_for_each(|op| writer.op(op))?;
    }
    Ok(count)
}
