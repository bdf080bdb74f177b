//! 5,000 records into a fresh directory of each engine, measured by criterion: the insert loop
//! alone, as the published comparison timed it. For a look at a change; the main job is
//! `insert_500k`.

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use engines::OpenOptions;
use engines::registry::{self, Registration};
use harness::workload::insert::InsertRecords;
use harness::workload::job::Records;
use harness::workload::values::{Corpus, Framing};

const ITEMS: u64 = 5_000;

/// A key with its value.
type Record = (Vec<u8>, Vec<u8>);

fn insert_5k(criterion: &mut Criterion) {
    let records = InsertRecords::new(Corpus::Varied, Framing::Json, 42);
    let records: Vec<Record> = (0..ITEMS)
        .map(|number| {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            records.write_key(number, &mut key);
            records.write_value(number, 0, &mut value);
            (key, value)
        })
        .collect();

    let mut group = criterion.benchmark_group("insert_5k");
    group.throughput(Throughput::Elements(ITEMS));
    for engine in registry::all() {
        if let Err(reason) = (engine.available)() {
            eprintln!("not run: {reason}");
            continue;
        }
        group.bench_function(BenchmarkId::from_parameter(engine.name), |bencher| {
            bencher.iter_custom(|iterations| {
                (0..iterations).map(|_| load_once(engine, &records)).sum()
            });
        });
    }
    group.finish();
}

/// The time that the engine takes for the puts. Opening, closing and removing are not counted.
fn load_once(engine: &Registration, records: &[Record]) -> Duration {
    try_load_once(engine, records).unwrap_or_else(|error| {
        eprintln!("{}: {error}", engine.name);
        std::process::exit(1);
    })
}

fn try_load_once(engine: &Registration, records: &[Record]) -> engines::Result<Duration> {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .map_err(engines::Error::io("make a directory in", env!("CARGO_TARGET_TMPDIR")))?;
    let store = engine.open(directory.path(), &OpenOptions::new())?;
    let began = Instant::now();
    for (key, value) in records {
        store.put(key, value)?;
    }
    let took = began.elapsed();
    store.close()?;
    Ok(took)
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3));
    targets = insert_5k
}
criterion_main!(benches);
