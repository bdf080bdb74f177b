//! Reads of the LSM engine beside LevelDB and RocksDB: keys that are there, inside the cache and
//! beyond it, keys that are not, short scans both ways, and many keys at once.
//!
//! ```text
//! cargo bench --bench lsm_reads
//! cargo bench --bench lsm_reads -- --items 2000000 --value-bytes 100 --threads 2
//! ```
//! The records are loaded and compacted once and kept under `target/`. All engines get the same
//! memory and Snappy. Rounds are interleaved: every engine runs each phase once in each round, and
//! the medians are compared.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use benches::dataset::Dataset;
use benches::program::{Output, arguments, exit};
use clap::Parser;
use engines::lsm::{CursorOptions, Lsm};
use engines::registry::{self, Registration};
use engines::{Compression, Direction, Engine, KeyRange, OpenOptions};
use harness::workload::rng::SplitMix64;

/// Where records are kept if nothing else is said.
const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/lsm_reads");

/// Reads of the LSM engine beside LevelDB and RocksDB
#[derive(Debug, Parser)]
#[command(name = "lsm_reads", max_term_width = 100)]
struct Cli {
    /// Records in each engine
    #[arg(long, default_value = "500000")]
    items: NonZeroU64,
    /// The length of values: 2,656 and less
    #[arg(long, default_value = "2656")]
    value_bytes: usize,
    /// Keys read in a phase, scans read about as many records; with few of them, filling the empty
    /// cache is much of what is measured
    #[arg(long, default_value = "200000")]
    reads: NonZeroU64,
    /// Rounds
    #[arg(long, default_value = "5")]
    rounds: NonZeroU32,
    /// Threads that read at once
    #[arg(long, default_value = "1")]
    threads: NonZeroU32,
    /// Megabytes of memory for each engine
    #[arg(long, default_value = "256")]
    memory_mb: u64,
    /// Engines, by name
    #[arg(long, value_delimiter = ',', default_value = "lsm,rocksdb,leveldb")]
    engines: Vec<String>,
    /// Phases, by name; all if none is given
    #[arg(long, value_delimiter = ',')]
    phases: Vec<String>,
    /// Where the records are kept, and how figures are printed.
    #[command(flatten)]
    output: Output,
}

fn main() -> ExitCode {
    // Under `cargo test` nothing is kept.
    let temporary = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).ok();
    let few = NonZeroU64::MIN.saturating_add(299);
    let tiny = |cli: Cli| Cli {
        items: few,
        reads: few,
        rounds: NonZeroU32::MIN,
        output: Output {
            directory: temporary.as_ref().map(|directory| directory.path().to_owned()),
            ..cli.output
        },
        ..cli
    };
    match arguments("lsm_reads", tiny) {
        Ok(cli) => exit("lsm_reads", run(&cli)),
        Err(code) => code,
    }
}

