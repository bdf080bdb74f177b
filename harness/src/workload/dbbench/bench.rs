//! The benchmarks by db_bench's names, and what each does.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A benchmark of LevelDB's db_bench, or one that RocksDB's adds. The names stand in results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bench {
    /// N entries in the order of their keys, into a fresh database.
    FillSeq,
    /// N entries under keys drawn at random, with replacement, into a fresh database.
    FillRandom,
    /// N entries under keys drawn at random, into what is there.
    Overwrite,
    /// N/1000 entries as `fillrandom`, each synced.
    FillSync,
    /// N/1000 entries of 100,000 bytes as `fillrandom`.
    #[serde(rename = "fill100K")]
    Fill100K,
    /// As `fillseq`, a thousand entries a batch.
    FillBatch,
    /// Every key once in random order, into a fresh database (RocksDB).
    FillUniqueRandom,
    /// A walk through the entries in key order.
    ReadSeq,
    /// The same, backward.
    ReadReverse,
    /// Gets of keys drawn at random.
    ReadRandom,
    /// Gets of keys that are not there.
    ReadMissing,
    /// Gets of keys drawn from the first hundredth.
    ReadHot,
    /// Several gets at a time (RocksDB).
    MultiReadRandom,
    /// Seeks to keys drawn at random.
    SeekRandom,
    /// Seeks to ascending keys.
    SeekOrdered,
    /// Deletions in the order of the keys.
    DeleteSeq,
    /// Deletions of keys drawn at random.
    DeleteRandom,
    /// Read, modify, write of keys drawn at random (RocksDB).
    UpdateRandom,
    /// `readrandom` while one more thread overwrites.
    ReadWhileWriting,
    /// `readrandom` while one more thread visits everything, again and again (RocksDB).
    ReadWhileScanning,
    /// `seekrandom` while one more thread overwrites (RocksDB).
    SeekRandomWhileWriting,
    /// Closing the database and opening it again.
    Open,
    /// Compaction of the whole database.
    Compact,
    /// Waiting until no background work is left (RocksDB).
    WaitForCompaction,
    /// What the engine tells of itself.
    Stats,
}

impl Bench {
    /// Every benchmark: LevelDB's, then those that RocksDB adds.
    pub const ALL: [(Self, &str); 25] = [
        (Self::FillSeq, "fillseq"),
        (Self::FillRandom, "fillrandom"),
        (Self::Overwrite, "overwrite"),
        (Self::FillSync, "fillsync"),
        (Self::Fill100K, "fill100K"),
        (Self::FillBatch, "fillbatch"),
        (Self::ReadSeq, "readseq"),
        (Self::ReadReverse, "readreverse"),
        (Self::ReadRandom, "readrandom"),
        (Self::ReadMissing, "readmissing"),
        (Self::ReadHot, "readhot"),
        (Self::SeekRandom, "seekrandom"),
        (Self::SeekOrdered, "seekordered"),
        (Self::DeleteSeq, "deleteseq"),
        (Self::DeleteRandom, "deleterandom"),
        (Self::ReadWhileWriting, "readwhilewriting"),
        (Self::Open, "open"),
        (Self::Compact, "compact"),
        (Self::Stats, "stats"),
        (Self::FillUniqueRandom, "filluniquerandom"),
        (Self::ReadWhileScanning, "readwhilescanning"),
        (Self::UpdateRandom, "updaterandom"),
        (Self::MultiReadRandom, "multireadrandom"),
        (Self::SeekRandomWhileWriting, "seekrandomwhilewriting"),
        (Self::WaitForCompaction, "waitforcompaction"),
    ];

    /// Whether it begins with an empty database.
    pub(super) fn is_fresh(self) -> bool {
        matches!(
            self,
            Self::FillSeq
                | Self::FillRandom
                | Self::FillSync
                | Self::Fill100K
                | Self::FillBatch
                | Self::FillUniqueRandom
        )
    }

    /// Whether it does so many operations as reads are asked for.
    pub(super) fn reads(self) -> bool {
        matches!(
            self,
            Self::ReadSeq
                | Self::ReadReverse
                | Self::ReadRandom
                | Self::ReadMissing
                | Self::ReadHot
                | Self::MultiReadRandom
                | Self::SeekRandom
                | Self::SeekOrdered
                | Self::ReadWhileWriting
                | Self::ReadWhileScanning
                | Self::SeekRandomWhileWriting
        )
    }

    /// Whether db_bench counts the bytes of its entries.
    pub(super) fn counts_bytes(self) -> bool {
        self.is_fresh()
            || matches!(
                self,
                Self::Overwrite | Self::UpdateRandom | Self::ReadSeq | Self::ReadReverse
            )
    }

    /// Whether db_bench tells how many keys were found.
    pub(super) fn tells_found(self) -> bool {
        matches!(
            self,
            Self::ReadRandom
                | Self::MultiReadRandom
                | Self::SeekRandom
                | Self::SeekOrdered
                | Self::UpdateRandom
                | Self::ReadWhileWriting
                | Self::ReadWhileScanning
                | Self::SeekRandomWhileWriting
        )
    }

    /// The name of the phase where it is the `number`th of its kind in the list, from 1. The phase
    /// in which a run opens its engine has the name of one of them already.
    pub(super) fn phase(self, number: usize) -> String {
        let name = match self {
            Self::Open => "open again".to_owned(),
            other => other.to_string(),
        };
        if number == 1 { name } else { format!("{name} {number}") }
    }
}

/// The phases of a list of benchmarks, by name.
pub(super) fn phases(benches: &[Bench]) -> impl Iterator<Item = (Bench, String)> {
    benches.iter().enumerate().map(|(at, &bench)| {
        let number = benches[..=at].iter().filter(|&&other| other == bench).count();
        (bench, bench.phase(number))
    })
}

impl fmt::Display for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Self::ALL.iter().find(|(bench, _)| bench == self);
        f.pad(known.map_or("", |(_, name)| name))
    }
}

impl FromStr for Bench {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|(_, name)| *name == text);
        known.map(|(bench, _)| *bench).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|(_, name)| *name).collect();
            format!("no benchmark is called {text:?}; there are: {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_benchmark_has_one_name_for_people_and_results() {
        for (bench, name) in Bench::ALL {
            assert_eq!(serde_json::to_value(bench).unwrap(), name);
            assert_eq!((name.parse(), bench.to_string()), (Ok(bench), name.to_owned()));
        }
        let said = "fillsequential".parse::<Bench>().unwrap_err();
        assert!(said.contains("fillseq, fillrandom") && said.contains("waitforcompaction"));
    }

    #[test]
    fn repeated_benchmarks_are_phases_of_their_own() {
        let benches = [Bench::ReadRandom, Bench::Open, Bench::ReadRandom, Bench::Compact];
        let names: Vec<String> = phases(&benches).map(|(_, name)| name).collect();
        assert_eq!(names, ["readrandom", "open again", "readrandom 2", "compact"]);
    }
}
