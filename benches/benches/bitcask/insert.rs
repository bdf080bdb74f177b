//! Inserts one by one at level `process`.

use engines::{OpenOptions, registry};
use harness::workload::rng::SplitMix64;

use crate::Bench;
use crate::records::Records;
use benches::figure::{Figure, Target, median};

pub(crate) fn run(bench: &Bench) -> engines::Result<Vec<Figure>> {
    let mut engines = vec![registry::find("bitcask")?, registry::find("raw-append")?];
    for name in &bench.peers {
        let peer = registry::find(name)?;
        match (peer.available)() {
            Ok(()) => engines.push(peer),
            Err(reason) => eprintln!("not run: {reason}"),
        }
    }
    let records = Records::new(42);
    let mut times: Vec<(&str, Vec<f64>)> =
        engines.iter().map(|engine| (engine.name, Vec::new())).collect();
    let mut order: Vec<usize> = (0..engines.len()).collect();
    for round in 0..bench.rounds {
        SplitMix64::for_index(42, round as u64).shuffle(&mut order);
        for &index in &order {
            let scratch = bench.scratch()?;
            let store = engines[index].open(scratch.path(), &OpenOptions::new())?;
            let took = records.load(store.as_ref(), bench.items)?;
            for check in (0..bench.items).step_by(97) {
                records.check(store.as_ref(), check)?;
            }
            store.close()?;
            times[index].1.push(took.as_secs_f64());
        }
    }
    let medians: Vec<(&str, f64)> =
        times.into_iter().map(|(name, times)| (name, median(times))).collect();
    let mut figures: Vec<_> = medians
        .iter()
        .map(|(name, time)| Figure::new(format!("insert {}: {name}", bench.items), *time, "s"))
        .collect();
    let (ours, raw) = (medians[0].1, medians[1].1);
    figures.push(Figure::new("bitcask : raw-append", ours / raw, "x").target(Target::AtMost(0.75)));
    let peers = medians.iter().skip(2).map(|(_, time)| *time);
    if let Some(fastest) = peers.min_by(f64::total_cmp) {
        let ratio = Figure::new("fastest peer : bitcask", fastest / ours, "x");
        figures.push(ratio.target(Target::AtLeast(2.5)));
    }
    Ok(figures)
}
