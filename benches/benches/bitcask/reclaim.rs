//! Everything overwritten four times, then compacted: what disk space that takes.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use engines::Engine;
use engines::bitcask::{Bitcask, Options};

use crate::Bench;
use crate::records::Records;
use benches::figure::{Figure, Target};

pub(crate) fn run(bench: &Bench) -> engines::Result<Vec<Figure>> {
    let scratch = bench.scratch()?;
    let store = Bitcask::open(scratch.path(), Options::default())?;
    let began = Instant::now();
    let ((), load_peak) = with_peak(scratch.path(), || {
        (0..=4).try_for_each(|seed| Records::new(seed).load(&store, bench.items).map(drop))
    })?;
    let loaded = began.elapsed();
    let before = bytes_in(scratch.path());
    let began = Instant::now();
    let ((), peak) = with_peak(scratch.path(), || store.compact())?;
    let compacted = began.elapsed();
    let after = bytes_in(scratch.path());
    let records = Records::new(4);
    (0..bench.items).try_for_each(|index| records.check(&store, index))?;
    let live_bytes = bench.items as f64 * (14 + 32 + records.value(0).len()) as f64;
    let hint_bytes = bytes_of(scratch.path(), ".hint");
    let stats = store.stats()?;
    Box::new(store).close()?;
    let times = |bytes: u64| bytes as f64 / live_bytes;
    Ok(vec![
        Figure::new("written 5 times, merges in between", loaded.as_secs_f64(), "s"),
        Figure::new("disk at the peak of that : live bytes", times(load_peak), "x"),
        Figure::new("disk before compact : live bytes", times(before), "x"),
        Figure::new("compact", compacted.as_secs_f64(), "s"),
        Figure::new("disk at the peak of compact : live bytes", times(peak), "x"),
        Figure::new("data files after compact : live bytes", times(after - hint_bytes), "x")
            .target(Target::AtMost(1.02)),
        Figure::new("all files after compact : live bytes", times(after), "x")
            .target(Target::AtMost(1.02)),
        Figure::new("merges", stats.compaction_count.unwrap_or(0) as f64, ""),
    ])
}

/// Runs `work` and tells the most bytes that lay in `directory` meanwhile.
fn with_peak<T>(
    directory: &Path,
    work: impl FnOnce() -> engines::Result<T>,
) -> engines::Result<(T, u64)> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut peak = 0;
            while !done.load(Ordering::Relaxed) {
                peak = peak.max(bytes_in(directory));
                thread::sleep(Duration::from_millis(5));
            }
            peak
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        match watcher.join() {
            Ok(peak) => Ok((result?, peak)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn bytes_in(directory: &Path) -> u64 {
    bytes_of(directory, "")
}

/// Files may come and go while they are counted.
fn bytes_of(directory: &Path, suffix: &str) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(suffix))
        .filter_map(|entry| entry.metadata().ok())
        .map(|metadata| metadata.len())
        .sum()
}