/// What is measured: its name, and how it reads `count` records.
struct Phase {
    name: &'static str,
    read: fn(&Reader<'_>, count: u64) -> Result<(), String>,
    /// Runs once before the clock does.
    warm: bool,
}

const PHASES: [Phase; 5] = [
    Phase { name: "get", read: |reader, count| reader.get_any(count), warm: false },
    Phase { name: "get-in-cache", read: |reader, count| reader.get_few(count), warm: true },
    Phase { name: "get-missing", read: |reader, count| reader.get_missing(count), warm: false },
    Phase { name: "scan-forward", read: |reader, count| reader.scan_forward(count), warm: false },
    Phase { name: "scan-backward", read: |reader, count| reader.scan_backward(count), warm: false },
];

/// Nanoseconds a record: by phase, by engine, one for each round.
type Figures = BTreeMap<(usize, usize), Vec<f64>>;

fn run(cli: &Cli) -> Result<(), String> {
    let phases = chosen_phases(cli)?;
    let parent = cli.output.directory.as_deref().unwrap_or(Path::new(DIRECTORY));
    std::fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", parent.display()))?;
    cli.output.print_head(parent);
    let data = Dataset::new(cli.items, cli.value_bytes);
    let options =
        OpenOptions::new().memory_bytes(cli.memory_mb << 20).compression(Compression::Snappy);
    let mut engines: Vec<(&Registration, PathBuf)> = Vec::new();
    for name in &cli.engines {
        let engine = registry::find(name).map_err(|error| error.to_string())?;
        if let Err(reason) = (engine.available)() {
            eprintln!("left out: {reason}");
            continue;
        }
        let directory = data.loaded(parent, engine, &options)?;
        read_all_files(&directory)?;
        engines.push((engine, directory));
    }
    let mut figures = Figures::new();
    for round in 0..cli.rounds.get() {
        for (at, (registration, directory)) in engines.iter().enumerate() {
            let engine = registration.open(directory, &options).map_err(|e| e.to_string())?;
            data.verify(&*engine, 1000)?;
            if round == 0 {
                data.verify_walk(&*engine)?;
            }
            for (phase_at, phase) in phases.iter().enumerate() {
                let nanos = measure(cli, phase, &data, &*engine, round).map_err(|problem| {
                    format!("{}: {}: {problem}", registration.name, phase.name)
                })?;
                figures.entry((phase_at, at)).or_default().push(nanos);
            }
            engine.close().map_err(|error| error.to_string())?;
        }
    }
    let names: Vec<_> = engines.iter().map(|(engine, _)| engine.name).collect();
    print(cli, &phases, &names, &figures);
    match engines.iter().find(|(engine, _)| engine.name == "lsm") {
        Some((_, directory)) if cli.phases.is_empty() && !cli.output.json => {
            many_at_once(cli, &data, directory, &options)
        }
        _ => Ok(()),
    }
}

/// Keys that are looked up together.
const KEYS_AT_ONCE: usize = 100;

/// Looks keys up together and one by one: random ones, and neighbours, which share blocks. Prints
/// the medians.
fn many_at_once(
    cli: &Cli,
    data: &Dataset,
    directory: &Path,
    options: &OpenOptions,
) -> Result<(), String> {
    let store = Lsm::open(directory, options.into()).map_err(|error| error.to_string())?;
    for name in ["random", "neighbours"] {
        let mut random = SplitMix64::new(7);
        let (mut together, mut alone) = (Vec::new(), Vec::new());
        for _ in 0..cli.reads.get() / KEYS_AT_ONCE as u64 {
            let keys = match name {
                "random" => (0..KEYS_AT_ONCE)
                    .map(|_| data.key(random.next_u64() % data.items()).to_vec())
                    .collect(),
                _ => neighbours(&store, &data.key(random.next_u64() % data.items()))
                    .map_err(|error| error.to_string())?,
            };
            let reader = store.reader();
            let mut lent = 0;
            let start = Instant::now();
            let found = reader.multi_get(&keys, |_, value| lent += value.len());
            together.push(start.elapsed().as_nanos() as f64 / keys.len() as f64);
            let start = Instant::now();
            for key in &keys {
                let found = reader.get(key, &mut |value| lent -= value.len());
                found.map_err(|error| error.to_string())?;
            }
            alone.push(start.elapsed().as_nanos() as f64 / keys.len() as f64);
            if found.map_err(|error| error.to_string())? != keys.len() || lent != 0 {
                return Err("keys looked up together are not what they are alone".to_owned());
            }
        }
        let (together, alone) = (median(&together), median(&alone));
        println!(
            "{KEYS_AT_ONCE} {name} at once: {together:.0} ns a key, one by one {alone:.0}: \
             {:.2}x",
            alone / together
        );
    }
    Ok(())
}

/// Keys that follow one another.
fn neighbours(store: &Lsm, start: &[u8]) -> engines::Result<Vec<Vec<u8>>> {
    let reader = store.reader();
    let mut cursor =
        reader.cursor(CursorOptions { fill_cache: false, ..CursorOptions::default() })?;
    cursor.seek(start)?;
    let mut keys = Vec::new();
    while let Some(key) = cursor.key().filter(|_| keys.len() < KEYS_AT_ONCE) {
        keys.push(key.to_vec());
        cursor.next()?;
    }
    Ok(keys)
}

fn chosen_phases(cli: &Cli) -> Result<Vec<&'static Phase>, String> {
    let find = |name: &String| {
        PHASES.iter().find(|phase| phase.name == name).ok_or_else(|| {
            format!("no phase is called {name}; there are: {}", PHASES.map(|p| p.name).join(", "))
        })
    };
    match &cli.phases[..] {
        [] => Ok(PHASES.iter().collect()),
        names => names.iter().map(find).collect(),
    }
}

/// So that all engines find their files in the system's memory.
fn read_all_files(directory: &Path) -> Result<(), String> {
    let fail = |error: std::io::Error| format!("{}: {error}", directory.display());
    for entry in std::fs::read_dir(directory).map_err(fail)? {
        let mut file = std::fs::File::open(entry.map_err(fail)?.path()).map_err(fail)?;
        std::io::copy(&mut file, &mut std::io::sink()).map_err(fail)?;
    }
    Ok(())
}

/// Runs a phase with every thread and returns the nanoseconds that a record took.
fn measure(
    cli: &Cli,
    phase: &Phase,
    data: &Dataset,
    engine: &dyn Engine,
    round: u32,
) -> Result<f64, String> {
    let threads = u64::from(cli.threads.get());
    let count = cli.reads.get().div_ceil(threads);
    let reader = |thread: u64, pass: u64| Reader {
        data,
        engine,
        random: AtomicU64::new(u64::from(round) << 32 | thread << 16 | pass),
    };
    if phase.warm {
        (phase.read)(&reader(0, 1), count.max(data.items() / 10))?;
    }
    let start = Instant::now();
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || (phase.read)(&reader(thread, 0), count)))
            .collect();
        running.into_iter().try_for_each(|thread| thread.join().map_err(|_| "it panicked")?)
    })?;
    Ok(start.elapsed().as_nanos() as f64 / (count * threads) as f64)
}

