//! What every engine must do, ours, the peers and the reference points alike.
//!
//! The oracle is a `BTreeMap`; the random test compares with the engine `memory`. An engine that is
//! not in this build or on this machine is skipped, and says why: run with `--nocapture` to see.

mod contract;
mod directory;
mod durability;
mod model;
mod threads;

use std::path::Path;

use engines::registry::{self, Registration};
use engines::{Direction, Durability, Engine, Error, KeyRange, OpenOptions};

use crate::records::{Records, folded, scanned};

/// Calls `check` for every engine that is here and stores data.
fn for_every_engine(check: impl Fn(&'static Registration)) {
    for engine in registry::all().iter().filter(|engine| engine.name != "null") {
        match (engine.available)() {
            Ok(()) => check(engine),
            Err(reason) => println!("skipped: {reason}"),
        }
    }
}

/// As [`for_every_engine`], for those whose data outlives the process.
fn for_every_store(check: impl Fn(&'static Registration)) {
    for_every_engine(|engine| {
        if capabilities(engine).persistent {
            check(engine);
        }
    });
}

fn capabilities(engine: &Registration) -> engines::Capabilities {
    let directory = tempfile::tempdir().unwrap();
    open(engine, directory.path()).capabilities()
}

fn open(engine: &Registration, directory: &Path) -> Box<dyn Engine> {
    open_at(engine, directory, Durability::Process)
}

fn open_at(engine: &Registration, directory: &Path, level: Durability) -> Box<dyn Engine> {
    // A small budget, so that the suite reaches flushes and evictions.
    let options = OpenOptions::new().durability(level).memory_bytes(8 << 20);
    engine
        .open(directory, &options)
        .unwrap_or_else(|error| panic!("{} does not open at {level}: {error}", engine.name))
}

/// Checks the engine against the oracle by every way of reading there is.
fn assert_holds(name: &str, engine: &dyn Engine, expected: &Records) {
    assert!(folded(engine) == *expected, "{name}: the fold differs from the oracle");
    for (key, value) in expected {
        let found = engine.get_vec(key).unwrap();
        assert!(found.as_ref() == Some(value), "{name}: {key:?} has another value");
    }
    if engine.capabilities().ordered_scan {
        let mut found = scanned(engine, KeyRange::all(), Direction::Forward, usize::MAX);
        assert!(found.iter().map(|(key, value)| (key, value)).eq(expected), "{name}: scan");
        found = scanned(engine, KeyRange::all(), Direction::Backward, usize::MAX);
        let reversed = expected.iter().rev();
        assert!(found.iter().map(|(key, value)| (key, value)).eq(reversed), "{name}: backwards");
    }
}

/// Refusals that an engine may give for a key that it cannot hold.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::InvalidArgument(_) | Error::TooLarge { .. })
}
