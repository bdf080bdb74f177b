//! VPork, the load test that Voldemort's users ran on it with Berkeley DB (2009): threads that
//! write new records and read mostly recent ones.
//!
//! T threads share the iterations. An iteration writes with probability `write_odds`, then reads
//! with probability `read_odds`, independently. A write takes the next record number. A read never
//! touches the newest 3·T records: with `newest` = records so far − 3·T (no read while that is
//! negative) it reads record `newest` − floor((1−x)^10 · `newest`), x uniform in [0, 1).
//!
//! The original's threads took numbers from a counter as they went. Here step N has its number from
//! the steps before it, so that every engine is given the same; and threads wait for each other
//! every two iterations, so that every record that a read may touch has been acknowledged. Then an
//! embedded engine finds all of them: a record that it does not find is lost.
//!
//! The published runs are consistent with 2,000 iterations a thread, odds of 0.8 and 0.1 and values
//! of 24,000 bytes. What the values were made of was not published: here they are random, and
//! nothing compresses them.

mod report;
mod stream;

use std::num::{NonZeroU32, NonZeroU64};

use clap::Args;
use serde::{Deserialize, Serialize};

use self::stream::VporkStream;
use super::job::{Job, Phase, Records, Traffic};
use super::rng::SplitMix64;
use super::{About, Chosen, Spec, Workload, WorkloadArgs};
use crate::cli::size;
use crate::files::Inputs;
use crate::report::figures::grouped;
use crate::report::summary::Summary;
use crate::report::tables::Table;
use crate::results::{Client, Comparison};
use crate::{Error, Result};

pub(crate) const ABOUT: About = About {
    name: "vpork",
    summary: "many threads write new records and read mostly recent ones, as VPork did",
};

/// The parameters of the workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Vpork {
    /// Iterations of each thread.
    pub iterations: u64,
    /// The probability that an iteration writes.
    pub write_odds: f64,
    /// The probability that an iteration reads.
    pub read_odds: f64,
    /// Bytes of every value.
    pub data_size: u32,
}

/// The flags of the workload.
#[derive(Debug, Clone, Args)]
pub struct VporkArgs {
    /// Iterations of each thread; there are 30 threads unless --threads says otherwise, and 100 in
    /// the second published run
    #[arg(long, value_name = "N", default_value = "2,000", value_parser = size::count)]
    pub iterations: NonZeroU64,

    /// The probability that an iteration writes
    #[arg(long, value_name = "P", default_value = "0.8", value_parser = size::share)]
    pub write_odds: f64,

    /// The probability that an iteration reads
    #[arg(long, value_name = "P", default_value = "0.1", value_parser = size::share)]
    pub read_odds: f64,

    /// Bytes of every value
    #[arg(long, value_name = "BYTES", default_value = "24,000", value_parser = size::value_bytes)]
    pub data_size: NonZeroU32,
}

/// The threads of the first published run.
const DEFAULT_THREADS: NonZeroU32 = NonZeroU32::new(30).unwrap();

impl WorkloadArgs for VporkArgs {
    fn workload(&self, _: &Inputs) -> Result<Chosen> {
        if self.write_odds == 0.0 {
            return Err(Error::Usage("--write-odds 0: there would be nothing to read".into()));
        }
        // With 1,024 threads at most, all counts stay below 2^51.
        if self.iterations.get() > 1 << 41 {
            return Err(Error::Usage(format!("--iterations: at most {}", grouped(1 << 41))));
        }
        let workload = Workload::Vpork(Vpork {
            iterations: self.iterations.get(),
            write_odds: self.write_odds,
            read_odds: self.read_odds,
            data_size: self.data_size.get(),
        });
        Ok(Chosen { threads: Some(DEFAULT_THREADS), ..workload.into() })
    }
}

impl Vpork {
    fn steps(&self, client: &Client) -> u64 {
        self.iterations.saturating_mul(client.threads.get().into())
    }
}

impl Spec for Vpork {
    fn job(&self, client: &Client) -> Result<Box<dyn Job>> {
        Ok(Box::new(VporkJob {
            vpork: self.clone(),
            steps: self.steps(client),
            threads: client.threads.get(),
            records: VporkRecords { seed: client.seed, bytes: self.data_size as usize },
        }))
    }

    fn title(&self) -> String {
        format!("VPork: {} iterations a thread", grouped(self.iterations))
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        vec![
            ("write odds", self.write_odds.to_string()),
            ("read odds", self.read_odds.to_string()),
            ("value", format!("{} random bytes", grouped(self.data_size.into()))),
            ("key", "r_NUMBER".to_owned()),
        ]
    }

    fn data_bytes(&self, client: &Client) -> u64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 2^51")]
        let writes = (self.steps(client) as f64 * self.write_odds) as u64;
        writes.saturating_mul(u64::from(self.data_size) + 10)
    }

    fn key_bytes(&self) -> u64 {
        KEY_HEAD.len() as u64 + MOST_DIGITS
    }

    fn tables(&self, _comparison: &Comparison, summaries: &[Summary<'_>]) -> Vec<Table> {
        summaries.iter().map(|summary| report::table(summary, self.data_size)).collect()
    }
}

/// The name by which all reports know the phase that fills the store.
const PHASE: &str = "load";

/// So few that no thread is 3 iterations ahead of another: see the head of the file.
const STEPS_TOGETHER: u64 = 2;

struct VporkJob {
    vpork: Vpork,
    steps: u64,
    threads: u32,
    records: VporkRecords,
}

impl VporkJob {
    fn stream(&self) -> VporkStream {
        VporkStream::new(&self.vpork, self.records.seed, self.threads)
    }
}

impl Job for VporkJob {
    fn records(&self) -> &dyn Records {
        &self.records
    }

    fn record_count(&self) -> u64 {
        self.stream().writes_before(self.steps)
    }

    fn phases(&self) -> Vec<Phase<'_>> {
        let mut traffic = Traffic::new(self.steps, self.vpork.data_size.into(), || self.stream());
        traffic.steps_together = Some(STEPS_TOGETHER);
        traffic.paced = true;
        vec![Phase::traffic(PHASE, traffic), Phase::quiesce("quiesce"), Phase::compact("compact")]
    }
}

struct VporkRecords {
    seed: u64,
    bytes: usize,
}

const KEY_HEAD: &[u8] = b"r_";

/// Digits of the largest number.
const MOST_DIGITS: u64 = 20;

impl Records for VporkRecords {
    fn write_key(&self, record: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(KEY_HEAD);
        out.extend_from_slice(record.to_string().as_bytes());
    }

    fn write_value(&self, record: u64, _version: u64, out: &mut Vec<u8>) {
        let end = out.len() + self.bytes;
        let mut rng = SplitMix64::for_index(self.seed, record);
        while out.len() < end {
            out.extend_from_slice(&rng.next_u64().to_le_bytes());
        }
        out.truncate(end);
    }

    fn record_of(&self, key: &[u8]) -> Option<u64> {
        let number: u64 = std::str::from_utf8(key.strip_prefix(KEY_HEAD)?).ok()?.parse().ok()?;
        let mut again = Vec::new();
        self.write_key(number, &mut again);
        (again == key).then_some(number)
    }
}
