//! What can be chosen, with defaults and what they cost.

use std::ops::RangeInclusive;

use super::compress::Compressor;
use crate::{Compression, Durability, Error, OpenOptions, Result};

/// The settings of an [`Lsm`](super::Lsm). Whatever is chosen, LevelDB opens the directory (with
/// [`Compression::Zstd`] its head only).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Whether a missing database is created. Default: yes.
    pub create: bool,
    /// What an acknowledged write survives. Default: the death of the process.
    pub durability: Durability,
    /// How table blocks are compressed. Default: Snappy.
    pub compression: Compression,
    /// How large a memtable grows before it is frozen and flushed, in bytes. Larger ones make
    /// fewer, larger level-0 tables, so less merging, and a longer replay after a crash.
    /// Default: 32 MiB.
    pub memtable_bytes: usize,
    /// How many memtables there may be, the active one included; writes wait while all are full.
    /// At least 2. More let several be flushed at once and take their size in memory. Default: 4.
    pub memtable_count: usize,
    /// Memory for uncompressed blocks that were read and for the indexes and filters of open
    /// tables, in bytes; of which a quarter stays for blocks. Default: 128 MiB.
    pub block_cache_bytes: usize,
    /// The size of a table block before compression, in bytes, 64 to 64 MiB. Larger blocks
    /// compress better and cost more to read one record from. Default: 6 KiB, where texts of 2.6 KB
    /// take less space than in RocksDB.
    pub block_bytes: usize,
    /// Every so many entries of a block, at least 1, a key is stored whole. Default: 16, as
    /// LevelDB.
    pub restart_interval: usize,
    /// Bits a key for the filters that spare reading blocks for missing keys, up to 64; 0 for no
    /// filter. Tables hold two: LevelDB's, and one over the whole table, which is asked here.
    /// Default: 10, which lets 1 % of the missing keys through.
    pub filter_bits: usize,
    /// How large the tables grow that compactions write, in bytes on disk. Large ones make opening
    /// cheap and a step of a level-by-level compaction dear. Default: 32 MiB.
    pub table_bytes: u64,
    /// How many tables are kept open. Default: 1000.
    pub open_tables: usize,
    /// Level-0 tables from which on they are merged into level 1 whatever else holds: the bound
    /// of what a read has to look through. See the `picker` module for the two reasons that come
    /// earlier. Default: 64.
    pub level0_tables: usize,
    /// Level-0 tables from which on writes are slowed down, more with each. Default: 96.
    pub level0_slowdown_tables: usize,
    /// Level-0 tables at which writes wait. Default: 128.
    pub level0_stop_tables: usize,
    /// The size that level 1 should not outgrow, in bytes; level n+1 may be `level_ratio` times
    /// as large as level n. Default: 512 MiB.
    pub level1_bytes: u64,
    /// See `level1_bytes`. Default: 10.
    pub level_ratio: u64,
    /// Threads that flush and compact. Default: as many as the machine has cores.
    pub background_threads: usize,
    /// How many bytes a second flushes and compactions together write at most, spread evenly, so
    /// that the disk has time for others; 0 for as fast as it goes. Writes wait when flushes do
    /// not keep up with them, so this bounds the rate of writes in the long run too. Default: 0.
    pub background_bytes_per_second: u64,
    /// A manifest that has grown by so much is started anew, in bytes. Default: 4 MiB.
    pub manifest_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            create: true,
            durability: Durability::default(),
            compression: Compression::default(),
            memtable_bytes: 32 << 20,
            memtable_count: 4,
            block_cache_bytes: 128 << 20,
            block_bytes: 6 << 10,
            restart_interval: 16,
            filter_bits: 10,
            table_bytes: 32 << 20,
            open_tables: 1000,
            level0_tables: 64,
            level0_slowdown_tables: 96,
            level0_stop_tables: 128,
            level1_bytes: 512 << 20,
            level_ratio: 10,
            background_threads: std::thread::available_parallelism()
                .map_or(2, std::num::NonZeroUsize::get),
            background_bytes_per_second: 0,
            manifest_bytes: 4 << 20,
        }
    }
}

