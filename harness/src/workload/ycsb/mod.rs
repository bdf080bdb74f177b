//! The core workloads of YCSB (Cooper, Silberstein, Tam, Ramakrishnan, Sears: "Benchmarking Cloud
//! Serving Systems with YCSB", 2010), with its keys, its distributions and its property files.
//!
//! | | read / update / insert / scan / read-modify-write | records |
//! |---|---|---|
//! | A | .5 / .5 / 0 / 0 / 0 | zipfian |
//! | B | .95 / .05 / 0 / 0 / 0 | zipfian |
//! | C | 1 / 0 / 0 / 0 / 0 | zipfian |
//! | D | .95 / 0 / .05 / 0 / 0 | latest |
//! | E | 0 / 0 / .05 / .95 / 0 | zipfian, scans of 1 to 100 |
//! | F | .5 / 0 / 0 / 0 / .5 | zipfian |
//!
//! What differs from the original: the seed decides everything; every value is read back in the
//! end; a missing record is counted, not taken for a success; a latency at a rate counts from the
//! intended start. A store of whole values cannot write one field, so an update is a read and a
//! write, as in YCSB's bindings for such stores, and is called `update_field`, not `update`;
//! with `writeallfields=true` it is one write. Reads get whole records.

mod args;
mod check;
mod properties;
mod records;
mod stream;

use std::fmt::Write;
use std::sync::OnceLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::args::YcsbArgs;
pub use self::check::SelfCheck;
use self::records::YcsbRecords;
use self::stream::YcsbStream;
pub use super::choose::Distribution;
use super::job::{Job, Phase, Records, Traffic};
use super::op::{Kind, Op};
use super::{About, Spec};
use crate::Result;
use crate::report::figures::grouped;
use crate::results::Client;

pub(crate) const ABOUT: About = About {
    name: "ycsb",
    summary: "YCSB's core workloads A to F, or of property files: reads, updates, inserts, scans",
};

/// The parameters of the workload, by the names of YCSB's properties.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ycsb {
    /// `recordcount`: records that are loaded.
    pub records: u64,
    /// `operationcount`: operations of the run.
    pub operations: u64,
    /// `fieldcount`.
    pub field_count: u64,
    /// `fieldlength` in bytes.
    pub field_length: u32,
    /// `writeallfields`: an update writes the whole record, without reading it.
    pub write_all_fields: bool,
    /// The shares of the operations.
    pub mix: Mix,
    /// `requestdistribution`.
    pub distribution: Distribution,
    /// `minscanlength` and `maxscanlength`.
    pub scan_lengths: [u64; 2],
    /// `scanlengthdistribution`: short scans are more frequent.
    pub zipfian_scan_lengths: bool,
    /// `insertorder=hashed`; else keys ascend.
    pub hashed: bool,
    /// `zeropadding`: digits of a key, at least.
    pub zero_padding: u32,
    /// `hotspotdatafraction`.
    pub hot_records: f64,
    /// `hotspotopnfraction`.
    pub hot_operations: f64,
    /// `maxexecutiontime` in seconds; absent: none.
    pub max_seconds: Option<u64>,
}

/// The shares of the kinds of operations; they sum up to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Mix {
    /// `readproportion`.
    pub read: f64,
    /// `updateproportion`.
    pub update: f64,
    /// `insertproportion`.
    pub insert: f64,
    /// `scanproportion`.
    pub scan: f64,
    /// `readmodifywriteproportion`.
    pub read_modify_write: f64,
}

impl Mix {
    /// The shares in the order in which YCSB goes through them.
    pub(super) fn shares(&self) -> [(&'static str, f64); 5] {
        [
            ("read", self.read),
            ("update", self.update),
            ("insert", self.insert),
            ("scan", self.scan),
            ("read-modify-write", self.read_modify_write),
        ]
    }
}

impl Default for Ycsb {
    /// What YCSB's code takes where no property says otherwise. It has no defaults for the counts;
    /// here they are 100,000.
    fn default() -> Self {
        Self {
            records: 100_000,
            operations: 100_000,
            field_count: 10,
            field_length: 100,
            write_all_fields: false,
            mix: Mix { read: 0.95, update: 0.05, insert: 0.0, scan: 0.0, read_modify_write: 0.0 },
            distribution: Distribution::Uniform,
            scan_lengths: [1, 1_000],
            zipfian_scan_lengths: false,
            hashed: true,
            zero_padding: 1,
            hot_records: 0.2,
            hot_operations: 0.8,
            max_seconds: None,
        }
    }
}

impl Ycsb {
    fn records_of(&self, seed: u64) -> YcsbRecords {
        YcsbRecords {
            seed,
            hashed: self.hashed,
            zero_padding: self.zero_padding as usize,
            field_count: self.field_count,
            field_length: self.field_length as usize,
            whole: self.write_all_fields,
        }
    }

