//! What is chosen when a Bitcask directory is opened.

use crate::{Durability, OpenOptions};

/// How a [`Bitcask`](super::Bitcask) works, each field with its default and what it trades.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// What an acknowledged write survives. Default: [`Durability::Process`]. `Buffered` saves the
    /// system call of each put, `Power` adds a disk flush to each, shared by the threads that
    /// write at the same time.
    pub durability: Durability,
    /// Whether a missing database is created. Default: yes.
    pub create: bool,
    /// The size, in bytes, that a data file does not outgrow unless one record or batch does.
    /// Default: 256 MiB; Basho's is 2 GiB. A merge reclaims disk space one file at a time, so
    /// smaller files need less free space and give space back sooner, and files load in parallel;
    /// larger ones need fewer open files and mappings.
    pub max_file_bytes: u64,
    /// How many bytes of acknowledged writes may wait in the process at level `Buffered`.
    /// Default: 256 KiB. More saves system calls, and loses more in a crash.
    pub buffer_bytes: usize,
    /// When files are merged in the background.
    pub merge: MergePolicy,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            create: true,
            max_file_bytes: 256 << 20,
            buffer_bytes: 256 << 10,
            merge: MergePolicy::default(),
        }
    }
}

impl From<&OpenOptions> for Options {
    /// The memory budget bounds the write buffer; the keydir comes on top, and there is no cache
    /// but the system's. Compression is not in the format.
    fn from(options: &OpenOptions) -> Self {
        let defaults = Self::default();
        let budget = usize::try_from(options.memory_bytes).unwrap_or(usize::MAX);
        Self {
            durability: options.durability,
            create: options.create,
            buffer_bytes: defaults.buffer_bytes.min(budget),
            ..defaults
        }
    }
}

/// When the background thread merges, and which files. Dead bytes are those that no read can reach
/// any more and that merging the file would give back.
///
/// A merge starts when some sealed file reaches a trigger, or when there are many small files. It
/// then takes every file that reaches the threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct MergePolicy {
    /// Whether there are background merges at all. Default: yes. Without them
    /// [`compact`](crate::Engine::compact) reclaims space when it is called.
    pub enabled: bool,
    /// The share of dead bytes in a file, from 0 to 1, that starts a merge. Default: 0.6. Lower
    /// keeps the directory smaller and writes more.
    pub trigger_dead_fraction: f64,
    /// The dead bytes in a file that start a merge. Default: 512 MiB.
    pub trigger_dead_bytes: u64,
    /// The number of small files that starts a merge. Default: 16. Every session that writes
    /// leaves a file.
    pub trigger_small_files: usize,
    /// The share of dead bytes that takes a file into a merge. Default: 0.4.
    pub threshold_dead_fraction: f64,
    /// The dead bytes that take a file into a merge. Default: 128 MiB.
    pub threshold_dead_bytes: u64,
    /// Files below this size in bytes are small: they are taken into every merge. Default: 10 MiB.
    pub small_file_bytes: u64,
    /// How many bytes a second a background merge reads at most. Default: no limit.
    pub bytes_per_second: Option<u64>,
}

impl Default for MergePolicy {
    fn default() -> Self {
        Self {
            enabled: true,
            trigger_dead_fraction: 0.6,
            trigger_dead_bytes: 512 << 20,
            trigger_small_files: 16,
            threshold_dead_fraction: 0.4,
            threshold_dead_bytes: 128 << 20,
            small_file_bytes: 10 << 20,
            bytes_per_second: None,
        }
    }
}
