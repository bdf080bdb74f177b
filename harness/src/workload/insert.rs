//! The insert workload: N new records under random keys, as the published comparison did.

use std::num::{NonZeroU32, NonZeroU64};

use clap::Args;
use serde::{Deserialize, Serialize};

use super::job::{Job, Phase, Records, Traffic};
use super::keys::{KEY_BYTES, Keys};
use super::op::{Kind, Op};
use super::rng::mix;
use super::values::{Corpus, Framing, Values};
use super::{About, Chosen, Spec, Workload, WorkloadArgs};
use crate::Result;
use crate::cli::size;
use crate::report::figures::grouped;
use crate::results::Client;

pub(super) const ABOUT: About = About {
    name: "insert",
    summary: "new records under random keys, as in the published comparison of Riak's engines",
};

/// The parameters of the workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Insert {
    /// Records to insert.
    pub items: NonZeroU64,
    /// Records a call: 1 is a put each, more are batches.
    pub batch: NonZeroU32,
    /// What the values are made of.
    pub corpus: Corpus,
    /// What is around them.
    pub framing: Framing,
}

/// The flags of the workload.
#[derive(Debug, Clone, Args)]
pub struct InsertArgs {
    /// Records to insert [default: 20,000; the bench insert_500k: 500,000]
    #[arg(long, value_name = "N", value_parser = size::count)]
    pub items: Option<NonZeroU64>,

    /// What values are made of: varied (another bacon text each), fixed (one text for all, as
    /// published) or random (incompressible)
    #[arg(long, value_name = "CORPUS", default_value_t)]
    pub corpus: Corpus,

    /// What is around the text: json ({"text_s": TEXT}, as published) or text (nothing)
    #[arg(long, value_name = "FRAMING", default_value_t)]
    pub framing: Framing,

    /// Records a call: 1 is one put each, more are batches
    #[arg(long, value_name = "B", default_value = "1", value_parser = size::batch)]
    pub batch: NonZeroU32,
}

/// The records of `enginelab compare insert` unless others are asked for.
const DEFAULT_ITEMS: NonZeroU64 = NonZeroU64::new(20_000).unwrap();

impl WorkloadArgs for InsertArgs {
    fn workload(&self) -> Result<Chosen> {
        Ok(Workload::Insert(Insert {
            items: self.items.unwrap_or(DEFAULT_ITEMS),
            batch: self.batch,
            corpus: self.corpus,
            framing: self.framing,
        })
        .into())
    }
}

impl Insert {
    /// The bytes of a key with its value.
    fn record_bytes(&self) -> u64 {
        (KEY_BYTES + self.framing.value_bytes()) as u64
    }
}

impl Spec for Insert {
    fn job(&self, client: &Client) -> Box<dyn Job> {
        Box::new(InsertJob::new(self, client.seed))
    }

    fn data_bytes(&self, _client: &Client) -> u64 {
        self.items.get().saturating_mul(self.record_bytes())
    }

    fn title(&self) -> String {
        format!("Insert of {} records", grouped(self.items.get()))
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        let bytes = grouped(self.framing.value_bytes() as u64);
        let value = format!("{bytes} bytes, corpus {}, framing {}", self.corpus, self.framing);
        vec![
            ("items", grouped(self.items.get())),
            ("value", value),
            ("key", "32 hexadecimal digits, random".to_owned()),
            ("batch", self.batch.to_string()),
        ]
    }
}

/// The workload, ready to run.
pub struct InsertJob {
    insert: Insert,
    records: InsertRecords,
}

/// The records of a seed: also for benches that need the same.
pub struct InsertRecords {
    keys: Keys,
    values: Values,
}

impl InsertJob {
    /// The workload under `seed`.
    pub fn new(insert: &Insert, seed: u64) -> Self {
        let records = InsertRecords::new(insert.corpus, insert.framing, seed);
        Self { insert: insert.clone(), records }
    }
}

impl Job for InsertJob {
    fn records(&self) -> &dyn Records {
        &self.records
    }

    fn record_count(&self) -> u64 {
        self.insert.items.get()
    }

    fn phases(&self) -> Vec<Phase<'_>> {
        let mut load = Traffic::new(self.insert.items.get(), self.insert.record_bytes(), || {
            |step: u64, out: &mut Vec<Op>| out.push(Op::put(Kind::Insert, step, 0))
        });
        load.batch = self.insert.batch.get();
        load.paced = true;
        vec![Phase::traffic("load", load), Phase::quiesce("quiesce"), Phase::compact("compact")]
    }
}

impl InsertRecords {
    /// The records of `seed`.
    pub fn new(corpus: Corpus, framing: Framing, seed: u64) -> Self {
        Self { keys: Keys::new(seed), values: Values::new(corpus, framing, seed) }
    }
}

impl Records for InsertRecords {
    fn write_key(&self, record: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.keys.key(record));
    }

    /// Version 0 is the value of the record's own number; later ones are those of other numbers.
    fn write_value(&self, record: u64, version: u64, out: &mut Vec<u8>) {
        let number = if version == 0 { record } else { mix(record).wrapping_add(mix(version)) };
        self.values.write(number, out);
    }

    fn record_of(&self, key: &[u8]) -> Option<u64> {
        self.keys.index_of(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_tells_its_record_and_every_version_has_a_value_of_its_own() {
        let records = InsertRecords::new(Corpus::Varied, Framing::Json, 42);
        let (mut key, mut values) = (Vec::new(), Vec::new());
        records.write_key(5, &mut key);
        assert_eq!(records.record_of(&key), Some(5));
        for version in 0..3 {
            let mut value = Vec::new();
            records.write_value(5, version, &mut value);
            assert_eq!(value.len(), Framing::Json.value_bytes());
            assert!(!values.contains(&value), "version {version}");
            values.push(value);
        }
        let mut as_ever = Vec::new();
        Values::new(Corpus::Varied, Framing::Json, 42).write(5, &mut as_ever);
        assert_eq!(values[0], as_ever);
    }
}
