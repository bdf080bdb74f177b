//! Small records in key order, in batches: ten times as many must not be slower.

use std::time::Instant;

use engines::bitcask::{Bitcask, Options};
use engines::{Batch, Engine};
use harness::workload::rng::SplitMix64;

use crate::Bench;
use benches::figure::{Figure, Target, median};

const VALUE_BYTES: usize = 250;
const BATCH: u64 = 100;
/// Batches made at once, outside the clock.
const CHUNK: u64 = 1_000;

pub(crate) fn run(bench: &Bench) -> engines::Result<Vec<Figure>> {
    let (few, many) = (bench.items, bench.items * 10);
    let (mut few_rates, mut many_rates) = (Vec::new(), Vec::new());
    let mut last = None;
    for _ in 0..bench.rounds {
        few_rates.push(load(bench, few)?.rate);
        let loaded = load(bench, many)?;
        many_rates.push(loaded.rate);
        last = Some(loaded);
    }
    let (few_rate, many_rate) = (median(few_rates), median(many_rates));
    let mut figures = vec![
        Figure::new(format!("250 bytes, batches of 100: {few}"), few_rate / 1e3, "k/s"),
        Figure::new(format!("250 bytes, batches of 100: {many}"), many_rate / 1e3, "k/s"),
        Figure::new("many : few", many_rate / few_rate, "x").target(Target::AtLeast(0.85)),
    ];
    if let Some(loaded) = last {
        figures.extend([
            Figure::new("keydir, 32-byte keys", loaded.keydir_bytes / many as f64, "bytes/key")
                .target(Target::AtMost(48.0)),
            Figure::new("longest growth of the keydir", loaded.longest_growth_us / 1e3, "ms")
                .target(Target::AtMost(20.0)),
            Figure::new("longest batch", loaded.longest_batch_us / 1e3, "ms"),
        ]);
    }
    Ok(figures)
}

struct Loaded {
    rate: f64,
    keydir_bytes: f64,
    longest_growth_us: f64,
    longest_batch_us: f64,
}

fn load(bench: &Bench, count: u64) -> engines::Result<Loaded> {
    let scratch = bench.scratch()?;
    let store = Bitcask::open(scratch.path(), Options::default())?;
    let mut rng = SplitMix64::new(5);
    let (mut took, mut longest, mut index) = (0.0, 0.0_f64, 0);
    while index < count {
        let end = count.min(index + BATCH * CHUNK);
        let mut batches = vec![Batch::new()];
        for number in index..end {
            if batches.last().is_some_and(|batch| u64::from(batch.count()) == BATCH) {
                batches.push(Batch::new());
            }
            if let Some(batch) = batches.last_mut() {
                batch.put(format!("{number:032x}").as_bytes(), &value(&mut rng))?;
            }
        }
        index = end;
        let began = Instant::now();
        for batch in &batches {
            let began = Instant::now();
            store.write(batch)?;
            longest = longest.max(began.elapsed().as_secs_f64());
        }
        took += began.elapsed().as_secs_f64();
    }
    let stats = store.stats()?;
    let detail = |name: &str| {
        let found = stats.details.iter().find(|(other, _)| other == name);
        found.and_then(|(_, value)| value.parse().ok()).unwrap_or(f64::NAN)
    };
    let loaded = Loaded {
        rate: count as f64 / took,
        keydir_bytes: detail("keydir_bytes"),
        longest_growth_us: detail("longest_keydir_growth_us"),
        longest_batch_us: longest * 1e6,
    };
    Box::new(store).close()?;
    Ok(loaded)
}

fn value(rng: &mut SplitMix64) -> [u8; VALUE_BYTES] {
    let mut value = [0; VALUE_BYTES];
    for piece in value.chunks_mut(8) {
        piece.copy_from_slice(&rng.next_u64().to_le_bytes()[..piece.len()]);
    }
    value
}
