//! Figures against what is known of the work.

use super::*;
use crate::Engine;
use crate::lsm::Options;

#[test]
fn work_is_told_of_the_level_it_went_to_and_nothing_is_counted_twice() {
    let directory = tempfile::tempdir().unwrap();
    let store = Lsm::open(directory.path(), Options::default()).unwrap();
    assert_eq!(store.write_amplification(), None);
    let mut asked = 0;
    for at in 0..500u32 {
        store.put(&at.to_be_bytes(), &[1; 100]).unwrap();
        // The kind, two lengths, key and value.
        asked += 1 + 1 + 1 + 4 + 100;
    }
    store.flush().unwrap();
    for at in 0..500u32 {
        store.put(&at.to_be_bytes(), &[2; 100]).unwrap();
        asked += 107;
    }
    store.flush().unwrap();
    let flushed = store.level_stats();
    assert_eq!((flushed[0].table_count, flushed[0].job_count), (2, 2));
    assert_eq!(flushed[0].bytes, flushed[0].written_bytes);
    assert_eq!(flushed[0].read_bytes, 0);
    store.compact().unwrap();
    let merged = store.level_stats();
    assert_eq!((merged[0].table_count, merged[1].table_count), (0, 1));
    assert_eq!(merged[1].read_bytes, flushed[0].bytes);
    assert_eq!(merged[1].written_bytes, merged[1].bytes);
    let written = merged[0].written_bytes + merged[1].written_bytes;
    let expected = 1.0 + written as f64 / f64::from(asked);
    assert!((store.write_amplification().unwrap() - expected).abs() < 1e-9);
    // A table that overlaps nothing moves.
    store.put(b"zzz", b"").unwrap();
    store.compact().unwrap();
    let moved = store.level_stats();
    let bytes = moved[0].written_bytes - merged[0].written_bytes;
    assert_eq!((moved[1].moved_bytes, moved[1].written_bytes), (bytes, merged[1].written_bytes));
    let stats = store.stats().unwrap();
    assert!(stats.details.contains(&("level1_moved_bytes".to_owned(), bytes.to_string())));
}

#[test]
fn ranges_with_all_kinds_of_bounds_add_up_to_all_tables() {
    let directory = tempfile::tempdir().unwrap();
    let store = Lsm::open(directory.path(), Options::default()).unwrap();
    assert_eq!(store.approximate_sizes(&[KeyRange::all()]).unwrap(), [0]);
    for at in 0..5000u32 {
        store.put(&at.to_be_bytes(), &at.to_le_bytes().repeat(20)).unwrap();
    }
    store.flush().unwrap();
    let total: u64 = store.level_stats().iter().map(|level| level.bytes).sum();
    let middle = 2500u32.to_be_bytes();
    let bound = |start, end| KeyRange { start, end };
    let (unbounded, included, excluded) =
        (Bound::Unbounded, Bound::Included(&middle[..]), Bound::Excluded(&middle[..]));
    for (end, start) in [(excluded, included), (included, excluded)] {
        let sizes =
            store.approximate_sizes(&[bound(unbounded, end), bound(start, unbounded)]).unwrap();
        assert_eq!(sizes.iter().sum::<u64>(), total);
        assert!(sizes.iter().all(|size| *size > total / 3), "{sizes:?} of {total}");
    }
    assert_eq!(store.approximate_sizes(&[KeyRange::between(&middle, &[0])]).unwrap(), [0]);
}
