//! Opening from hint files, warm.

use std::time::Instant;

use engines::bitcask::{Bitcask, Options};
use engines::{Batch, Engine};

use crate::Bench;
use crate::records::Records;
use benches::figure::{Figure, Target, median};

/// Records of the second store, without values to speak of: what opening costs is the keys.
const SMALL_FACTOR: u64 = 6;

pub(crate) fn run(bench: &Bench) -> engines::Result<Vec<Figure>> {
    let (large, small) = (bench.scratch()?, bench.scratch()?);
    {
        let store = Bitcask::open(large.path(), Options::default())?;
        Records::new(42).load(&store, bench.items)?;
        Box::new(store).close()?;
    }
    let small_count = bench.items * SMALL_FACTOR;
    {
        let records = Records::new(42);
        let store = Bitcask::open(small.path(), Options::default())?;
        let mut batch = Batch::new();
        for index in 0..small_count {
            batch.put(&records.key(index), &index.to_be_bytes())?;
            if batch.count() == 1_000 {
                store.write(&batch)?;
                batch = Batch::new();
            }
        }
        store.write(&batch)?;
        Box::new(store).close()?;
    }
    let mut figures = Vec::new();
    for (what, directory, count) in [
        ("2,656-byte values", large.path(), bench.items),
        ("8-byte values", small.path(), small_count),
    ] {
        let mut rates = Vec::new();
        for _ in 0..bench.rounds.max(3) {
            let began = Instant::now();
            let store = Bitcask::open(directory, Options::default())?;
            rates.push(count as f64 / began.elapsed().as_secs_f64());
            if store.stats()?.live_records != Some(count) {
                return Err(engines::Error::InvalidArgument("records are missing".to_owned()));
            }
            Box::new(store).close()?;
        }
        let figure = Figure::new(
            format!("open from hints, {count} {what}"),
            median(rates) / 1e6,
            "million/s",
        );
        figures.push(figure.target(Target::AtLeast(3.0)));
    }
    Ok(figures)
}
