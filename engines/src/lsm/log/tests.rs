//! Logs against those that the original programs wrote, and against damage.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::reader::Skipped;
use super::*;
use crate::Result;
use crate::lsm::testing::{BytesFile, MemoryFile, golden_files};

const UNBUFFERED: LogOptions = LogOptions { prepare: false, buffer_bytes: 0 };

fn write(records: &[Vec<u8>]) -> Vec<u8> {
    let file = MemoryFile::new();
    let mut writer = LogWriter::new(file.clone(), 0, UNBUFFERED);
    for record in records {
        writer.append(record).unwrap();
    }
    assert_eq!(writer.offset(), file.bytes().len() as u64);
    file.bytes()
}

#[derive(Debug, PartialEq)]
struct Log {
    records: Vec<Vec<u8>>,
    ends: Vec<u64>,
    tail: Tail,
    skipped: Vec<Skipped>,
}

fn read(bytes: &[u8], on_corruption: OnCorruption) -> Result<Log> {
    let path = Path::new("000003.log");
    let positioned = read_file(BytesFile::positioned(bytes), path, on_corruption);
    let mapped = read_file(BytesFile::mapped(bytes), path, on_corruption);
    assert_eq!(format!("{positioned:?}"), format!("{mapped:?}"));
    mapped
}

fn read_file(
    file: Arc<dyn crate::fs::ReadFile>,
    path: &Path,
    on_corruption: OnCorruption,
) -> Result<Log> {
    let mut reader = LogReader::new(file, path, on_corruption)?;
    let (mut records, mut ends) = (Vec::new(), vec![0]);
    while let Some(record) = reader.next()? {
        assert!(record.offset >= *ends.last().unwrap() && record.end > record.offset);
        ends.push(record.end);
        records.push(record.bytes.to_vec());
    }
    assert!(reader.next()?.is_none());
    let (tail, skipped) = (reader.tail().unwrap().clone(), reader.skipped().to_vec());
    Ok(Log { records, ends, tail, skipped })
}

fn torn(log: &Log) -> &Torn {
    match &log.tail {
        Tail::Torn(torn) => torn,
        Tail::Clean => panic!("clean"),
    }
}

/// Records of text, so that no zeros are in them, over three blocks.
fn sample() -> Vec<Vec<u8>> {
    let text = |length| (0..length).map(|at| b'a' + (at % 23) as u8).collect();
    [100, 5000, 0, 40_000, 1, 20_000, 7000, 3000].into_iter().map(text).collect()
}

#[test]
fn the_bytes_are_the_documented_ones() {
    // CRC32C("\x01foo") = c4d1a3ab, by a bitwise implementation; masked as coding says.
    let crc = bitwise_crc32c(b"\x01foo").rotate_right(15).wrapping_add(0xa282_ead8);
    let expected = [&crc.to_le_bytes()[..], b"\x03\x00\x01foo"].concat();
    assert_eq!(write(&[b"foo".to_vec()]), expected);
}

fn bitwise_crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 }
        })
    })
}

#[test]
fn the_end_of_a_block_is_filled_as_documented() {
    // The first record leaves `left` bytes of its block.
    for (left, expected) in [(8, "FIRST 1"), (7, "FIRST 0"), (6, "zeros"), (1, "zeros")] {
        let first = BLOCK_BYTES - HEADER_BYTES - left;
        let bytes = write(&[vec![b'x'; first], b"second".to_vec()]);
        let at = BLOCK_BYTES - left;
        let shown = match bytes[at..] {
            [_, _, _, _, length, 0, 2, ..] if left >= 7 => format!("FIRST {length}"),
            _ if bytes[at..BLOCK_BYTES].iter().all(|byte| *byte == 0) => "zeros".to_owned(),
            _ => "else".to_owned(),
        };
        assert_eq!(shown, expected, "{left} bytes left");
        assert_eq!(read(&bytes, OnCorruption::Fail).unwrap().records[1], b"second");
    }
}

#[test]
fn logs_of_the_original_programs_are_read_and_written_alike() {
    let is_log = |name: &str| name.ends_with(".log") || name.starts_with("MANIFEST-");
    for path in golden_files(is_log) {
        let bytes = fs::read(&path).unwrap();
        let log = read(&bytes, OnCorruption::Fail).unwrap();
        assert_eq!(log.tail, Tail::Clean, "{path:?}");
        assert!(write(&log.records) == bytes, "{path:?}");
    }
}

