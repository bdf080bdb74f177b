//! File calls that fail: the workload runs again and again, each time with another call failing,
//! once or from then on. Nothing panics, what was acknowledged stays visible, and after opening
//! again, with or without power loss, what was promised is there.

use engines::fs::sim::{CrashModel, FaultKind, FaultPoint, FaultScope, SimFs};

use super::oracle::{Law, Oracle};
use super::workload::{Shape, Subject, record};
use super::{Report, check_live, guarded, recover};

const IO: FaultPoint = FaultPoint {
    after: 0,
    scope: FaultScope::Mutating,
    kind: FaultKind::Io,
    sticky: false,
    short_write: true,
};

/// A broken device, a full one, a refusal, and failing syncs; each once and for good.
const FAULTS: [FaultPoint; 8] = [
    IO,
    FaultPoint { sticky: true, short_write: false, ..IO },
    FaultPoint { scope: FaultScope::TakesSpace, kind: FaultKind::NoSpace, ..IO },
    FaultPoint { scope: FaultScope::TakesSpace, kind: FaultKind::NoSpace, sticky: true, ..IO },
    FaultPoint { scope: FaultScope::Sync, ..IO },
    FaultPoint { scope: FaultScope::Sync, sticky: true, ..IO },
    FaultPoint { scope: FaultScope::Any, ..IO },
    FaultPoint { scope: FaultScope::Any, kind: FaultKind::Denied, sticky: true, ..IO },
];

/// Lets each call fail in turn until the workload has no more calls.
pub(crate) fn fail_everywhere(subject: Subject<'_>, shape: Shape) -> Report {
    let mut report = Report::default();
    for fault in FAULTS {
        let mut after = 0;
        while fail_at(subject, shape, FaultPoint { after, ..fault }, &mut report) {
            after += 1;
        }
    }
    report
}

/// Whether the workload came to the failing call.
fn fail_at(subject: Subject<'_>, shape: Shape, fault: FaultPoint, report: &mut Report) -> bool {
    let disk = SimFs::new();
    disk.fail_at(fault);
    let place = || format!("{} {} seed {} {fault:?}", subject.name, subject.durability, shape.seed);
    let recording = match guarded(|| Ok(record(subject, &disk, &shape.draw()))) {
        Ok(recording) => recording,
        Err(problem) => {
            report.find(format!("{}: {problem}", place()));
            return disk.fault_count() > 0;
        }
    };
    if disk.fault_count() == 0 {
        return false;
    }
    if fault.scope != FaultScope::Any {
        let mut live = Report::default();
        check_live(&recording, &mut live);
        live.findings.iter().for_each(|problem| report.find(format!("{}: {problem}", place())));
    }
    let mut oracle = Oracle::new(recording.history.clone());
    for model in [CrashModel::KeepAll, CrashModel::DropUnsynced] {
        report.crashes += 1;
        let cut = recording.trace.len();
        let image = recording.trace.crash_at(cut, model);
        let verdict = recover(subject, &image, &oracle, report)
            .and_then(|state| oracle.check(&state, cut, model, Law::EachKey));
        if let Err(problem) = verdict {
            let errors = recording.errors.first();
            report.find(format!("{} {model:?}: {problem}; first error: {errors:?}", place()));
        }
    }
    true
}