impl From<&OpenOptions> for Options {
    /// Half of the memory is for memtables, half for blocks, indexes and filters. Memtables are at
    /// most 64 MiB: larger ones gain nothing more and replay slowly.
    fn from(options: &OpenOptions) -> Self {
        let defaults = Self::default();
        let half = usize::try_from(options.memory_bytes / 2).unwrap_or(usize::MAX);
        let memtable_bytes =
            (half / defaults.memtable_count).clamp(SMALLEST_MEMTABLE_BYTES, 64 << 20);
        let level1_bytes = (memtable_bytes as u64 * 16).max(8 << 20);
        Self {
            create: options.create,
            durability: options.durability,
            compression: options.compression,
            memtable_bytes,
            block_cache_bytes: half,
            table_bytes: (level1_bytes / 16).clamp(1 << 20, 32 << 20),
            level1_bytes,
            ..defaults
        }
    }
}

const SMALLEST_MEMTABLE_BYTES: usize = 256 << 10;

/// More bits a key take space and gain nothing: a filter probes 30 of them at most.
const FILTER_BITS_MAX: usize = 64;

const BLOCK_BYTES: RangeInclusive<usize> = 64..=64 << 20;
const ZSTD_LEVELS: RangeInclusive<i32> = 1..=22;

impl Options {
    /// Refuses what no table can be made with.
    pub(super) fn check(&self) -> Result<()> {
        let refuse = |problem: String| Err(Error::InvalidArgument(problem));
        if !BLOCK_BYTES.contains(&self.block_bytes) {
            return refuse(format!("blocks of {} bytes: 64 to 64 MiB", self.block_bytes));
        }
        if self.restart_interval == 0 {
            return refuse("a restart interval of 0: at least 1".to_owned());
        }
        if self.filter_bits > FILTER_BITS_MAX {
            return refuse(format!("{} filter bits a key: 0 to 64", self.filter_bits));
        }
        if self.table_bytes == 0 {
            return refuse("tables of 0 bytes: at least 1".to_owned());
        }
        match self.compression {
            Compression::Zstd(level) if !ZSTD_LEVELS.contains(&level) => {
                refuse(format!("zstd at level {level}: 1 to 22"))
            }
            // Whether this build has it.
            compression => Compressor::new(compression).map(drop),
        }
    }

    /// The options with what cannot work replaced by what is nearest to it.
    pub(super) fn sanitized(&self) -> Self {
        let level0_tables = self.level0_tables.max(1);
        let level0_slowdown_tables =
            self.level0_slowdown_tables.max(level0_tables.saturating_add(1));
        Self {
            memtable_bytes: self.memtable_bytes.max(1),
            memtable_count: self.memtable_count.max(2),
            open_tables: self.open_tables.max(8),
            level0_tables,
            level0_slowdown_tables,
            level0_stop_tables: self
                .level0_stop_tables
                .max(level0_slowdown_tables.saturating_add(1)),
            level1_bytes: self.level1_bytes.max(1),
            level_ratio: self.level_ratio.max(2),
            background_threads: self.background_threads.max(1),
            ..self.clone()
        }
    }

    /// What [`Description`](crate::Description) tells.
    pub(super) fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("memtable_bytes", self.memtable_bytes.to_string()),
            ("memtable_count", self.memtable_count.to_string()),
            ("block_cache_bytes", self.block_cache_bytes.to_string()),
            ("compression", self.compression.to_string()),
            ("block_bytes", self.block_bytes.to_string()),
            ("restart_interval", self.restart_interval.to_string()),
            ("filter_bits", self.filter_bits.to_string()),
            ("table_bytes", self.table_bytes.to_string()),
            ("open_tables", self.open_tables.to_string()),
            ("level0_tables", self.level0_tables.to_string()),
            ("level0_slowdown_tables", self.level0_slowdown_tables.to_string()),
            ("level0_stop_tables", self.level0_stop_tables.to_string()),
            ("level1_bytes", self.level1_bytes.to_string()),
            ("level_ratio", self.level_ratio.to_string()),
            ("background_threads", self.background_threads.to_string()),
            ("background_bytes_per_second", self.background_bytes_per_second.to_string()),
            ("manifest_bytes", self.manifest_bytes.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_is_split_in_halves() {
        let options = Options::from(&OpenOptions::new().memory_bytes(256 << 20));
        assert_eq!(options.memtable_bytes * options.memtable_count, 128 << 20);
        assert_eq!(options.block_cache_bytes, 128 << 20);
        assert_eq!((options.table_bytes, options.level1_bytes), (32 << 20, 512 << 20));
    }

    #[test]
    fn a_tiny_budget_still_works() {
        let options = Options::from(&OpenOptions::new().memory_bytes(0)).sanitized();
        assert_eq!(options.memtable_bytes, SMALLEST_MEMTABLE_BYTES);
        assert!(options.level0_tables < options.level0_slowdown_tables);
        assert!(options.level0_slowdown_tables < options.level0_stop_tables);
    }
}
