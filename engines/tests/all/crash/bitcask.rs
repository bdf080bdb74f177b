//! Bitcask after crashes and failing calls.

use engines::bitcask::{Bitcask, Options};
use engines::fs::sim::SimFs;
use engines::{Durability, Engine, Result};
use std::path::Path;
use std::sync::Arc;

use super::workload::{Shape, Subject};
use super::{crash_everywhere, seeds};

/// Small files, so that each workload rotates and merges many times.
fn open(fs: &SimFs, durability: Durability) -> Result<Box<dyn Engine>> {
    let mut options = Options { durability, max_file_bytes: 2_000, ..Options::default() };
    options.buffer_bytes = 500;
    options.merge.small_file_bytes = 1_000;
    options.merge.trigger_small_files = 3;
    Ok(Box::new(Bitcask::open_in(Arc::new(fs.clone()), Path::new("/data"), options)?))
}

fn with_bitcask<T>(durability: Durability, test: impl FnOnce(Subject<'_>) -> T) -> T {
    let open = |fs: &SimFs| open(fs, durability);
    test(Subject { name: "bitcask", durability, open: &open })
}

#[test]
fn crashes_lose_nothing_that_was_promised() {
    for durability in Durability::ALL {
        for seed in seeds(8) {
            let shape =
                Shape { seed, phases: 2, threads: 2, steps: 40, keys: 10, value_bytes: 300 };
            with_bitcask(durability, |subject| crash_everywhere(subject, shape))
                .assert_clean("bitcask, crashes");
        }
    }
}
