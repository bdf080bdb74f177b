//! The linter of fairness: puts the effective settings of all engines under common heads, and says
//! where they are not equal. The reader judges; nothing is hidden in a table of its own.

use std::collections::BTreeMap;

use super::figures::{binary_size, grouped};
use crate::results::{Comparison, Run};
use crate::workload::riak::INSTANCES;

/// Every inequality, a line each.
pub fn lint(comparison: &Comparison) -> Vec<String> {
    let runs: Vec<&Run> = comparison
        .engines()
        .into_iter()
        .filter_map(|engine| {
            let mut runs = comparison.runs_of(engine);
            runs.find(|run| !run.version.is_empty() && run.kind != "reference")
        })
        .collect();
    let budget = comparison.workload.settings.memory_bytes;
    let mut lines: Vec<String> = HEADS.iter().filter_map(|head| head.compare(&runs)).collect();
    lines.extend(over_budget(&runs, budget));
    lines
}

/// A head, and the names that engines have for it.
struct Head {
    name: &'static str,
    settings: &'static [&'static str],
    /// The values are bytes.
    is_bytes: bool,
}

const WRITE_BUFFER: Head = Head {
    name: "write buffer",
    settings: &["write_buffer_size", "max_memtable_size", "memtable_bytes", "buffer_bytes"],
    is_bytes: true,
};

const CACHE: Head = Head {
    name: "cache",
    settings: &["block_cache", "block_cache_bytes", "cache_size", "cache_capacity"],
    is_bytes: true,
};

const HEADS: [Head; 5] = [
    Head {
        name: "compression",
        settings: &["compression", "data_block_compression", "use_compression"],
        is_bytes: false,
    },
    WRITE_BUFFER,
    CACHE,
    Head {
        name: "filter bits a key",
        settings: &["bloom_bits_per_key", "filter_bits", "filter_policy"],
        is_bytes: false,
    },
    Head {
        name: "background threads",
        settings: &["background_threads", "increase_parallelism", "worker_threads"],
        is_bytes: false,
    },
];

impl Head {
    /// The value of an engine, in its own words.
    fn of<'a>(&self, run: &'a Run) -> Option<&'a str> {
        self.settings.iter().find_map(|name| run.settings.get(*name)).map(String::as_str)
    }

    /// Says who has which value, if not all have the same.
    fn compare(&self, runs: &[&Run]) -> Option<String> {
        let mut by_value: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for run in runs {
            let value =
                self.of(run).map_or_else(|| "not told".to_owned(), |value| self.write(value));
            by_value.entry(value).or_default().push(&run.engine);
        }
        if by_value.len() < 2 {
            return None;
        }
        let parts: Vec<String> = by_value
            .iter()
            .map(|(value, engines)| format!("{value} ({})", engines.join(", ")))
            .collect();
        Some(format!("{} is not equal: {}", self.name, parts.join("; ")))
    }

    fn write(&self, value: &str) -> String {
        match number(value).filter(|_| self.is_bytes) {
            Some(bytes) => binary_size(bytes),
            None => value.to_owned(),
        }
    }

    fn bytes(&self, run: &Run) -> Option<u64> {
        number(self.of(run)?)
    }
}

/// Reads `123`, and `123 KiB` with whatever else follows.
fn number(text: &str) -> Option<u64> {
    let digits = text.split(|c: char| !c.is_ascii_digit()).next()?;
    let rest = text[digits.len()..].trim_start();
    let shift = if rest.starts_with("KiB") { 10 } else { 0 };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// How many instances of the engine have the settings that it tells.
fn instances(run: &Run) -> u64 {
    run.settings.get(INSTANCES).and_then(|count| count.parse().ok()).unwrap_or(1)
}

/// Engines that give themselves more than the budget, or less than half of it.
fn over_budget(runs: &[&Run], budget: u64) -> Vec<String> {
    let lines = runs.iter().filter_map(|run| {
        let parts = [WRITE_BUFFER.bytes(run), CACHE.bytes(run)];
        if parts.iter().all(Option::is_none) {
            return None;
        }
        let sum: u64 = parts.into_iter().flatten().fold(0, u64::saturating_add);
        let sum = sum.saturating_mul(instances(run));
        let what = match sum {
            sum if sum > budget => "more than the budget",
            sum if sum < budget / 2 => "less than half of the budget",
            _ => return None,
        };
        let (sum, budget) = (grouped(sum), grouped(budget));
        Some(format!("memory of {}: {sum} bytes told, {what} of {budget}", run.engine))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(engine: &str, settings: &[(&str, &str)]) -> Run {
        let settings = settings.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Run {
            engine: engine.into(),
            kind: "peer".into(),
            version: "1".into(),
            settings: settings.collect(),
            ..Run::default()
        }
    }

    #[test]
    fn values_under_different_names_are_compared() {
        let a = run("a", &[("compression", "snappy"), ("block_cache", "1048576")]);
        let b = run("b", &[("compression", "snappy"), ("cache_size", "1024 KiB, the writer's")]);
        let c = run("c", &[("data_block_compression", "lz4"), ("cache_capacity", "2097152")]);
        let compare = |head: &Head, runs: &[&Run]| head.compare(runs);
        assert_eq!(compare(&HEADS[0], &[&a, &b]), None);
        assert_eq!(compare(&CACHE, &[&a, &b]), None);
        assert_eq!(
            compare(&HEADS[0], &[&a, &b, &c]).unwrap(),
            "compression is not equal: lz4 (c); snappy (a, b)"
        );
        assert_eq!(compare(&CACHE, &[&a, &c]).unwrap(), "cache is not equal: 1 MiB (a); 2 MiB (c)");
        let told = compare(&WRITE_BUFFER, &[&a, &run("d", &[("buffer_bytes", "64")])]).unwrap();
        assert_eq!(told, "write buffer is not equal: 64 bytes (d); not told (a)");
    }

    #[test]
    fn the_budget_is_held_against_what_engines_tell() {
        let within = run("a", &[("block_cache", "600"), ("write_buffer_size", "400")]);
        let over = run("b", &[("block_cache", "1001")]);
        let under = run("c", &[("buffer_bytes", "64")]);
        let silent = run("d", &[("map_size", "5000")]);
        let many = run("e", &[("block_cache", "400"), (INSTANCES, "4")]);
        assert_eq!(
            over_budget(&[&within, &over, &under, &silent, &many], 1_000),
            [
                "memory of b: 1,001 bytes told, more than the budget of 1,000",
                "memory of c: 64 bytes told, less than half of the budget of 1,000",
                "memory of e: 1,600 bytes told, more than the budget of 1,000",
            ]
        );
    }
}
