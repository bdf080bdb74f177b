//! Uniform random reads of a warm store against LMDB.
//!
//! Twice: with values whose bytes are added up, as a reader does who wants them, which is what
//! counts; and with values that nobody looks at. The latter costs LMDB its search alone: it lends a
//! place in memory that was not read yet. Bitcask has read the value by then, to check its checksum.

use std::hint::black_box;
use std::thread;
use std::time::Instant;

use engines::{Engine, OpenOptions, registry};
use harness::workload::keys::Key;
use harness::workload::rng::SplitMix64;

use crate::Bench;
use crate::records::Records;
use benches::figure::{Figure, Target, median};

const READS: u64 = 200_000;

pub(crate) fn run(bench: &Bench) -> engines::Result<Vec<Figure>> {
    let records = Records::new(42);
    let (ours, theirs) = (bench.scratch()?, bench.scratch()?);
    let ours = registry::find("bitcask")?.open(ours.path(), &OpenOptions::new())?;
    let theirs = registry::find("lmdb")?.open(theirs.path(), &OpenOptions::new())?;
    for store in [&ours, &theirs] {
        records.load(store.as_ref(), bench.items)?;
        store.quiesce()?;
        // Warm, and every record right.
        (0..bench.items).try_for_each(|index| records.check(store.as_ref(), index))?;
    }
    let mut figures = Vec::new();
    for (look, what) in [(true, "added up"), (false, "not looked at")] {
        for threads in [1, 2] {
            let (mut our_rates, mut their_rates) = (Vec::new(), Vec::new());
            for round in 0..bench.rounds.max(3) {
                let keys = draw(bench, &records, threads, round as u64);
                our_rates.push(rate(ours.as_ref(), &keys, look)?);
                their_rates.push(rate(theirs.as_ref(), &keys, look)?);
            }
            let (our_rate, their_rate) = (median(our_rates), median(their_rates));
            let threads =
                if threads == 1 { "1 thread".into() } else { format!("{threads} threads") };
            let name = |engine| format!("read, {what}, {threads}: {engine}");
            figures.push(Figure::new(name("bitcask"), our_rate / 1e3, "k/s"));
            figures.push(Figure::new(name("lmdb"), their_rate / 1e3, "k/s"));
            let ratio = Figure::new(name("bitcask : lmdb"), our_rate / their_rate, "x");
            figures.push(if look { ratio.target(Target::AtLeast(1.3)) } else { ratio });
        }
    }
    ours.close()?;
    theirs.close()?;
    Ok(figures)
}

/// The keys that each thread reads.
fn draw(bench: &Bench, records: &Records, threads: u64, round: u64) -> Vec<Vec<Key>> {
    let items = usize::try_from(bench.items).unwrap_or(usize::MAX);
    let reads = READS.min(bench.items * 4);
    (0..threads)
        .map(|thread| {
            let mut rng = SplitMix64::for_index(round, thread);
            (0..reads / threads).map(|_| records.key(rng.below(items) as u64)).collect()
        })
        .collect()
}

/// Reads a second, all threads together.
fn rate(store: &dyn Engine, keys: &[Vec<Key>], look: bool) -> engines::Result<f64> {
    let began = Instant::now();
    let found = thread::scope(|scope| {
        let threads: Vec<_> =
            keys.iter().map(|keys| scope.spawn(move || read(store, keys, look))).collect();
        threads
            .into_iter()
            .map(|thread| match thread.join() {
                Ok(found) => found,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .sum::<engines::Result<usize>>()
    })?;
    let took = began.elapsed().as_secs_f64();
    let wanted: usize = keys.iter().map(Vec::len).sum();
    if found != wanted {
        return Err(engines::Error::InvalidArgument(format!(
            "{} of {wanted} keys were not found",
            wanted - found
        )));
    }
    Ok(found as f64 / took)
}

fn read(store: &dyn Engine, keys: &[Key], look: bool) -> engines::Result<usize> {
    let mut found = 0;
    for key in keys {
        found += usize::from(store.get(key, &mut |value| {
            if look {
                black_box(value.iter().map(|byte| u64::from(*byte)).sum::<u64>());
            } else {
                black_box(value);
            }
        })?);
    }
    Ok(found)
}
