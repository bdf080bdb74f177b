//! Reports of results that no short run gives: large figures, many repeats, failures.

mod comparable;
mod figures;
mod names;
mod page;
mod saved;
mod table;

use std::collections::BTreeMap;

use harness::measure::disk::DiskUsage;
use harness::measure::machine::Machine;
use harness::results::{
    Client, Comparison, Conditions, Operations, Parameters, Phase, Run, SCHEMA, Settings, Skipped,
    Verified,
};
use harness::workload::Workload;
use harness::workload::insert::Insert;
use harness::workload::values::{Corpus, Framing};

pub(super) const ITEMS: u64 = 500_000;

fn run(engine: &str, kind: &str, repeat: u32, load: f64, bytes: u64) -> Run {
    let usage = |apparent_bytes: u64| DiskUsage {
        apparent_bytes,
        allocated_bytes: apparent_bytes.next_multiple_of(4_096),
    };
    let (grown, compacted) = (usage(4_096 + bytes * 2), usage(4_096 + bytes));
    let phases = [
        ("open", 0.01, usage(4_096)),
        ("load", load, grown),
        ("quiesce", load, grown),
        ("compact", load / 2.0, compacted),
        ("close", 0.1, compacted),
        ("reopen", 0.2, compacted),
        ("verify", load / 3.0, compacted),
        ("count", 1.0, compacted),
    ];
    let phases = phases.map(|(name, seconds, disk)| Phase {
        name: name.into(),
        seconds,
        wall_seconds: seconds * 1.1,
        disk,
        ..Phase::default()
    });
    Run {
        engine: engine.into(),
        kind: kind.into(),
        version: "1.2.3".into(),
        durability: "what it does to reach the level, at some length".into(),
        settings: BTreeMap::from([("write buffer".into(), "64 MiB".into())]),
        repeat,
        operations: Some(Operations { count: ITEMS, hash: "xxh3-sum:0123456789abcdef".into() }),
        disk_before: Some(usage(4_096)),
        phases: phases.into(),
        verified: Some(Verified { read_back: ITEMS, extra: Some(0), ..Verified::default() }),
        ..Run::default()
    }
}

pub(super) fn comparison() -> Comparison {
    let insert = Insert {
        items: ITEMS.try_into().unwrap(),
        batch: 1.try_into().unwrap(),
        corpus: Corpus::Fixed,
        framing: Framing::Json,
        overwrites: 0.0,
        deletes: 0.0,
    };
    let mut runs = Vec::new();
    for repeat in 1..=3 {
        let more = f64::from(repeat);
        runs.push(run(
            "bitcask",
            "own",
            repeat,
            1_201.673 * more,
            4_886_613_449 / u64::from(repeat),
        ));
        runs.push(run("lsm", "own", repeat, 1_921.870 * more, 1_627_507_469 / u64::from(repeat)));
        runs.push(run("raw-append", "reference", repeat, 900.0, 4_886_613_449));
        runs.push(run("sqlite", "peer", repeat, 100.0, 1_000));
    }
    let lost =
        Verified { read_back: ITEMS - 3, lost: 2, wrong: 1, extra: Some(0), ..Verified::default() };
    runs.last_mut().unwrap().verified = Some(lost);
    let reason =
        "rocksdb is not available: its library is not here; apt-get install librocksdb-dev";
    Comparison {
        schema: SCHEMA.into(),
        machine: Machine {
            cpu: "A processor with a rather long name @ 3.21GHz".into(),
            date: "2026-03-01T10:00:00Z".into(),
            ..Machine::default()
        },
        workload: Parameters {
            workload: Workload::Insert(insert),
            client: Client { threads: 1.try_into().unwrap(), seed: u64::MAX, rate: None },
            settings: Settings::default(),
            conditions: Conditions::default(),
            repeats: 3,
        },
        engines: ["bitcask", "lsm", "raw-append", "sqlite"].map(str::to_owned).into(),
        runs,
        skipped: vec![Skipped { engine: "rocksdb".into(), reason: reason.into() }],
        interrupted: true,
    }
}
