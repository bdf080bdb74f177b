//! The published comparison of Riak's storage engines (Bitcask against LevelDB, Riak 1.1.2, 2012)
//! in its own layout: a ring of 64 partitions with an engine instance each, and three copies of
//! every item. One client inserts items one by one.
//!
//! | phase | what happens |
//! |---|---|
//! | open | all instances |
//! | load | every item is put into its partitions, one call after the other |
//! | close before restart | nothing has been compacted: the size is the published "size change" |
//! | restart, quiesce, compact | what the published report did not look at |
//!
//! As in Riak: the partitions of a key ([`ring`]), the number of copies, keys of 32 hexadecimal
//! digits, the same JSON object as every value, an instance a partition. Unlike Riak: there is no
//! server, no network and no quorum; the copies are written one after the other by the client's
//! thread; an instance stores key and value as they are, not an object with its bucket, its vector
//! clock and its metadata; and the instances share one memory budget, each an equal part of it.

mod cluster;
pub(crate) mod published;
mod report;
pub mod ring;

use std::num::{NonZeroU32, NonZeroU64};

use clap::Args;
use engines::Engine;
use serde::{Deserialize, Serialize};

use self::cluster::Cluster;
pub(crate) use self::cluster::INSTANCES;
use self::ring::{LARGEST, Ring};
use super::insert::InsertRecords;
use super::job::{Job, Opener, Phase, Records, Traffic, closing_before};
use super::keys::KEY_BYTES;
use super::op::{Kind, Op};
use super::values::{Corpus, Framing};
use super::{About, Chosen, SizeChange, Spec, Workload, WorkloadArgs};
use crate::cli::size;
use crate::files::Inputs;
use crate::report::figures::{binary_size, grouped};
use crate::report::summary::Summary;
use crate::report::tables::Table;
use crate::results::{Client, Comparison};
use crate::{Error, Result};

pub(crate) const ABOUT: About = About {
    name: "riak",
    summary: "the published layout of Riak: 64 instances on a hash ring, three copies of each item",
};

/// The parameters of the workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Riak {
    /// Items to insert.
    pub items: NonZeroU64,
    /// Where they go.
    #[serde(flatten)]
    pub ring: Ring,
}

/// The flags of the workload.
#[derive(Debug, Clone, Args)]
pub struct RiakArgs {
    /// Items to insert; published were 500,000 in one run and 5,000 in five (--repeats 5)
    #[arg(long, value_name = "N", default_value = "500,000", value_parser = size::count)]
    pub items: NonZeroU64,

    /// Partitions of the ring, a power of two: each has an engine instance of its own, with an
    /// equal part of the memory
    #[arg(long, value_name = "N", default_value = "64", value_parser = size::count)]
    pub ring_size: NonZeroU64,

    /// Copies of every item, each in another partition: Riak's n_val
    #[arg(long, value_name = "N", default_value = "3", value_parser = size::count)]
    pub copies: NonZeroU64,
}

impl WorkloadArgs for RiakArgs {
    fn workload(&self, _: &Inputs) -> Result<Chosen> {
        let size = u32::try_from(self.ring_size.get()).ok().and_then(NonZeroU32::new);
        let size = size.filter(|size| size.is_power_of_two() && size.get() <= LARGEST);
        let Some(size) = size else {
            return Err(Error::Usage(format!(
                "--ring-size {}: expected a power of two up to {LARGEST}",
                self.ring_size
            )));
        };
        let copies = u32::try_from(self.copies.get()).ok().and_then(NonZeroU32::new);
        let Some(copies) = copies.filter(|copies| *copies <= size) else {
            return Err(Error::Usage(format!(
                "--copies {}: each is in a partition of its own, and there are {size}",
                self.copies
            )));
        };
        Ok(Workload::Riak(Riak { items: self.items, ring: Ring { size, copies } }).into())
    }
}

/// The bytes of every value.
fn value_bytes() -> u64 {
    Framing::Json.value_bytes() as u64
}

/// The bytes of a key and its value.
fn record_bytes() -> u64 {
    KEY_BYTES as u64 + value_bytes()
}

const RESTART: &str = "restart";

impl Spec for Riak {
    fn job(&self, client: &Client) -> Result<Box<dyn Job>> {
        let records = InsertRecords::new(Corpus::Fixed, Framing::Json, client.seed);
        Ok(Box::new(RiakJob { riak: self.clone(), records }))
    }

    fn title(&self) -> String {
        format!("Riak's layout with {} items", grouped(self.items.get()))
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        vec![
            ("items", grouped(self.items.get())),
            ("value", format!("{} bytes of JSON, always the same", grouped(value_bytes()))),
            ("key", "32 hexadecimal digits, random".to_owned()),
            ("ring", format!("{} partitions with an instance each", self.ring.size)),
            ("copies", self.ring.copies.to_string()),
        ]
    }

    fn data_bytes(&self, _client: &Client) -> u64 {
        let copies = self.items.get().saturating_mul(self.ring.copies.get().into());
        copies.saturating_mul(record_bytes())
    }

    fn key_bytes(&self) -> u64 {
        KEY_BYTES as u64
    }

    fn tables(&self, comparison: &Comparison, summaries: &[Summary<'_>]) -> Vec<Table> {
        let mut tables = report::tables(self, summaries);
        if let Some(last) = tables.last_mut() {
            let memory = comparison.workload.settings.memory_bytes;
            last.notes.push(format!(
                "Memory: {} for all instances of an engine together, which is {} for each. Engines \
                 that refuse so little take what they need; the settings of one instance stand in \
                 the result, and what exceeds the budget is said below.",
                binary_size(memory),
                binary_size(memory / u64::from(self.ring.size.get())),
            ));
        }
        tables
    }

    fn size_change(&self) -> SizeChange {
        SizeChange {
            from: Some("open"),
            to: closing_before(RESTART),
            note: "Disk space is the growth of the directory from before the inserts, all \
                   instances open, until they are closed; nothing was compacted, as published.",
        }
    }

    fn is_published_comparison(&self) -> bool {
        true
    }
}

struct RiakJob {
    riak: Riak,
    records: InsertRecords,
}

impl Job for RiakJob {
    fn records(&self) -> &dyn Records {
        &self.records
    }

    fn record_count(&self) -> u64 {
        self.riak.items.get()
    }

    fn phases(&self) -> Vec<Phase<'_>> {
        let mut load = Traffic::new(self.riak.items.get(), record_bytes(), || {
            |step: u64, out: &mut Vec<Op>| out.push(Op::put(Kind::Insert, step, 0))
        });
        load.paced = true;
        vec![
            Phase::traffic("load", load),
            Phase::reopen(RESTART),
            Phase::quiesce("quiesce"),
            Phase::compact("compact"),
        ]
    }

    fn open(&self, opener: &Opener<'_>) -> engines::Result<Box<dyn Engine>> {
        Ok(Box::new(Cluster::open(self.riak.ring, opener)?))
    }
}
