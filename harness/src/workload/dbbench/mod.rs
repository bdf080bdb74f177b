//! db_bench, the benchmarks that LevelDB and RocksDB bring along, by their names: each is a phase,
//! in the order given, on one database. A benchmark that fills begins with an empty database, the
//! others use what is there.
//!
//! As in LevelDB's: a million entries of 16 decimal digits and 100 bytes, values that compress to
//! half, a thousandth of the entries in `fillsync` and `fill100K`, a thousand entries a batch in
//! `fillbatch`, keys drawn with replacement, and the default list, less `crc32c`, `snappycomp` and
//! `snappyuncomp`, which measure no engine. Unlike there:
//!
//! - Threads share the operations, as in all workloads here; each did all of them there.
//! - Every seek is a scan call that ends with the first entry; LevelDB's `seekordered` keeps one
//!   iterator, and so sees one moment.
//! - A write of `fillsync` is a put and a sync of the engine.
//! - `multireadrandom` times 100 gets together; engines of this lab have no call for several.
//! - `readwhilescanning` scans in whatever order is cheapest.
//! - At the end everything that must be there is read back.

mod bench;
mod entries;
mod report;
mod streams;

use std::num::{NonZeroU32, NonZeroU64};

use clap::Args;
use serde::{Deserialize, Serialize};

pub use self::bench::Bench;
use self::entries::{Entries, KEY_BYTES, LARGE_VALUE_BYTES, MOST_ENTRIES};
use self::streams::Place;
use super::job::{Job, Phase, Records, Work};
use super::{About, Chosen, Spec, Workload, WorkloadArgs};
use crate::cli::size;
use crate::files::Inputs;
use crate::report::figures::grouped;
use crate::report::summary::Summary;
use crate::report::tables::Table;
use crate::results::{Client, Comparison};
use crate::{Error, Result};

pub(crate) const ABOUT: About = About {
    name: "dbbench",
    summary: "the benchmarks of LevelDB's and RocksDB's db_bench by their names",
};

/// The parameters of the workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dbbench {
    /// What is done, in this order.
    pub benchmarks: Vec<Bench>,
    /// Entries.
    pub num: u64,
    /// Reads of each benchmark that reads.
    pub reads: u64,
    /// Bytes of every value.
    pub value_size: u32,
    /// To what part of their length values compress.
    pub compression_ratio: f64,
}

/// The flags of the workload.
#[derive(Debug, Clone, Args)]
pub struct DbbenchArgs {
    /// The benchmarks in order, separated by commas
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', value_parser = size::name,
          default_value = DEFAULT_BENCHMARKS)]
    pub benchmarks: Vec<String>,

    /// Entries of the database
    #[arg(long, value_name = "N", default_value = "1,000,000", value_parser = size::count)]
    pub num: NonZeroU64,

    /// Reads of each benchmark that reads [default: as many as entries]
    #[arg(long, value_name = "N", value_parser = size::count)]
    pub reads: Option<NonZeroU64>,

    /// Bytes of every value
    #[arg(long, value_name = "BYTES", default_value = "100", value_parser = size::value_bytes)]
    pub value_size: NonZeroU32,

    /// To what part of their length values compress
    #[arg(long, value_name = "R", default_value = "0.5", value_parser = size::share)]
    pub compression_ratio: f64,

    /// Print db_bench's own output lines too, for each engine
    #[arg(long)]
    pub db_bench_output: bool,
}

/// LevelDB's.
const DEFAULT_BENCHMARKS: &str = "fillseq,fillsync,fillrandom,overwrite,readrandom,readrandom,\
                                  readseq,readreverse,compact,readrandom,readseq,readreverse,\
                                  fill100K";

/// Entries of a batch in `fillbatch`.
const BATCH: u32 = 1_000;

/// Gets that `multireadrandom` times together.
const MULTI: u32 = 100;

/// `fillsync` and `fill100K` have so many times fewer entries.
const FEWER: u64 = 1_000;

/// `open` opens so many times less often than there are entries.
const OPENED: u64 = 10_000;

/// So many phases have versions that are told apart.
const MOST_BENCHMARKS: usize = 1_000;

