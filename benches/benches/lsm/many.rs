//! Ten times as many small records: what grows with them must not slow the load down.

use benches::figure::{Figure, Target};
use harness::Result;
use harness::results::{Phase, Run};

use crate::lab::{Job, Lab};

pub(crate) fn run(lab: &Lab) -> Result<Vec<Figure>> {
    let (few, many) = (lab.items, lab.items * 10);
    let at = |records| lab.compare(Job::new(lab.small_records(records), &["lsm", "rocksdb"]));
    let (loaded_few, loaded_many) = (at(few)?, at(many)?);
    let rate = |run: &Run| run.phase("load").and_then(Phase::throughput);
    let mut figures = Vec::new();
    for engine in ["lsm", "rocksdb"] {
        let rates = (loaded_few.median(engine, rate), loaded_many.median(engine, rate));
        let (Some(few_rate), Some(many_rate)) = rates else { continue };
        for (count, rate) in [(few, few_rate), (many, many_rate)] {
            figures.push(Figure::new(format!("100 bytes, {count}: {engine}"), rate / 1e3, "k/s"));
        }
        let ratio = Figure::new(format!("many : few: {engine}"), many_rate / few_rate, "x");
        figures.push(match engine {
            "lsm" => ratio.target(Target::AtLeast(0.75)),
            _ => ratio,
        });
    }
    Ok(figures)
}
