//! Loads: until the last put returned, and until all background work and compaction are done.

use benches::figure::{Figure, Target};
use harness::Result;
use harness::results::Run;
use harness::workload::Workload;
use harness::workload::values::Corpus;

use crate::lab::{Job, Lab, Measure};

const ENGINES: [&str; 3] = ["lsm", "rocksdb", "fjall"];

pub(crate) fn run(lab: &Lab) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let varied = lab.insert(lab.items, Corpus::Varied);
    measure(lab, "varied", varied, 0.4, true, &mut figures)?;
    measure(lab, "fixed", lab.insert(lab.items, Corpus::Fixed), 0.5, false, &mut figures)?;
    measure(lab, "100 bytes", lab.small_records(lab.items * 4), 0.5, false, &mut figures)?;
    Ok(figures)
}

/// Load, quiesce and compact are to take at most `most` of what others take. With `all` the load
/// alone and the space are held against RocksDB's too.
fn measure(
    lab: &Lab,
    name: &str,
    workload: Workload,
    most: f64,
    all: bool,
    figures: &mut Vec<Figure>,
) -> Result<()> {
    let compared = lab.compare(Job::new(workload, &ENGINES))?;
    let of = |engine: &str, figure: Measure| compared.median(engine, figure);
    for engine in ENGINES {
        for (what, figure, unit) in [
            ("load", load as Measure, "s"),
            ("load to compact", everything, "s"),
            ("after compact", megabytes, "MB"),
        ] {
            let value = of(engine, figure);
            figures.extend(
                value.map(|value| Figure::new(format!("{name}, {what}: {engine}"), value, unit)),
            );
        }
    }
    let mut ratio = |what: &str, peer: &str, figure: Measure, most: f64| {
        if let (Some(ours), Some(theirs)) = (of("lsm", figure), of(peer, figure)) {
            let named = Figure::new(format!("{name}, {what}: lsm : {peer}"), ours / theirs, "x");
            figures.push(named.target(Target::AtMost(most)));
        }
    };
    ratio("load to compact", "rocksdb", everything, most);
    ratio("load to compact", "fjall", everything, most);
    if all {
        ratio("load", "rocksdb", load, 0.6);
        ratio("after compact", "rocksdb", megabytes, 1.0);
    }
    Ok(())
}

fn load(run: &Run) -> Option<f64> {
    run.seconds("load")
}

fn everything(run: &Run) -> Option<f64> {
    Some(run.seconds("load")? + run.seconds("quiesce")? + run.seconds("compact")?)
}

fn megabytes(run: &Run) -> Option<f64> {
    Some(run.disk_after("compact")?.apparent_bytes as f64 / 1e6)
}
