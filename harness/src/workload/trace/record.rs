//! Writing down what a workload does, without an engine.

use std::fs::File;
use std::path::Path;

use super::facts::{Facts, Format, Recorded};
use super::format::{Description, TracePhase, TraceWriter};
use crate::results::Client;
use crate::workload::Workload;
use crate::workload::custom::PhaseKind;
use crate::workload::job::{Traffic, Work};
use crate::{Error, Result};

/// Writes all operations of `workload`, as one thread carries them out, to `file`. Returns how
/// many there are.
///
/// # Errors
/// [`Error::Usage`] for a workload that ends when its time is up, [`Error::Io`].
pub(crate) fn record(
    workload: &Workload,
    client: &Client,
    file: &File,
    path: &Path,
) -> Result<u64> {
    let job = workload.spec().job(client)?;
    let mut writer = TraceWriter::new(file, path)?;
    let (mut phases, mut operations) = (Vec::new(), 0);
    for phase in job.phases() {
        let kind = match &phase.work {
            Work::Traffic(traffic) => {
                if traffic.limit.is_some() {
                    return Err(Error::Usage(format!(
                        "phase {:?} ends when its time is up: what it does is known only to a run",
                        phase.name
                    )));
                }
                if traffic.background.is_some() {
                    return Err(Error::Usage(format!(
                        "phase {:?} has a thread beside the others: how much it does is known only \
                         to a run",
                        phase.name
                    )));
                }
                let count = write(traffic, &mut writer)?;
                job.check()?;
                operations += count;
                phases.push(TracePhase {
                    name: phase.name,
                    kind: PhaseKind::Operations,
                    operations: count,
                    batch: traffic.batch.max(1),
                    step_bytes: traffic.step_bytes,
                });
                continue;
            }
            Work::Quiesce => PhaseKind::Quiesce,
            Work::Compact => PhaseKind::Compact,
            Work::Sync => PhaseKind::Sync,
            Work::Reopen => PhaseKind::Reopen,
            Work::OpenAgain(_) | Work::Anew | Work::Stats => {
                return Err(Error::Usage(format!(
                    "phase {:?} has no operations that a trace could hold",
                    phase.name
                )));
            }
        };
        phases.push(TracePhase::without_operations(&phase.name, kind));
    }
    let recorded = Recorded { workload: Box::new(workload.clone()), client: *client };
    let facts = Facts { format: Format::Recorded, recorded: Some(recorded), ..Facts::default() };
    let (keys, key_bytes, times) = (0, 0, 0);
    writer.finish(&Description { operations, keys, key_bytes, times, phases, facts })?;
    Ok(operations)
}

fn write(traffic: &Traffic<'_>, writer: &mut TraceWriter<'_>) -> Result<u64> {
    let (mut stream, mut ops, mut count) = ((traffic.stream)(), Vec::new(), 0);
    for step in 0..traffic.steps {
        ops.clear();
        stream.step(step, step, &mut ops);
        count += ops.len() as u64;
        ops.iter().try_for_each(|op| writer.op(op))?;
    }
    Ok(count)
}
