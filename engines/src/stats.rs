//! Figures that engines tell of themselves.

/// What an engine knows of itself at one moment. `None` means that it cannot tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Live records.
    pub live_records: Option<u64>,
    /// Bytes in the engine's files.
    pub disk_bytes: Option<u64>,
    /// Bytes in the engine's files that no read can reach any more.
    pub dead_bytes: Option<u64>,
    /// Bytes of memory that the engine accounts for (buffers, caches, keydir).
    pub memory_bytes: Option<u64>,
    /// Files that hold data.
    pub file_count: Option<u64>,
    /// Merges or compactions finished since open.
    pub compaction_count: Option<u64>,
    /// Bytes that merges, flushes or compactions wrote since open.
    pub compaction_written_bytes: Option<u64>,
    /// The longest time, in microseconds, that a write waited for background work since open.
    pub longest_stall_us: Option<u64>,
    /// Whatever else, name and value, in the engine's own words.
    pub details: Vec<(String, String)>,
}
