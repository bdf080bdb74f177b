//! What is known of a trace before it is replayed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::results::Client;
use crate::workload::Workload;

/// What a trace holds. It stands in results, so that they mean something without the trace.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Facts {
    /// Where it is from.
    pub format: Format,
    /// Its requests by its own words, such as `gets`.
    pub requests: BTreeMap<String, u64>,
    /// Reads, and reads before a change, of a record that was written earlier in the trace and not
    /// deleted since.
    pub hits: u64,
    /// Such reads of others. A cache that was warm when the trace began had some of them.
    pub misses: u64,
    /// The bytes of all values that are put.
    pub put_bytes: u64,
    /// The bytes of all keys, each with its largest value.
    pub data_bytes: u64,
    /// The bytes of the longest key; 0 in traces and results that do not tell it.
    #[serde(default)]
    pub most_key_bytes: u64,
    /// Requests with a time to live, which is not replayed.
    pub expiring: u64,
    /// Seconds from the first request to the last; absent where it tells no times.
    pub seconds: Option<u64>,
    /// Lines that were no requests, and were skipped as asked for.
    pub skipped_lines: u64,
    /// The workload that was recorded.
    pub recorded: Option<Recorded>,
}

/// A recorded workload: everything that its keys and values are derived from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Its parameters.
    pub workload: Box<Workload>,
    /// Its seed and threads.
    pub client: Client,
}

/// Where a trace is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// `enginelab record`.
    #[default]
    Recorded,
    /// A cache trace of Twitter's.
    Twitter,
    /// A list of operations as YCSB prints it.
    Ycsb,
    /// Files of several kinds.
    Mixed,
}

impl Format {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Recorded => "recorded by enginelab",
            Self::Twitter => "a cache trace of Twitter's",
            Self::Ycsb => "a list of operations as YCSB prints it",
            Self::Mixed => "cache traces of Twitter's and lists of YCSB's",
        }
    }
}
