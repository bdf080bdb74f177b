//! A workload that a file of the user describes, in TOML: the keys, the sizes of the values, and
//! phases with a mix of operations each. `example.toml` here is what `--example` prints; it names
//! every key there is.
//!
//! Records are numbered in the order in which they are inserted, across all phases. The inserts of
//! a phase are spread evenly over its operations; every other operation chooses among the records
//! inserted before it. A deleted record keeps its number: it may be chosen again, and is not found
//! then, or is put back by an update.

mod check;
mod choose;
mod file;
mod records;
mod stream;
mod words;

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use self::records::CustomRecords;
use self::stream::CustomStream;
use super::job::{self, Job, Records, Traffic, Work};
use super::op::Kind;
use super::sized::Content;
use super::{About, Chosen, Spec, Workload, WorkloadArgs};
use crate::files::Inputs;
use crate::results::Client;
use crate::{Error, Result};

pub(crate) const ABOUT: About = About {
    name: "custom",
    summary: "what a TOML file says: keys, sizes, and phases with a mix of operations each",
};

/// The file that `--example` prints.
pub const EXAMPLE: &str = include_str!("example.toml");

/// The parameters of the workload: the file, as it is read. Where a key may be absent, `None`
/// says that it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Custom {
    /// What keys look like.
    pub keys: Keys,
    /// What values are.
    pub values: Values,
    /// What is done, in order.
    pub phases: Vec<Phase>,
}

/// The key space.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    /// Different keys there are: no more records can be inserted.
    pub count: NonZeroU64,
    /// The length of every key in bytes.
    pub bytes: NonZeroU32,
    /// What stands behind the prefix.
    #[serde(default)]
    pub form: KeyForm,
    /// What every key begins with.
    #[serde(default)]
    pub prefix: String,
}

/// What a key is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyForm {
    /// The number of the record in decimal, filled up with zeros: keys ascend as they are inserted.
    #[default]
    Decimal,
    /// Hexadecimal digits, another number for every record, in random order.
    Hex,
}

/// The values: of one size, or of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Values {
    /// What they are made of.
    #[serde(default)]
    pub content: Content,
    /// The size of all values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u32>,
    /// Sizes with the share of the values that have them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<Size>,
}

/// Some of the sizes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// The smallest and the largest; all between are as frequent.
    #[serde(deserialize_with = "pair")]
    pub bytes: [u32; 2],
    /// The share of the values; all of them sum up to 1.
    pub share: f64,
}

/// One phase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Its name in results.
    pub name: String,
    /// What happens. All other keys are for operations.
    #[serde(default)]
    pub kind: PhaseKind,
    /// How many operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<NonZeroU64>,
    /// Seconds after which no operation begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// What the operations are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix: Option<Mix>,
    /// How records are chosen; absent: uniform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Distribution>,
    /// The exponent of a zipfian distribution; absent: 0.99.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theta: Option<f64>,
    /// The share of the records that are a hotspot; absent: 0.2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot_records: Option<f64>,
    /// The share of the operations that go there; absent: 0.8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot_operations: Option<f64>,
    /// The least and the most records that a scan visits; absent: 1 to 100.
    #[serde(default, deserialize_with = "some_pair", skip_serializing_if = "Option::is_none")]
    pub scan_lengths: Option<[u64; 2]>,
    /// Client threads; absent: those of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<NonZeroU32>,
    /// Operations a second; absent: those of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Operations a call; absent: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<NonZeroU32>,
}

/// What happens in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseKind {
    /// Operations.
    #[default]
    Operations,
    /// Wait until no background work is left.
    Quiesce,
    /// Reclaim what can be reclaimed.
    Compact,
    /// Make everything survive power loss.
    Sync,
    /// Close the engine and open it again.
    Reopen,
}

/// The shares of the kinds of operations; they sum up to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mix {
    /// Gets.
    pub read: f64,
    /// Puts of new records.
    pub insert: f64,
    /// Puts that replace a value without reading it.
    pub update: f64,
    /// Removals.
    pub delete: f64,
    /// Visits in key order.
    pub scan: f64,
    /// Visits in key order, backward.
    pub scan_back: f64,
    /// Gets, each followed by a put of another value.
    pub read_modify_write: f64,
}

impl Mix {
    /// Every share with its key in the file and its kind.
    fn shares(&self) -> [(&'static str, Kind, f64); 7] {
        [
            ("read", Kind::Read, self.read),
            ("insert", Kind::Insert, self.insert),
            ("update", Kind::Update, self.update),
            ("delete", Kind::Delete, self.delete),
            ("scan", Kind::Scan, self.scan),
            ("scan_back", Kind::ScanBack, self.scan_back),
            ("read_modify_write", Kind::ReadModifyWrite, self.read_modify_write),
        ]
    }

    fn puts(&self) -> bool {
        self.shares().iter().any(|(_, kind, share)| kind.puts() && *share > 0.0)
    }
}

/// How records are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Every record as often as any other.
    #[default]
    Uniform,
    /// Exactly zipfian; which records are popular is random, and those that the phase itself
    /// inserts are less popular than those before.
    Zipfian,
    /// The newest records most, by a zipfian distance from the newest.
    Latest,
    /// A share of the operations goes to a share of the records: those that were inserted first.
    Hotspot,
    /// One after the other, from the beginning again after the last.
    Sequential,
    /// By an exponential distance from the newest.
    Exponential,
}

