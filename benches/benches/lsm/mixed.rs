//! Updates and reads, half and half, of zipfian keys with two threads.

use benches::figure::{Figure, Target};
use harness::Result;
use harness::measure::figures::decode;
use harness::results::{Phase, Run};

use crate::lab::{Job, Lab, Measure};

const ENGINES: [&str; 3] = ["lsm", "rocksdb", "leveldb"];

/// Name, unit, what RocksDB's is multiplied by at most or at least, and how it is measured.
const AGAINST_ROCKSDB: [(&str, &str, Target, Measure); 4] = [
    ("mixed, operations", "k/s", Target::AtLeast(1.0), throughput),
    ("mixed, p99.9 of all", "us", Target::AtMost(1.0), p999),
    ("mixed, longest call", "ms", Target::AtMost(1.0), longest),
    ("mixed, longest time without an end", "ms", Target::AtMost(1.0), stall),
];

pub(crate) fn run(lab: &Lab) -> Result<Vec<Figure>> {
    let compared = lab.compare(Job { threads: 2, ..Job::new(lab.mixed(), &ENGINES) })?;
    let mut figures = Vec::new();
    for (name, unit, target, measure) in AGAINST_ROCKSDB {
        figures.extend(ENGINES.iter().filter_map(|engine| {
            let value = compared.median(engine, measure)?;
            Some(Figure::new(format!("{name}: {engine}"), value, unit))
        }));
        let (ours, theirs) = (compared.median("lsm", measure), compared.median("rocksdb", measure));
        if let (Some(ours), Some(theirs)) = (ours, theirs)
            && theirs > 0.0
        {
            let ratio = Figure::new(format!("{name}: lsm : rocksdb"), ours / theirs, "x");
            figures.push(ratio.target(target));
        }
    }
    for engine in ENGINES {
        let Some(space) = compared.median(engine, space) else { continue };
        let figure = Figure::new(format!("mixed, disk now : after compact: {engine}"), space, "x");
        figures.push(if engine == "lsm" { figure.target(Target::AtMost(1.5)) } else { figure });
    }
    Ok(figures)
}

fn traffic(run: &Run) -> Option<&Phase> {
    run.phase("run")
}

fn throughput(run: &Run) -> Option<f64> {
    Some(traffic(run)?.throughput()? / 1e3)
}

/// Of reads and updates together, in microseconds.
fn p999(run: &Run) -> Option<f64> {
    let mut kinds = traffic(run)?.traffic.as_ref()?.kinds.values();
    let mut all = decode(&kinds.next()?.latency.histogram)?;
    // One kind may have been slower than any of the other.
    all.auto(true);
    for kind in kinds {
        all.add(decode(&kind.latency.histogram)?).ok()?;
    }
    Some(all.value_at_quantile(0.999) as f64 / 1e3)
}

fn longest(run: &Run) -> Option<f64> {
    let kinds = traffic(run)?.traffic.as_ref()?.kinds.values();
    Some(kinds.map(|kind| kind.latency.max_ns).max()? as f64 / 1e6)
}

/// Tenths of a second in a row in which nothing ended, in milliseconds.
fn stall(run: &Run) -> Option<f64> {
    let timeline = &traffic(run)?.traffic.as_ref()?.timeline;
    let longest = timeline.split(|&ended| ended > 0).map(<[u64]>::len).max()?;
    Some(longest as f64 * 100.0)
}

fn space(run: &Run) -> Option<f64> {
    let now = run.disk_after("run")?.apparent_bytes as f64;
    Some(now / run.disk_after("compact")?.apparent_bytes as f64)
}