impl WorkloadArgs for DbbenchArgs {
    fn workload(&self, _: &Inputs) -> Result<Chosen> {
        let names = self.benchmarks.iter().map(|name| name.parse().map_err(Error::Usage));
        let benchmarks = names.collect::<Result<Vec<Bench>>>()?;
        if benchmarks.len() > MOST_BENCHMARKS {
            return Err(Error::Usage(format!("--benchmarks: at most {MOST_BENCHMARKS}")));
        }
        if self.reads.is_some() && !benchmarks.iter().any(|bench| bench.reads()) {
            return Err(Error::Usage("--reads: none of the benchmarks reads".into()));
        }
        let reads = self.reads.unwrap_or(self.num);
        for (flag, count) in [("--num", self.num), ("--reads", reads)] {
            if count.get() > MOST_ENTRIES {
                let most = grouped(MOST_ENTRIES);
                return Err(Error::Usage(format!("{flag} {count}: at most {most}")));
            }
        }
        Ok(Workload::Dbbench(Dbbench {
            benchmarks,
            num: self.num.get(),
            reads: reads.get(),
            value_size: self.value_size.get(),
            compression_ratio: self.compression_ratio,
        })
        .into())
    }

    fn report_flag(&self) -> Option<&'static str> {
        self.db_bench_output.then_some("--db-bench-output")
    }

    fn more_report(&self, comparison: &Comparison) -> Result<String> {
        Ok(match (&comparison.workload.workload, self.db_bench_output) {
            (Workload::Dbbench(dbbench), true) => report::lines(dbbench, comparison),
            _ => String::new(),
        })
    }
}

impl Dbbench {
    /// The entries that a benchmark writes; 0 for one that does not.
    fn writes(&self, bench: Bench) -> u64 {
        match bench {
            Bench::FillSync | Bench::Fill100K => (self.num / FEWER).max(1),
            _ if bench.is_fresh() => self.num,
            Bench::Overwrite | Bench::UpdateRandom => self.num,
            _ => 0,
        }
    }

    /// The bytes of the values that a benchmark puts.
    fn value_bytes(&self, bench: Bench) -> u64 {
        match bench {
            Bench::Fill100K => LARGE_VALUE_BYTES,
            _ => self.value_size.into(),
        }
    }

    /// How often `open` opens.
    fn openings(&self) -> u64 {
        (self.num / OPENED).max(1)
    }
}

impl Spec for Dbbench {
    fn job(&self, client: &Client) -> Result<Box<dyn Job>> {
        let value_bytes = self.benchmarks.iter().map(|&bench| self.value_bytes(bench)).collect();
        let (seed, compression_ratio) = (client.seed, self.compression_ratio);
        let entries = Entries { seed, compression_ratio, value_bytes };
        Ok(Box::new(DbbenchJob { dbbench: self.clone(), entries }))
    }

    fn title(&self) -> String {
        format!("db_bench with {} entries", grouped(self.num))
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        let names: Vec<String> = self.benchmarks.iter().map(Bench::to_string).collect();
        let compressed = f64::from(self.value_size) * self.compression_ratio;
        let value = format!(
            "{} bytes ({compressed:.0} bytes after compression)",
            grouped(self.value_size.into())
        );
        vec![
            ("benchmarks", names.join(", ")),
            ("entries", grouped(self.num)),
            ("reads", grouped(self.reads)),
            ("value", value),
            ("key", format!("{KEY_BYTES} digits")),
        ]
    }

    fn data_bytes(&self, _client: &Client) -> u64 {
        let of =
            |&bench: &Bench| self.writes(bench).saturating_mul(KEY_BYTES + self.value_bytes(bench));
        self.benchmarks.iter().map(of).max().unwrap_or(0)
    }

    fn key_bytes(&self) -> u64 {
        KEY_BYTES
    }

    fn tables(&self, _comparison: &Comparison, summaries: &[Summary<'_>]) -> Vec<Table> {
        report::tables(self, summaries)
    }
}

struct DbbenchJob {
    dbbench: Dbbench,
    entries: Entries,
}

impl Job for DbbenchJob {
    fn records(&self) -> &dyn Records {
        &self.entries
    }

    fn record_count(&self) -> u64 {
        self.dbbench.num
    }

    /// A walk backward begins behind the last key.
    fn has_key(&self, record: u64) -> bool {
        entries::number(record) <= self.dbbench.num
    }

    fn phases(&self) -> Vec<Phase<'_>> {
        let mut phases = Vec::new();
        for (at, (bench, name)) in bench::phases(&self.dbbench.benchmarks).enumerate() {
            if bench.is_fresh() && at > 0 {
                let name = format!("empty for {name}");
                phases.push(Phase { name, work: Work::Anew });
            }
            let place = Place { dbbench: &self.dbbench, bench, phase: at, seed: self.entries.seed };
            let work = match place.traffic() {
                Some(traffic) => Work::Traffic(traffic),
                None => match bench {
                    Bench::Open => Work::OpenAgain(self.dbbench.openings()),
                    Bench::Compact => Work::Compact,
                    Bench::WaitForCompaction => Work::Quiesce,
                    _ => Work::Stats,
                },
            };
            phases.push(Phase { name, work });
        }
        phases
    }
}
