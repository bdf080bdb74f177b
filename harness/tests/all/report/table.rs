//! The table for other programs.

use std::collections::BTreeMap;

use harness::report::csv;
use harness::results::{KindFigures, Latency, Traffic};
use harness::workload::op::Kind;

use super::comparison;

/// Every row has a place for every column, and what goes in comes out, whatever is in a name.
#[test]
fn csv_has_a_row_for_each_phase_of_each_run() {
    let mut comparison = comparison();
    let name = "a \"quoted\", name\nof two lines";
    comparison.runs[0].engine = name.into();
    comparison.runs[0].phases[1].traffic = Some(Traffic {
        operations: 12,
        kinds: BTreeMap::from([(
            Kind::ReadModifyWrite,
            KindFigures {
                latency: Latency { p99_ns: 77, ..Latency::default() },
                ..KindFigures::default()
            },
        )]),
        background: BTreeMap::from([(
            Kind::Update,
            KindFigures { calls: 33, ..KindFigures::default() },
        )]),
        ..Traffic::default()
    });
    comparison.runs[2].phases.clear();
    comparison.runs[2].error = Some("died".into());
    let text = csv::render(&comparison).unwrap();
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let rows: Vec<BTreeMap<String, String>> =
        reader.deserialize().collect::<std::result::Result<_, _>>().unwrap();
    // Twelve runs of eight phases, of which one has none and one row for that; one engine skipped.
    assert_eq!(rows.len(), 11 * 8 + 1 + 1);
    let load = &rows[1];
    let told = |column: &str| load[column].as_str();
    assert_eq!((told("engine"), told("repeat"), told("phase")), (name, "1", "load"));
    assert_eq!(told("engine_seconds"), "1201.673");
    assert_eq!(told("disk_apparent_bytes"), (4_096u64 + 2 * 4_886_613_449).to_string());
    assert_eq!(told("operations_count"), "12");
    assert_eq!(told("read_modify_write_latency_p99_ns"), "77");
    assert_eq!(told("beside_update_calls_count"), "33");
    assert_eq!(rows[0]["beside_update_calls_count"], "");
    assert!(!load.contains_key("update_calls_count"), "the clients had none");
    assert_eq!(told("device_read_bytes"), "", "absent is not zero");
    assert_eq!(rows[0]["read_modify_write_latency_p99_ns"], "");
    assert_eq!((rows[16]["phase"].as_str(), rows[16]["problem"].as_str()), ("", "died"));
    assert_eq!(rows[16]["engine_seconds"], "");
    let last = rows.last().unwrap();
    assert!(last["engine"] == "rocksdb" && last["problem"].contains("librocksdb-dev"), "{last:?}");
    let lost = rows.iter().find(|row| row["engine"] == "sqlite" && row["repeat"] == "3").unwrap();
    assert_eq!((lost["records_lost"].as_str(), lost["records_wrong"].as_str()), ("2", "1"));
}