/// How many records a scan visits.
const SCAN_LENGTH: u64 = 100;
/// So many records are read again and again while the cache is tried out: each lies in a block of
/// its own, and all of those fit.
const CACHED_RECORDS: u64 = 10_000;

/// One thread's reads.
struct Reader<'a> {
    data: &'a Dataset,
    engine: &'a dyn Engine,
    random: AtomicU64,
}

impl Reader<'_> {
    fn get_any(&self, count: u64) -> Result<(), String> {
        self.get(count, |random| random % self.data.items())
    }

    fn get_few(&self, count: u64) -> Result<(), String> {
        self.get(count, |random| random % self.data.items().min(CACHED_RECORDS))
    }

    fn get(&self, count: u64, index: impl Fn(u64) -> u64) -> Result<(), String> {
        let mut random = self.random();
        for _ in 0..count {
            let index = index(random.next_u64());
            let mut is_right = false;
            let mut read = |value: &[u8]| is_right = self.data.looks_right(index, value);
            let found = self.engine.get(&self.data.key(index), &mut read);
            if !(found.map_err(|error| error.to_string())? && is_right) {
                return Err(format!("record {index} is not what was put"));
            }
        }
        Ok(())
    }

    fn get_missing(&self, count: u64) -> Result<(), String> {
        let mut random = self.random();
        for _ in 0..count {
            let index = self.data.items() + random.next_u64() % (1 << 40);
            let found = self.engine.get(&self.data.key(index), &mut |_| {});
            if found.map_err(|error| error.to_string())? {
                return Err(format!("record {index} was never put"));
            }
        }
        Ok(())
    }

    fn scan_forward(&self, count: u64) -> Result<(), String> {
        self.scan(count, Direction::Forward)
    }

    fn scan_backward(&self, count: u64) -> Result<(), String> {
        self.scan(count, Direction::Backward)
    }

    fn scan(&self, count: u64, direction: Direction) -> Result<(), String> {
        let mut random = self.random();
        for _ in 0..count / SCAN_LENGTH {
            // No key of a record: most scans start between records.
            let place = self.data.key(self.data.items() + random.next_u64() % (1 << 40));
            let range = match direction {
                Direction::Forward => KeyRange::from(&place),
                Direction::Backward => KeyRange {
                    start: std::ops::Bound::Unbounded,
                    end: std::ops::Bound::Included(&place),
                },
            };
            let (mut seen, mut is_right) = (0, true);
            let scanned = self.engine.scan(range, direction, &mut |key, value| {
                seen += 1;
                // To look at each of them would cost more than to scan them.
                if seen == 1 || seen == SCAN_LENGTH {
                    is_right &= self.data.is_right(key, value);
                }
                if seen < SCAN_LENGTH { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            scanned.map_err(|error| error.to_string())?;
            if !is_right {
                return Err("a scan visited what was never put".to_owned());
            }
        }
        Ok(())
    }

    fn random(&self) -> SplitMix64 {
        SplitMix64::new(self.random.fetch_add(1, Relaxed))
    }
}

fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Prints a line for each phase: nanoseconds a record, and how many times as fast the first engine
/// is as each other one.
fn print(cli: &Cli, phases: &[&Phase], engines: &[&str], figures: &Figures) {
    if !cli.output.json {
        print!("{:<16}", "ns a record");
        engines.iter().for_each(|name| print!("{name:>12}"));
        let others = engines.iter().skip(1);
        others.for_each(|name| print!("{:>16}", format!("{} /{name}", engines[0])));
        println!();
    }
    for (at, phase) in phases.iter().enumerate() {
        let medians: Vec<_> =
            (0..engines.len()).map(|engine| median(&figures[&(at, engine)])).collect();
        if cli.output.json {
            let parts =
                engines.iter().zip(&medians).map(|(name, ns)| format!("\"{name}\":{ns:.1}"));
            let parts: Vec<_> = parts.collect();
            println!(
                "{{\"phase\":\"{}\",\"threads\":{},\"ns\":{{{}}}}}",
                phase.name,
                cli.threads,
                parts.join(",")
            );
            continue;
        }
        print!("{:<16}", phase.name);
        medians.iter().for_each(|nanos| print!("{nanos:>12.0}"));
        medians.iter().skip(1).for_each(|other| print!("{:>15.2}x", other / medians[0]));
        println!();
    }
}
