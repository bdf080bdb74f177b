//! Level `power`: what threads that write at once gain by sharing a sync. With large values the
//! disk's bandwidth bounds the gain, so small records are what is held against the target.

use benches::figure::{Figure, Target};
use engines::Durability;
use harness::Result;
use harness::results::{Phase, Run, Settings};
use harness::workload::Workload;
use harness::workload::values::Corpus;

use crate::lab::{Job, Lab};

const ENGINES: [&str; 3] = ["lsm", "rocksdb", "leveldb"];

pub(crate) fn run(lab: &Lab) -> Result<Vec<Figure>> {
    let items = (lab.items / 25).max(100);
    let mut figures = Vec::new();
    for (size, workload, target) in [
        ("100 bytes", lab.small_records(items * 2), Some(Target::AtLeast(4.0))),
        ("2,656 bytes", lab.insert(items, Corpus::Varied), None),
    ] {
        figures.extend(measure(lab, size, &workload, target)?);
    }
    Ok(figures)
}

fn measure(
    lab: &Lab,
    size: &str,
    workload: &Workload,
    target: Option<Target>,
) -> Result<Vec<Figure>> {
    let settings = Settings { durability: Durability::Power, ..Settings::default() };
    let at =
        |threads| lab.compare(Job { threads, settings, ..Job::new(workload.clone(), &ENGINES) });
    let (one, eight) = (at(1)?, at(8)?);
    let mut figures = Vec::new();
    for engine in ENGINES {
        let rate = |run: &Run| run.phase("load").and_then(Phase::throughput);
        let (Some(one), Some(eight)) = (one.median(engine, rate), eight.median(engine, rate))
        else {
            continue;
        };
        for (threads, rate) in [("1 thread", one), ("8 threads", eight)] {
            let name = format!("power, {size}, {threads}: {engine}");
            figures.push(Figure::new(name, rate / 1e3, "k/s"));
        }
        let ratio = Figure::new(format!("power, {size}, 8 : 1: {engine}"), eight / one, "x");
        figures.push(match target {
            Some(target) if engine == "lsm" => ratio.target(target),
            _ => ratio,
        });
    }
    Ok(figures)
}