/// Exactly two: TOML's arrays may have any length, and what is behind the second would be lost.
fn pair<'de, T, D>(deserializer: D) -> std::result::Result<[T; 2], D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let list = Vec::<T>::deserialize(deserializer)?;
    let count = list.len();
    list.try_into()
        .map_err(|_| D::Error::invalid_length(count, &"two numbers: the least, the most"))
}

fn some_pair<'de, T, D>(deserializer: D) -> std::result::Result<Option<[T; 2]>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    pair(deserializer).map(Some)
}

/// The flags of the workload.
#[derive(Debug, Clone, Args)]
pub struct CustomArgs {
    /// The file that describes the workload, of at most 1 MiB
    #[arg(value_name = "FILE.toml", required_unless_present = "example")]
    pub file: Option<PathBuf>,

    /// Print an example file, with every key that there is explained, and do nothing else
    #[arg(long)]
    pub example: bool,
}

impl WorkloadArgs for CustomArgs {
    fn example(&self) -> Option<&'static str> {
        self.example.then_some(EXAMPLE)
    }

    fn workload(&self, inputs: &Inputs) -> Result<Chosen> {
        let file = self.file.as_deref().ok_or_else(|| Error::Usage("a file is missing".into()))?;
        Ok(Workload::Custom(file::read(file, inputs)?).into())
    }
}

/// The operations of a phase that only a time limits: more than anybody executes.
const UNLIMITED: u64 = MOST_OPERATIONS;
const MOST_OPERATIONS: u64 = 1 << 40;

impl Phase {
    fn steps(&self) -> u64 {
        self.operations.map_or(UNLIMITED, NonZeroU64::get)
    }

    /// The inserts among the operations, in which an insert counts as one at least.
    fn inserts(&self) -> u64 {
        let share = self.mix.map_or(0.0, |mix| mix.insert);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most all")]
        let inserts = (self.steps() as f64 * share).round() as u64;
        inserts.max(u64::from(share > 0.0))
    }

    fn is_traffic(&self) -> bool {
        self.kind == PhaseKind::Operations
    }
}

impl Values {
    /// The sizes with their shares.
    fn all_sizes(&self) -> Vec<Size> {
        let fixed = self.bytes.map(|bytes| Size { bytes: [bytes, bytes], share: 1.0 });
        self.sizes.iter().copied().chain(fixed).collect()
    }

    /// The mean size, in whole bytes.
    fn mean_bytes(&self) -> u64 {
        let mean_of = |size: &Size| f64::from(size.bytes[0]).midpoint(f64::from(size.bytes[1]));
        let mean: f64 = self.all_sizes().iter().map(|size| size.share * mean_of(size)).sum();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size")]
        {
            mean.ceil() as u64
        }
    }
}

impl Custom {
    /// The records that are inserted before phase `phase`.
    fn records_before(&self, phase: usize) -> u64 {
        self.phases.iter().take(phase).map(Phase::inserts).fold(0, u64::saturating_add)
    }

    fn record_count(&self) -> u64 {
        self.records_before(self.phases.len())
    }

    fn record_bytes(&self) -> u64 {
        u64::from(self.keys.bytes.get()) + self.values.mean_bytes()
    }
}

impl Spec for Custom {
    fn job(&self, client: &Client) -> Result<Box<dyn Job>> {
        let records = CustomRecords::new(self, client.seed);
        Ok(Box::new(CustomJob { custom: self.clone(), seed: client.seed, records }))
    }

    fn title(&self) -> String {
        words::title(self)
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        words::parameters(self)
    }

    fn key_bytes(&self) -> u64 {
        self.keys.bytes.get().into()
    }

    fn data_bytes(&self, _client: &Client) -> u64 {
        self.record_count().saturating_mul(self.record_bytes())
    }
}

struct CustomJob {
    custom: Custom,
    seed: u64,
    records: CustomRecords,
}

impl CustomJob {
    fn traffic(&self, at: usize, phase: &Phase) -> Traffic<'_> {
        let puts = phase.mix.is_some_and(|mix| mix.puts());
        let key_bytes = self.custom.keys.bytes.get().into();
        let step_bytes = if puts { self.custom.record_bytes() } else { key_bytes };
        let stream = move || CustomStream::new(&self.custom, at, self.seed);
        Traffic {
            limit: phase.seconds.map(Duration::from_secs_f64),
            batch: phase.batch.map_or(1, NonZeroU32::get),
            paced: true,
            threads: phase.threads,
            rate: phase.rate,
            ..Traffic::new(phase.steps(), step_bytes, stream)
        }
    }
}

impl Job for CustomJob {
    fn records(&self) -> &dyn Records {
        &self.records
    }

    fn record_count(&self) -> u64 {
        self.custom.record_count()
    }

    fn phases(&self) -> Vec<job::Phase<'_>> {
        let phases = self.custom.phases.iter().enumerate();
        let phases = phases.map(|(at, phase)| job::Phase {
            name: phase.name.clone(),
            work: match phase.kind {
                PhaseKind::Operations => Work::Traffic(self.traffic(at, phase)),
                PhaseKind::Quiesce => Work::Quiesce,
                PhaseKind::Compact => Work::Compact,
                PhaseKind::Sync => Work::Sync,
                PhaseKind::Reopen => Work::Reopen,
            },
        });
        phases.collect()
    }
}