#[test]
fn a_group_is_one_write_and_parts_are_one_record() {
    let file = MemoryFile::new();
    let options = LogOptions { prepare: true, buffer_bytes: 0 };
    let mut writer = LogWriter::new(file.clone(), 0, options);
    writer.add(&[b"head", b"", b"body"]);
    writer.add(&[&[b'x'; 70_000], b"tail"]);
    assert_eq!(file.calls().write_count, 0);
    writer.commit().unwrap();
    assert_eq!(file.calls().write_count, 1);
    writer.append(b"").unwrap();
    assert!(file.bytes().len() as u64 > writer.offset());
    writer.finish().unwrap();
    assert_eq!(file.calls().truncated_to, Some(writer.offset()));
    let log = read(&file.bytes(), OnCorruption::Fail).unwrap();
    let long = [&[b'x'; 70_000][..], b"tail"].concat();
    assert_eq!(log.records, [b"headbody".to_vec(), long, Vec::new()]);
}

#[test]
fn buffered_records_wait_until_the_bound_or_a_flush() {
    let file = MemoryFile::new();
    let options = LogOptions { prepare: false, buffer_bytes: 100 };
    let mut writer = LogWriter::new(file.clone(), 0, options);
    writer.append(&[b'a'; 50]).unwrap();
    assert_eq!((writer.offset(), writer.written(), file.bytes().len()), (57, 0, 0));
    writer.append(&[b'b'; 50]).unwrap();
    assert_eq!((writer.written(), file.bytes().len()), (114, 114));
    writer.append(b"c").unwrap();
    writer.sync().unwrap();
    assert_eq!((file.bytes().len(), file.calls().sync_count), (122, 1));
}

#[test]
fn after_a_failure_nothing_is_written_any_more() {
    for fails_in_sync in [false, true] {
        let file = MemoryFile::new();
        let mut writer = LogWriter::new(file.clone(), 0, UNBUFFERED);
        writer.append(b"before").unwrap();
        file.set_failing(true);
        if fails_in_sync {
            writer.sync().unwrap_err();
        } else {
            writer.append(b"lost").unwrap_err();
        }
        file.set_failing(false);
        for result in [writer.append(b"after"), writer.flush(), writer.sync(), writer.finish()] {
            assert!(matches!(result, Err(crate::Error::Poisoned { .. })), "{result:?}");
        }
        assert_eq!(read(&file.bytes(), OnCorruption::Fail).unwrap().records, [b"before"]);
    }
}

#[test]
fn a_log_is_continued_where_it_ended() {
    let records = sample();
    let file = MemoryFile::new();
    for record in &records {
        let end = file.bytes().len() as u64;
        LogWriter::new(file.clone(), end, UNBUFFERED).append(record).unwrap();
    }
    assert!(file.bytes() == write(&records));
}

#[test]
fn a_log_cut_anywhere_holds_the_whole_records_before_the_cut() {
    let records = sample();
    let bytes = write(&records);
    let whole = read(&bytes, OnCorruption::Fail).unwrap();
    for length in (0..bytes.len()).rev().step_by(71).chain(0..300) {
        for on_corruption in [OnCorruption::Fail, OnCorruption::Skip] {
            let cut = read(&bytes[..length], on_corruption).unwrap();
            let count = whole.ends.iter().filter(|end| **end <= length as u64).count() - 1;
            assert!(cut.records == records[..count], "cut at {length}");
            assert!(cut.skipped.is_empty());
            if let Tail::Torn(torn) = &cut.tail {
                assert_eq!(torn.valid_up_to, whole.ends[count], "cut at {length}");
                assert!(torn.kind != TornKind::Garbage && !torn.records_follow, "{torn:?}");
            } else {
                // Zeros that fill a block up belong to no record.
                let zeros = &bytes[usize::try_from(whole.ends[count]).unwrap()..length];
                assert!(zeros.len() < HEADER_BYTES && zeros.iter().all(|byte| *byte == 0));
            }
        }
    }
}

#[test]
fn a_flipped_byte_is_told_and_never_read_as_data() {
    let records = sample();
    let bytes = write(&records);
    let (mut failed, mut torn_count) = (0, 0);
    // Every byte of headers is among the first and last of the records; payloads by steps.
    let ends = read(&bytes, OnCorruption::Fail).unwrap().ends;
    let near_ends = ends.iter().flat_map(|end| end.saturating_sub(12)..end + 12);
    let near_blocks = (0..4u64).flat_map(|block| block * 32768..block * 32768 + 10);
    let spread = (0..bytes.len() as u64).step_by(311);
    for at in near_ends.chain(near_blocks).chain(spread) {
        let Some(at) = usize::try_from(at).ok().filter(|at| *at < bytes.len()) else { continue };
        for flip in [0x01, 0x80, 0xff] {
            let mut wrong = bytes.clone();
            wrong[at] ^= flip;
            match read(&wrong, OnCorruption::Fail) {
                Ok(log) if log.tail == Tail::Clean => assert!(log.records == records, "at {at}"),
                Ok(log) => {
                    torn_count += 1;
                    assert!(log.records == records[..log.records.len()], "at {at}");
                    assert!(!torn(&log).records_follow, "at {at}: {:?}", log.tail);
                }
                Err(error) => {
                    failed += 1;
                    assert!(error.is_corruption(), "{error}");
                }
            }
            let skipped = read(&wrong, OnCorruption::Skip).unwrap();
            let mut expected = records.iter();
            for record in &skipped.records {
                assert!(expected.any(|expected| expected == record), "at {at}");
            }
        }
    }
    assert!(failed > 500 && torn_count > 50, "{failed} {torn_count}");
}

