//! Reads beside a writer and merges: how much longer the slowest of a thousand takes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use engines::Engine;
use engines::bitcask::{Bitcask, MergePolicy, Options};
use harness::workload::rng::SplitMix64;

use crate::Bench;
use crate::records::Records;
use benches::figure::{Figure, Target};

const READERS: u64 = 4;
const TIME: Duration = Duration::from_secs(10);

pub(crate) fn run(bench: &Bench) -> engines::Result<Vec<Figure>> {
    let records = Records::new(42);
    let scratch = bench.scratch()?;
    // Merges as soon as a fifth is dead: there is always one running.
    let merge = MergePolicy {
        trigger_dead_fraction: 0.2,
        threshold_dead_fraction: 0.1,
        ..MergePolicy::default()
    };
    let options = Options { max_file_bytes: 64 << 20, merge, ..Options::default() };
    let store = Bitcask::open(scratch.path(), options)?;
    records.load(&store, bench.items)?;
    store.quiesce()?;
    let time = if bench.items < 10_000 { Duration::from_millis(100) } else { TIME };

    let idle = read_for(&store, &records, bench.items, time)?;
    let (stop, written) = (AtomicBool::new(false), AtomicU64::new(0));
    let busy = thread::scope(|scope| {
        let writer = scope.spawn(|| overwrite(&store, bench.items, &stop, &written));
        let busy = read_for(&store, &records, bench.items, time);
        stop.store(true, Ordering::Relaxed);
        match writer.join() {
            Ok(result) => result.and(busy),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })?;
    let stats = store.stats()?;
    let us = |latencies: &[u32], share: f64| f64::from(percentile(latencies, share)) / 1e3;
    let (before, after) = (us(&idle, 0.999), us(&busy, 0.999));
    Box::new(store).close()?;
    Ok(vec![
        Figure::new("4 readers, idle: median", us(&idle, 0.5), "us"),
        Figure::new("4 readers, idle: p99.9", before, "us"),
        Figure::new("beside a writer and merges: median", us(&busy, 0.5), "us"),
        Figure::new("beside a writer and merges: p99.9", after, "us"),
        Figure::new("busy : idle, p99.9", after / before, "x").target(Target::AtMost(10.0)),
        Figure::new("reads beside them", busy.len() as f64 / time.as_secs_f64() / 1e3, "k/s"),
        Figure::new(
            "writes meanwhile",
            written.load(Ordering::Relaxed) as f64 / time.as_secs_f64() / 1e3,
            "k/s",
        ),
        Figure::new("merges meanwhile", stats.compaction_count.unwrap_or(0) as f64, ""),
    ])
}

/// The latencies of all readers in nanoseconds, sorted.
fn read_for(
    store: &Bitcask,
    records: &Records,
    items: u64,
    time: Duration,
) -> engines::Result<Vec<u32>> {
    let readers = thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS)
            .map(|reader| scope.spawn(move || read(store, records, items, reader, time)))
            .collect();
        readers
            .into_iter()
            .map(|reader| match reader.join() {
                Ok(latencies) => latencies,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect::<engines::Result<Vec<_>>>()
    });
    let mut all = readers?.concat();
    all.sort_unstable();
    Ok(all)
}

fn read(
    store: &Bitcask,
    records: &Records,
    items: u64,
    reader: u64,
    time: Duration,
) -> engines::Result<Vec<u32>> {
    let items = usize::try_from(items).unwrap_or(usize::MAX);
    let mut rng = SplitMix64::for_index(7, reader);
    let mut latencies = Vec::new();
    let started = Instant::now();
    while started.elapsed() < time {
        let key = records.key(rng.below(items) as u64);
        let began = Instant::now();
        let found = store.get(&key, &mut |value| {
            std::hint::black_box(value);
        })?;
        latencies.push(u32::try_from(began.elapsed().as_nanos()).unwrap_or(u32::MAX));
        if !found {
            return Err(engines::Error::InvalidArgument("a key was not found".to_owned()));
        }
    }
    Ok(latencies)
}

fn overwrite(
    store: &Bitcask,
    items: u64,
    stop: &AtomicBool,
    written: &AtomicU64,
) -> engines::Result<()> {
    let records = Records::new(43);
    let items = usize::try_from(items).unwrap_or(usize::MAX);
    let mut rng = SplitMix64::new(9);
    while !stop.load(Ordering::Relaxed) {
        let index = rng.below(items) as u64;
        store.put(&records.key(index), &records.value(index))?;
        written.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn percentile(sorted: &[u32], share: f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
    let at = (sorted.len() as f64 * share) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0)
}
