//! Memory against the budget, phase by phase: what the process has of its own, mapped files not
//! counted, less what it had before the engine was opened.

use benches::figure::{Figure, Target};
use harness::Result;
use harness::results::{Run, Settings};
use harness::workload::Workload;
use harness::workload::values::Corpus;
use harness::workload::ycsb::{Distribution, Mix, Ycsb};

use crate::lab::{Compared, Job, Lab};

/// Phases that the figures are taken from, in their order.
const PHASES: [&str; 6] = ["load", "quiesce", "run", "compact", "verify", "count"];

pub(crate) fn run(lab: &Lab) -> Result<Vec<Figure>> {
    let scans = Workload::Ycsb(Ycsb {
        records: lab.items,
        // More than fit into the time; room for all of their inserts is asked for.
        operations: lab.items * 20,
        mix: Mix { read: 0.0, update: 0.0, insert: 0.1, scan: 0.9, read_modify_write: 0.0 },
        distribution: Distribution::Uniform,
        scan_lengths: [1, 100],
        max_seconds: Some(lab.seconds / 3 + 1),
        ..Ycsb::default()
    });
    let varied = lab.insert(lab.items, Corpus::Varied);
    let mut figures = Vec::new();
    for (name, workload, threads) in
        [("inserts", varied, 1), ("mixed", lab.mixed(), 2), ("scans", scans, 1)]
    {
        let job = Job { threads, ..Job::new(workload, &["lsm"]) };
        figures.extend(of_phases(name, &lab.compare(job)?));
    }
    Ok(figures)
}

fn of_phases(name: &str, compared: &Compared) -> Vec<Figure> {
    let budget = Settings::default().memory_bytes as f64;
    let mut figures = Vec::new();
    for phase in PHASES {
        let peak = |run: &Run| {
            let before = run.own_memory?.own_bytes;
            let peak = run.phase(phase)?.seen.peak_own_bytes?;
            Some(peak.saturating_sub(before) as f64 / budget)
        };
        if let Some(share) = compared.median("lsm", peak) {
            let figure = Figure::new(format!("memory : budget, {name}, {phase}"), share, "x");
            figures.push(figure.target(Target::AtMost(1.2)));
        }
    }
    figures
}