#[test]
fn a_page_that_was_never_written_ends_the_log_though_records_follow() {
    let records = sample();
    let bytes = write(&records);
    let whole = read(&bytes, OnCorruption::Fail).unwrap();
    for page in 0..bytes.len() / 4096 {
        let mut holed = bytes.clone();
        holed[page * 4096..(page + 1) * 4096].fill(0);
        let log = read(&holed, OnCorruption::Fail).unwrap();
        let torn = torn(&log);
        let count = whole.ends.iter().filter(|end| **end <= page as u64 * 4096).count() - 1;
        assert!(log.records == records[..count], "page {page}");
        assert_eq!(torn.kind, TornKind::Unwritten, "page {page}: {torn:?}");
        assert_eq!(torn.valid_up_to, whole.ends[count], "page {page}");
        let skipping = read(&holed, OnCorruption::Skip).unwrap();
        assert!(skipping.records.iter().all(|record| records.contains(record)));
        assert_eq!(torn.records_follow, !skipping.skipped.is_empty(), "page {page}");
    }
}

#[test]
fn zeros_and_garbage_behind_the_last_record_are_a_torn_tail() {
    let records = sample();
    let bytes = write(&records);
    for (behind, kind) in [
        (vec![0; 3], TornKind::Unwritten),
        (vec![0; 5000], TornKind::Unwritten),
        (vec![0; 100_000], TornKind::Unwritten),
        (vec![0xa5; 5], TornKind::Truncated),
        (vec![0xa5; 9000], TornKind::Garbage),
        (vec![0x01; 90_000], TornKind::Garbage),
    ] {
        let longer = [&bytes[..], &behind].concat();
        for on_corruption in [OnCorruption::Fail, OnCorruption::Skip] {
            let log = read(&longer, on_corruption).unwrap();
            assert!(log.records == records);
            let torn = torn(&log);
            assert_eq!((torn.valid_up_to, torn.kind), (bytes.len() as u64, kind), "{torn:?}");
        }
    }
}

#[test]
fn fragments_out_of_place_are_damage() {
    let file = |records: &[Vec<u8>]| write(records);
    let long = file(&[vec![b'l'; 50_000]]);
    let short = file(&[b"short".to_vec()]);
    // A record that never ends, then another one at the next block.
    let unended = [&long[..BLOCK_BYTES], &short].concat();
    assert!(read(&unended, OnCorruption::Fail).unwrap_err().is_corruption());
    let log = read(&unended, OnCorruption::Skip).unwrap();
    assert_eq!(log.records, [b"short"]);
    assert_eq!((log.skipped[0].offset, log.skipped[0].length), (0, BLOCK_BYTES as u64));
    // The end of a record that never started.
    let unstarted = [&long[BLOCK_BYTES..], &short].concat();
    assert!(read(&unstarted, OnCorruption::Fail).unwrap_err().is_corruption());
    assert_eq!(read(&unstarted, OnCorruption::Skip).unwrap().records, [b"short"]);
    // An empty FIRST that older writers left behind.
    let filled = file(&[vec![b'x'; BLOCK_BYTES - 2 * HEADER_BYTES], vec![b'y'; 9]]);
    let left_behind = [&filled[..BLOCK_BYTES], &short].concat();
    let log = read(&left_behind, OnCorruption::Fail).unwrap();
    assert_eq!((log.records.len(), log.tail), (2, Tail::Clean));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_written_is_read(
        lengths in prop::collection::vec(
            prop_oneof![0..200usize, 32_700..32_800usize, 0..100_000usize], 0..12),
    ) {
        let records: Vec<_> = lengths.iter().map(|length| vec![length.to_le_bytes()[0]; *length]).collect();
        let log = read(&write(&records), OnCorruption::Fail).unwrap();
        prop_assert!(log.records == records);
        prop_assert_eq!(log.tail, Tail::Clean);
    }

    #[test]
    fn random_bytes_are_read_or_refused(
        bytes in prop::collection::vec(prop_oneof![Just(0u8), Just(1), any::<u8>()], 0..70_000),
    ) {
        let _ = read(&bytes, OnCorruption::Fail);
        let _ = read(&bytes, OnCorruption::Skip).unwrap();
    }
}
