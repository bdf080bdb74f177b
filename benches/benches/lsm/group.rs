//! Level `power`: what threads that write at once gain by sharing a sync.

use benches::figure::{Figure, Target};
use engines::Durability;
use harness::Result;
use harness::results::{Phase, Settings};
use harness::workload::values::Corpus;

use crate::lab::{Job, Lab};

const ENGINES: [&str; 3] = ["lsm", "rocksdb", "leveldb"];

pub(crate) fn run(lab: &Lab) -> Result<Vec<Figure>> {
    let items = (lab.items / 50).max(100);
    let settings = Settings { durability: Durability::Power, ..Settings::default() };
    let at = |threads| {
        let job = Job::new(lab.insert(items, Corpus::Varied), &ENGINES);
        lab.compare(Job { threads, settings, ..job })
    };
    let (one, eight) = (at(1)?, at(8)?);
    let mut figures = Vec::new();
    for engine in ENGINES {
        let rate = |run: &harness::results::Run| run.phase("load").and_then(Phase::throughput);
        let (Some(one), Some(eight)) = (one.median(engine, rate), eight.median(engine, rate))
        else {
            continue;
        };
        figures.push(Figure::new(format!("power, 1 thread: {engine}"), one / 1e3, "k/s"));
        figures.push(Figure::new(format!("power, 8 threads: {engine}"), eight / 1e3, "k/s"));
        let ratio = Figure::new(format!("power, 8 threads : 1: {engine}"), eight / one, "x");
        figures.push(match engine {
            "lsm" => ratio.target(Target::AtLeast(4.0)),
            _ => ratio,
        });
    }
    Ok(figures)
}
