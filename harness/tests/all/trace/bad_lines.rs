//! Lines that are no requests are told with their number, or skipped where that is asked for.

use super::synthetic::synthetic;
use super::{Place, text, trace_of};
use crate::support::{compare, refused};

#[test]
fn a_line_that_is_no_request_is_told_or_skipped() {
    let place = Place::new();
    let lines = "1,a,1,5,1,set,0\n\n2,b,1,5,1,fetch,0\n3,c,1,5,1,get,0\n2,d,1,5,1,set,0\n";
    let file = place.file("t", lines);
    let said = refused(compare(&place.data, &["trace", &file]));
    assert!(said.contains("t, line 3: expected one of get, gets, set"), "{said}");
    assert!(said.contains("found \"2,b,1,5,1,fetch,0\""), "{said}");
    let skipping = ["--skip-bad-lines", "--engines", "memory"];
    let comparison = place.replay(&[&file], &skipping);
    assert_eq!(trace_of(&comparison).facts.skipped_lines, 2);
    assert_eq!(comparison.runs[0].operations.as_ref().unwrap().count, 2);
    let backward = place.file("b", "7,a,1,5,1,set,0\n6,a,1,5,1,set,0\n");
    let said = refused(compare(&place.data, &["trace", &backward]));
    assert!(said.contains("b, line 2: expected a timestamp from 7 on"), "{said}");
    let ycsb = place.file("y", "READ usertable k\n");
    let said = refused(compare(&place.data, &["trace", &ycsb, &backward]));
    assert!(said.contains("b, line 1: expected a request without a time"), "{said}");
    let long = place.file("l", vec![b'x'; 2 << 20]);
    assert!(refused(compare(&place.data, &["trace", &long])).contains("line 1: expected lines of"));
    let empty = place.file("e", "\n");
    assert!(refused(compare(&place.data, &["trace", &empty])).contains("there is no request"));
    let (lines, _) = synthetic(1, 1_000);
    let mut packed = zstd::encode_all(lines.as_bytes(), 3).unwrap();
    packed.truncate(packed.len() / 2);
    let packed = place.file("cut", packed);
    assert!(refused(compare(&place.data, &["trace", &packed])).contains("cannot read"));
    assert!(refused(compare(&place.data, &["trace", "nowhere"])).contains("cannot read nowhere"));
    let folder = refused(compare(&place.data, &["trace", text(&place.data)]));
    assert!(folder.contains("data is not an ordinary file"), "{folder}");
    assert!(place.is_clean());
}

/// The longest line is one of 1 MiB; what is longer is skipped up to its end, as one line.
#[test]
fn a_line_that_is_too_long_is_skipped_as_any_other() {
    let place = Place::new();
    let line = |length: usize| {
        let (before, after) = ("READ usertable k [", "]");
        format!("{before}{}{after}", "x".repeat(length - before.len() - after.len()))
    };
    const MOST: usize = 1 << 20;
    let good = "READ usertable k";
    for (lines, requests, skipped) in [
        (format!("{good}\n{}\n{good}\n", line(MOST)), 3, 0),
        (format!("{good}\n{}\n{good}\n", line(MOST + 1)), 2, 1),
        (format!("{good}\n{}\n{good}\n", line(3 * MOST)), 2, 1),
        (format!("{good}\n{}", line(3 * MOST)), 1, 1),
        (format!("{}\n{good}", line(MOST + 1)), 1, 1),
        (format!("{}\n{}\n{good}", line(MOST + 1), line(2 * MOST)), 1, 2),
    ] {
        for packed in [false, true] {
            let bytes = if packed {
                zstd::encode_all(lines.as_bytes(), 1).unwrap()
            } else {
                lines.clone().into()
            };
            let file = place.file("lines", bytes);
            let comparison = place.replay(&[&file], &["--skip-bad-lines", "--engines", "memory"]);
            let facts = &trace_of(&comparison).facts;
            assert_eq!((facts.requests["READ"], facts.skipped_lines), (requests, skipped));
            if skipped > 0 {
                let number = 1 + u64::from(lines.starts_with(&format!("{good}\n")));
                let said = refused(compare(&place.data, &["trace", &file]));
                let expected = format!("line {number}: expected lines of at most 1 MiB");
                assert!(said.contains(&expected), "{said}");
            }
        }
    }
}

/// It is told at the line where it is passed, and no way to skip lines leads around it.
#[test]
fn a_trace_of_too_many_seconds_is_refused_at_its_line() {
    const MOST: u64 = 2 << 20;
    let place = Place::new();
    let lines: String = (0..=MOST).map(|second| format!("{second},k,1,1,1,get,0\n")).collect();
    let file = place.file("long", lines);
    for more in [&[][..], &["--skip-bad-lines"]] {
        let said = refused(compare(&place.data, &[&["trace", &file], more].concat()));
        let expected = format!("long, line {}: expected at most 2,097,152 different", MOST + 1);
        assert!(said.contains(&expected), "{said}");
    }
}
