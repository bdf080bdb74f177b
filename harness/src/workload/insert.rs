//! The insert workload: N new records under random keys, as the published comparison did.

use std::num::{NonZeroU32, NonZeroU64};

use clap::Args;
use serde::{Deserialize, Serialize};

use super::job::{Job, Phase, Records, Traffic};
use super::keys::{KEY_BYTES, Keys};
use super::op::{Kind, Op};
use super::rng::{SplitMix64, mix};
use super::shares::spread_before;
use super::values::{Corpus, Framing, Values};
use super::{About, Chosen, Spec, Workload, WorkloadArgs};
use crate::cli::size;
use crate::files::Inputs;
use crate::report::figures::grouped;
use crate::results::Client;
use crate::{Error, Result};

pub(crate) const ABOUT: About = About {
    name: "insert",
    summary: "new records under random keys, as in the published comparison of Riak's engines",
};

/// The parameters of the workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Insert {
    /// Records to insert.
    pub items: NonZeroU64,
    /// Records a call: 1 is a put each, more are batches.
    pub batch: NonZeroU32,
    /// What the values are made of.
    pub corpus: Corpus,
    /// What is around them.
    pub framing: Framing,
    /// The share of all operations that put another value in the place of an earlier one.
    #[serde(default)]
    pub overwrites: f64,
    /// The share of all operations that delete an earlier record.
    #[serde(default)]
    pub deletes: f64,
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

    /// The share of all operations that overwrite a record chosen at random among the earlier ones
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = size::share)]
    pub overwrites: f64,

    /// The share of all operations that delete one such record; deleted records may be overwritten
    /// or deleted again
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = size::share)]
    pub deletes: f64,
}

/// The records of `enginelab compare insert` unless others are asked for.
const DEFAULT_ITEMS: NonZeroU64 = NonZeroU64::new(20_000).unwrap();

/// One operation in a hundred inserts, at least.
const MOST_CHANGES: f64 = 0.99;

impl WorkloadArgs for InsertArgs {
    fn workload(&self, _: &Inputs) -> Result<Chosen> {
        if self.overwrites + self.deletes > MOST_CHANGES {
            return Err(Error::Usage(format!(
                "--overwrites {} and --deletes {}: together at most {MOST_CHANGES}, the rest \
                 inserts",
                self.overwrites, self.deletes
            )));
        }
        Ok(Workload::Insert(Insert {
            items: self.items.unwrap_or(DEFAULT_ITEMS),
            batch: self.batch,
            corpus: self.corpus,
            framing: self.framing,
            overwrites: self.overwrites,
            deletes: self.deletes,
        })
        .into())
    }
}

impl Insert {
    /// The bytes of a key with its value.
    fn record_bytes(&self) -> u64 {
        (KEY_BYTES + self.framing.value_bytes()) as u64
    }

    /// All operations: the inserts, and as many others as the shares say.
    fn steps(&self) -> u64 {
        let inserts = 1.0 - self.overwrites - self.deletes;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let others = (self.items.get() as f64 * (1.0 / inserts - 1.0)).round() as u64;
        self.items.get().saturating_add(others)
    }

    /// The inserts among the steps before `step`: spread evenly, and the first step is one.
    fn inserts_before(&self, step: u64) -> u64 {
        spread_before(step, self.items.get(), self.steps())
    }

    /// What step `step` does under `seed`. An overwrite puts the version that is the step's number
    /// and one, so that no two are the same.
    fn op(&self, seed: u64, step: u64) -> Op {
        let before = self.inserts_before(step);
        if self.inserts_before(step + 1) > before {
            return Op::put(Kind::Insert, before, 0);
        }
        let mut rng = SplitMix64::for_index(seed ^ u64::from_le_bytes(*b"changes."), step);
        let record = rng.below_u64(before);
        match rng.fraction() * (self.overwrites + self.deletes) < self.overwrites {
            true => Op::put(Kind::Update, record, step + 1),
            false => Op::delete(record),
        }
    }
}

impl Spec for Insert {
    fn job(&self, client: &Client) -> Result<Box<dyn Job>> {
        Ok(Box::new(InsertJob::new(self, client.seed)))
    }

    fn data_bytes(&self, _client: &Client) -> u64 {
        self.items.get().saturating_mul(self.record_bytes())
    }

    fn key_bytes(&self) -> u64 {
        KEY_BYTES as u64
    }

    fn title(&self) -> String {
        format!("Insert of {} records", grouped(self.items.get()))
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        let bytes = grouped(self.framing.value_bytes() as u64);
        let value = format!("{bytes} bytes, corpus {}, framing {}", self.corpus, self.framing);
        let mut words = vec![
            ("items", grouped(self.items.get())),
            ("value", value),
            ("key", "32 hexadecimal digits, random".to_owned()),
            ("batch", self.batch.to_string()),
        ];
        for (name, share) in [("overwrites", self.overwrites), ("deletes", self.deletes)] {
            if share > 0.0 {
                words.push((name, format!("{share} of all operations")));
            }
        }
        words
    }

    fn is_published_comparison(&self) -> bool {
        true
    }
}

/// The workload, ready to run.
pub struct InsertJob {
    insert: Insert,
    seed: u64,
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
        Self { insert: insert.clone(), seed, records }
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
        let mut load = Traffic::new(self.insert.steps(), self.insert.record_bytes(), || {
            |step: u64, out: &mut Vec<Op>| out.push(self.insert.op(self.seed, step))
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

    fn insert(items: u64, overwrites: f64, deletes: f64) -> Insert {
        let (items, batch) = (items.try_into().unwrap(), NonZeroU32::MIN);
        let (corpus, framing) = (Corpus::Varied, Framing::Json);
        Insert { items, batch, corpus, framing, overwrites, deletes }
    }

    /// As results have it from the first day on.
    #[test]
    fn without_shares_step_n_inserts_record_n() {
        let plain = insert(1_000, 0.0, 0.0);
        assert_eq!(plain.steps(), 1_000);
        assert!((0..1_000).all(|step| plain.op(42, step) == Op::put(Kind::Insert, step, 0)));
    }

    /// By hand: 10,000 inserts that are half of all leave 6,000 overwrites and 4,000 deletions,
    /// within four standard deviations of the draw (49 each).
    #[test]
    fn the_shares_are_those_asked_for_and_every_record_was_there_before() {
        let insert = insert(10_000, 0.3, 0.2);
        assert_eq!(insert.steps(), 20_000);
        let (mut inserted, mut overwrites, mut deletes, mut upper) = (0, 0u32, 0u32, 0u32);
        for step in 0..20_000 {
            let op = insert.op(42, step);
            if op.kind == Kind::Insert {
                assert_eq!(op.record, inserted);
                inserted += 1;
                continue;
            }
            assert!(op.record < inserted, "{op:?}");
            upper += u32::from(op.record >= inserted / 2);
            match op.kind {
                Kind::Update => overwrites += 1,
                _ => deletes += 1,
            }
        }
        assert_eq!((inserted, overwrites + deletes), (10_000, 10_000));
        assert!(overwrites.abs_diff(6_000) < 200, "{overwrites}");
        assert!(upper.abs_diff(5_000) < 200, "chosen uniformly: {upper}");
    }

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
