//! 5,000 records into a fresh directory of each engine, measured by criterion: the insert loop
//! alone, as the published comparison timed it. For a look at a change; the main job is
//! `insert_500k`.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use engines::OpenOptions;
use engines::registry::{self, Registration};
use harness::workload::insert::{Insert, Oracle, Records};
use harness::workload::values::{Corpus, Framing};

const ITEMS: u64 = 5_000;

fn insert_5k(criterion: &mut Criterion) {
    let insert = Insert {
        items: NonZeroU64::new(ITEMS).unwrap_or(NonZeroU64::MIN),
        batch: NonZeroU32::MIN,
        threads: NonZeroU32::MIN,
        corpus: Corpus::Varied,
        framing: Framing::Json,
        seed: 42,
    };
    let mut records = Records::default();
    records.fill(&Oracle::new(&insert), 0..ITEMS);

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
fn load_once(engine: &Registration, records: &Records) -> Duration {
    try_load_once(engine, records).unwrap_or_else(|error| {
        eprintln!("{}: {error}", engine.name);
        std::process::exit(1);
    })
}

fn try_load_once(engine: &Registration, records: &Records) -> engines::Result<Duration> {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .map_err(engines::Error::io("make a directory in", env!("CARGO_TARGET_TMPDIR")))?;
    let store = engine.open(directory.path(), &OpenOptions::new())?;
    let began = Instant::now();
    for (key, value) in records.iter() {
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
