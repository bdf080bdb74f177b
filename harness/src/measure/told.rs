//! What an engine tells of itself, as names and values.

use std::collections::BTreeMap;

use engines::Stats;

/// The names that mean the same for every engine; all others are an engine's own.
pub const COMMON: [&str; 8] = [
    "live_records",
    "disk_bytes",
    "dead_bytes",
    "memory_bytes",
    "file_count",
    "compaction_count",
    "compaction_written_bytes",
    "longest_stall_us",
];

/// Everything that `stats` has.
pub fn told(stats: &Stats) -> BTreeMap<String, String> {
    let numbers = [
        stats.live_records,
        stats.disk_bytes,
        stats.dead_bytes,
        stats.memory_bytes,
        stats.file_count,
        stats.compaction_count,
        stats.compaction_written_bytes,
        stats.longest_stall_us,
    ];
    let numbers = COMMON.into_iter().zip(numbers);
    let numbers = numbers.filter_map(|(name, number)| Some((name.to_owned(), number?.to_string())));
    numbers.chain(stats.details.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_engine_cannot_tell_is_left_out() {
        let details = vec![("levels".to_owned(), "1 2".to_owned())];
        let stats = Stats { file_count: Some(3), details, ..Stats::default() };
        let told: Vec<_> = told(&stats).into_iter().collect();
        let expected = [("file_count", "3"), ("levels", "1 2")];
        assert_eq!(told, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
