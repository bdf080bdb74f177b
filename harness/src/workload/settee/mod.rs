//! The comparison of CouchDB clients that Settee's author published (about 2011): small JSON
//! objects of about 250 bytes, written and read one by one and in bulk, and a long load in key
//! order.
//!
//! | phase | what happens |
//! |---|---|
//! | single writes, single reads | records 0 to S−1, one a call, in the order of their keys |
//! | bulk writes, bulk reads | the next B records, 100 a call |
//! | load | the next L records, 100 a call: the long load |
//!
//! The published real time of every client is that of 2,000 writes and 2,000 reads at its rates. An
//! embedded engine needs more of them to be measured at all, so there are 100,000 here.

mod records;
mod tables;

use std::num::{NonZeroU32, NonZeroU64};

use clap::Args;
use serde::{Deserialize, Serialize};

use self::records::{KEY_BYTES, SetteeRecords, VALUE_BYTES};
use super::job::{Job, Phase, Records, Traffic};
use super::op::{Kind, Op};
use super::{About, Chosen, Spec, Workload, WorkloadArgs};
use crate::Result;
use crate::cli::size;
use crate::files::Inputs;
use crate::report::figures::grouped;
use crate::report::summary::Summary;
use crate::report::tables::Table;
use crate::results::{Client, Comparison};

pub(crate) const ABOUT: About = About {
    name: "settee",
    summary: "small JSON objects one by one, 100 a call, and a long load in key order",
};

/// The parameters of the workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settee {
    /// Records that are written and read one by one.
    pub singles: u64,
    /// Records that are written and read in bulk.
    pub bulk: u64,
    /// Records of the long load.
    pub long: u64,
    /// Records a call, in bulk and in the long load.
    pub batch: NonZeroU32,
}

/// The flags of the workload.
#[derive(Debug, Clone, Args)]
pub struct SetteeArgs {
    /// Records to write and to read one by one
    #[arg(long, value_name = "N", default_value = "100,000", value_parser = size::count)]
    pub singles: NonZeroU64,

    /// Records to write and to read in bulk
    #[arg(long, value_name = "N", default_value = "100,000", value_parser = size::count)]
    pub bulk: NonZeroU64,

    /// Records of the long load in key order; the published one had 20,000,000
    #[arg(long, value_name = "N", default_value = "1,000,000", value_parser = size::count)]
    pub long: NonZeroU64,

    /// Records a call, in bulk and in the long load
    #[arg(long, value_name = "B", default_value = "100", value_parser = size::batch)]
    pub batch: NonZeroU32,
}

impl WorkloadArgs for SetteeArgs {
    fn workload(&self, _: &Inputs) -> Result<Chosen> {
        let settee = Settee {
            singles: self.singles.get(),
            bulk: self.bulk.get(),
            long: self.long.get(),
            batch: self.batch,
        };
        settee.check()?;
        Ok(Workload::Settee(settee).into())
    }
}

const SINGLE_WRITES: &str = "single writes";
const SINGLE_READS: &str = "single reads";
const BULK_WRITES: &str = "bulk writes";
const BULK_READS: &str = "bulk reads";
/// The name by which all reports know the phase that fills the store.
const LONG: &str = "load";

impl Settee {
    fn record_count(&self) -> u64 {
        self.singles.saturating_add(self.bulk).saturating_add(self.long)
    }

    /// Keys have twelve digits.
    fn check(&self) -> Result<()> {
        let most = 10u64.pow(KEY_BYTES);
        if self.record_count() <= most {
            return Ok(());
        }
        Err(crate::Error::Usage(format!(
            "{} records in all, but there are {} keys",
            grouped(self.record_count()),
            grouped(most)
        )))
    }
}

impl Spec for Settee {
    fn job(&self, client: &Client) -> Result<Box<dyn Job>> {
        Ok(Box::new(SetteeJob {
            settee: self.clone(),
            records: SetteeRecords { seed: client.seed },
        }))
    }

    fn title(&self) -> String {
        format!("Settee: a long load of {} small JSON objects", grouped(self.long))
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        vec![
            ("single", grouped(self.singles)),
            ("in bulk", grouped(self.bulk)),
            ("long load", grouped(self.long)),
            ("batch", self.batch.to_string()),
            ("value", format!("{VALUE_BYTES} bytes of JSON")),
            ("key", format!("{KEY_BYTES} digits, ascending")),
        ]
    }

    fn data_bytes(&self, _client: &Client) -> u64 {
        self.record_count().saturating_mul(u64::from(KEY_BYTES) + VALUE_BYTES as u64)
    }

    fn key_bytes(&self) -> u64 {
        KEY_BYTES.into()
    }

    fn tables(&self, _comparison: &Comparison, summaries: &[Summary<'_>]) -> Vec<Table> {
        tables::all(self, summaries)
    }
}

struct SetteeJob {
    settee: Settee,
    records: SetteeRecords,
}

impl SetteeJob {
    /// `count` records from `first` on, each inserted or read.
    fn traffic(&self, first: u64, count: u64, kind: Kind, batch: u32) -> Traffic<'_> {
        let op = move |record| match kind {
            Kind::Read => Op::read(record),
            _ => Op::put(kind, record, 0),
        };
        let step_bytes = match kind {
            Kind::Read => u64::from(KEY_BYTES),
            _ => u64::from(KEY_BYTES) + VALUE_BYTES as u64,
        };
        let mut traffic = Traffic::new(count, step_bytes, move || {
            move |step: u64, out: &mut Vec<Op>| out.push(op(first + step))
        });
        traffic.batch = batch;
        traffic.paced = true;
        traffic
    }
}

impl Job for SetteeJob {
    fn records(&self) -> &dyn Records {
        &self.records
    }

    fn record_count(&self) -> u64 {
        self.settee.record_count()
    }

    fn phases(&self) -> Vec<Phase<'_>> {
        let Settee { singles, bulk, long, batch } = self.settee;
        let batch = batch.get();
        let phase = |name, first, count, kind, batch| {
            Phase::traffic(name, self.traffic(first, count, kind, batch))
        };
        vec![
            phase(SINGLE_WRITES, 0, singles, Kind::Insert, 1),
            phase(SINGLE_READS, 0, singles, Kind::Read, 1),
            phase(BULK_WRITES, singles, bulk, Kind::Insert, batch),
            phase(BULK_READS, singles, bulk, Kind::Read, batch),
            phase(LONG, singles + bulk, long, Kind::Insert, batch),
            Phase::quiesce("quiesce"),
            Phase::compact("compact"),
        ]
    }
}