    /// The bytes of a record, about: keys have a digit more or less.
    fn record_bytes(&self) -> u64 {
        23 + self.records_of(0).value_bytes()
    }
}

impl Spec for Ycsb {
    fn job(&self, client: &Client) -> Result<Box<dyn Job>> {
        Ok(Box::new(YcsbJob::new(self, client.seed)))
    }

    fn data_bytes(&self, _client: &Client) -> u64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let inserted = (self.operations as f64 * self.mix.insert * 1.1) as u64;
        self.records.saturating_add(inserted).saturating_mul(self.record_bytes())
    }

    fn key_bytes(&self) -> u64 {
        self.records_of(0).most_key_bytes()
    }

    fn title(&self) -> String {
        format!(
            "YCSB: {} operations on {} records",
            grouped(self.operations),
            grouped(self.records)
        )
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        let shares = self.mix.shares().into_iter().filter(|(_, share)| *share > 0.0);
        let shares: Vec<String> = shares.map(|(name, share)| format!("{share} {name}")).collect();
        let mut value = String::new();
        let bytes = grouped(self.records_of(0).value_bytes());
        // Writing to a string does not fail.
        let _ = write!(
            value,
            "{bytes} bytes, {} fields of {}",
            self.field_count,
            grouped(self.field_length.into())
        );
        let update = match self.write_all_fields {
            true => "one write of all fields",
            false => "a read and a write, for one field",
        };
        let mut words = vec![
            ("value", value),
            ("key", if self.hashed { "hashed" } else { "ordered" }.to_owned()),
            ("mix", shares.join(", ")),
            ("distribution", self.distribution.to_string()),
        ];
        if self.mix.update > 0.0 {
            words.push(("update", update.to_owned()));
        }
        if self.mix.scan > 0.0 {
            let shape = if self.zipfian_scan_lengths { "zipfian" } else { "uniform" };
            let [least, most] = self.scan_lengths;
            words.push(("scan length", format!("{least} to {most}, {shape}")));
        }
        if let Some(seconds) = self.max_seconds {
            words.push(("at most", format!("{seconds} s")));
        }
        words
    }
}

/// The workload, ready to run.
pub struct YcsbJob {
    ycsb: Ycsb,
    seed: u64,
    records: YcsbRecords,
    /// Records after all inserts; counted when somebody asks.
    record_count: OnceLock<u64>,
}

impl YcsbJob {
    /// The workload under `seed`.
    pub fn new(ycsb: &Ycsb, seed: u64) -> Self {
        let (ycsb, records) = (ycsb.clone(), ycsb.records_of(seed));
        Self { ycsb, seed, records, record_count: OnceLock::new() }
    }
}

impl Job for YcsbJob {
    fn records(&self) -> &dyn Records {
        &self.records
    }

    fn record_count(&self) -> u64 {
        *self.record_count.get_or_init(|| {
            let mut stream = YcsbStream::new(&self.ycsb, self.seed);
            self.ycsb.records + stream.inserts_before(self.ycsb.operations)
        })
    }

    fn phases(&self) -> Vec<Phase<'_>> {
        let bytes = self.ycsb.record_bytes();
        let load = Traffic::new(self.ycsb.records, bytes, || {
            |step: u64, out: &mut Vec<Op>| out.push(Op::put(Kind::Insert, step, 0))
        });
        let stream = || YcsbStream::new(&self.ycsb, self.seed);
        let puts = self.ycsb.mix.update + self.ycsb.mix.insert + self.ycsb.mix.read_modify_write;
        let step_bytes = if puts > 0.0 { bytes } else { 32 };
        let mut run = Traffic::new(self.ycsb.operations, step_bytes, stream);
        run.limit = self.ycsb.max_seconds.map(Duration::from_secs);
        run.paced = true;
        vec![
            Phase::traffic("load", load),
            Phase::quiesce("quiesce"),
            Phase::traffic("run", run),
            Phase::quiesce("quiesce after run"),
            Phase::compact("compact"),
        ]
    }
}
