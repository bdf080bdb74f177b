//! Requests as traces write them, one a line.
//!
//! Of Twitter's cache traces:
//! - `get` and `gets` are reads;
//! - `set` is an update: a put that reads nothing;
//! - `add` is an insert where the key is not there, else a read, which finds it and leaves it;
//! - `replace`, `cas`, `append`, `prepend`, `incr` and `decr` are a read and a put where the key is
//!   there, else a read, which misses;
//! - `delete` is a deletion.
//!
//! Of YCSB's lists:
//! - `READ` is a read, `INSERT` an insert, `SCAN` a scan, `DELETE` a deletion;
//! - `UPDATE` is an update of a field where the key is there: a read and a put of a value as large
//!   as before; else an insert.
//!
//! A key is there from its first write in the trace until it is deleted: what was in a cache before
//! the trace began is not known. A put has the size of value that the trace says; nothing else of
//! the value is in the trace. Times to live are not replayed, but counted.

use std::str::from_utf8;

use super::facts::Format;
use crate::workload::sized::{MOST_KEY_BYTES, MOST_VALUE_BYTES};

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request<'a> {
    /// What the trace calls it.
    pub(super) word: &'static str,
    pub(super) what: What,
    pub(super) key: &'a [u8],
    /// The size of the value; absent where the trace tells none.
    pub(super) value_bytes: Option<u32>,
    /// How far a scan goes.
    pub(super) length: u32,
    pub(super) second: Option<u64>,
    pub(super) expires: bool,
}

/// What is asked for. What is done depends on whether the key is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum What {
    Get,
    Set,
    Add,
    Change,
    Delete,
    Scan,
    Insert,
    UpdateField,
}

impl What {
    pub(super) const ALL: [Self; 8] = [
        Self::Get,
        Self::Set,
        Self::Add,
        Self::Change,
        Self::Delete,
        Self::Scan,
        Self::Insert,
        Self::UpdateField,
    ];
}

/// What was expected instead of a line.
type Parsed<'a> = Result<Request<'a>, String>;

const TWITTER: [(&str, What); 12] = [
    ("get", What::Get),
    ("gets", What::Get),
    ("set", What::Set),
    ("add", What::Add),
    ("replace", What::Change),
    ("cas", What::Change),
    ("append", What::Change),
    ("prepend", What::Change),
    ("incr", What::Change),
    ("decr", What::Change),
    ("delete", What::Delete),
    // As some of the traces spell it.
    ("del", What::Delete),
];

const YCSB: [(&str, What); 5] = [
    ("READ", What::Get),
    ("INSERT", What::Insert),
    ("UPDATE", What::UpdateField),
    ("SCAN", What::Scan),
    ("DELETE", What::Delete),
];

/// The format of a trace whose first line this is.
pub(super) fn format_of(line: &[u8]) -> Result<Format, String> {
    let first = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    if YCSB.iter().any(|(word, _)| word.as_bytes().eq_ignore_ascii_case(first)) {
        return Ok(Format::Ycsb);
    }
    match line.iter().filter(|&&byte| byte == b',').count() >= 6 {
        true => Ok(Format::Twitter),
        false => Err("expected a trace of Twitter's (timestamp,key,key size,value size,client id,\
                      operation,TTL), a list of YCSB's (READ table key …) or one that enginelab \
                      recorded"
            .into()),
    }
}

/// Reads a line of a trace in `format`.
pub(super) fn parse(format: Format, line: &[u8]) -> Parsed<'_> {
    match format {
        Format::Ycsb => ycsb(line),
        _ => twitter(line),
    }
}

/// The columns are told from the end, in case a key has a comma.
fn twitter(line: &[u8]) -> Parsed<'_> {
    let mut columns = line.rsplitn(6, |&byte| byte == b',');
    let columns = [(); 6].map(|()| columns.next());
    let [Some(ttl), Some(operation), Some(_client), Some(value), Some(_key_size), Some(rest)] =
        columns
    else {
        return Err("expected timestamp,key,key size,value size,client id,operation,TTL".to_owned());
    };
    let Some(comma) = rest.iter().position(|&byte| byte == b',') else {
        return Err("expected seven columns".to_owned());
    };
    let (second, key) = (&rest[..comma], &rest[comma + 1..]);
    let second = number(second).ok_or("expected a timestamp in whole seconds first")?;
    let named = TWITTER.iter().find(|(word, _)| word.as_bytes() == operation.trim_ascii());
    let &(word, what) = named.ok_or_else(|| {
        let words = TWITTER.map(|(word, _)| word).join(", ");
        format!("expected one of {words} as the sixth column")
    })?;
    let bytes = number(value).and_then(|bytes| u32::try_from(bytes).ok());
    let bytes = bytes.filter(|&bytes| bytes <= MOST_VALUE_BYTES);
    let bytes = bytes.ok_or("expected a value size up to 16777216 as the fourth column")?;
    let ttl = number(ttl).ok_or("expected a time to live in seconds as the last column")?;
    Ok(Request {
        word,
        what,
        key: checked(key)?,
        value_bytes: Some(bytes),
        length: 0,
        second: Some(second),
        expires: ttl > 0,
    })
}

/// `UPDATE usertable user123 [ field1=… ]`: the value is what stands between the brackets.
fn ycsb(line: &[u8]) -> Parsed<'_> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default();
    let named = YCSB.iter().find(|(word, _)| word.as_bytes().eq_ignore_ascii_case(first));
    let &(word, what) = named.ok_or_else(|| {
        format!("expected a line that begins with {}", YCSB.map(|(word, _)| word).join(", "))
    })?;
    let (Some(_table), Some(key)) = (words.next(), words.next()) else {
        return Err(format!("expected {word}, a table and a key"));
    };
    let length = match what {
        What::Scan => {
            let length = words.next().and_then(number).and_then(|length| length.try_into().ok());
            let length = length.filter(|length| (1..=1u32 << 31).contains(length));
            length.ok_or("expected how many records to scan behind the key")?
        }
        _ => 0,
    };
    let open = line.iter().position(|&byte| byte == b'[');
    let close = line.iter().rposition(|&byte| byte == b']');
    let value = open.zip(close).and_then(|(open, close)| line.get(open + 1..close));
    let value = value.map(<[u8]>::trim_ascii).filter(|value| !value.is_empty());
    let value_bytes = value.and_then(|value| u32::try_from(value.len()).ok());
    Ok(Request {
        word,
        what,
        key: checked(key)?,
        value_bytes,
        length,
        second: None,
        expires: false,
    })
}

fn number(text: &[u8]) -> Option<u64> {
    let digits = from_utf8(text.trim_ascii()).ok()?;
    digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())?
}

fn checked(key: &[u8]) -> Result<&[u8], String> {
    match (1..=MOST_KEY_BYTES as usize).contains(&key.len()) {
        true => Ok(key),
        false => Err(format!("expected a key of 1 to {MOST_KEY_BYTES} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(line: &str) -> Parsed<'_> {
        let format = format_of(line.as_bytes())?;
        parse(format, line.as_bytes())
    }

    #[test]
    fn lines_of_twitters_traces_are_read() {
        let found = request("1583990400,nz:u:eeW511W3dcH3de3d15ec,22,304,32,gets,0").unwrap();
        let expected = Request {
            word: "gets",
            what: What::Get,
            key: b"nz:u:eeW511W3dcH3de3d15ec",
            value_bytes: Some(304),
            length: 0,
            second: Some(1_583_990_400),
            expires: false,
        };
        assert_eq!(found, expected);
        let found = request("0,a,b,c,5,0,1,add,86400").unwrap();
        assert_eq!((found.key, found.what, found.expires), (&b"a,b,c"[..], What::Add, true));
        for (word, what) in TWITTER {
            let line = format!("7,k,1,2,3,{word},0");
            let found = request(&line).unwrap();
            assert_eq!((found.word, found.what), (word, what));
        }
    }

    /// As YCSB's BasicDB prints them.
    #[test]
    fn lines_of_ycsbs_lists_are_read() {
        let read = request("READ usertable user6284781860667377211 [ <all fields>]").unwrap();
        assert_eq!((read.what, read.key), (What::Get, &b"user6284781860667377211"[..]));
        let update = request("UPDATE usertable user1 [ field3=ab] c=d ]").unwrap();
        assert_eq!((update.what, update.value_bytes), (What::UpdateField, Some(14)));
        let scan = request("SCAN usertable user1 50 [ <all fields>]").unwrap();
        assert_eq!((scan.what, scan.length), (What::Scan, 50));
        let insert = request("insert usertable user2").unwrap();
        assert_eq!((insert.what, insert.value_bytes), (What::Insert, None));
        assert_eq!(request("DELETE usertable user9").unwrap().what, What::Delete);
    }

    #[test]
    fn what_is_no_request_is_told() {
        for (line, expected) in [
            ("some words", "expected a trace of Twitter's"),
            ("x,k,1,2,3,get,0", "expected a timestamp in whole seconds first"),
            ("-1,k,1,2,3,get,0", "expected a timestamp"),
            ("1,k,1,2,3,fetch,0", "expected one of get, gets, set"),
            ("1,k,1,-2,3,get,0", "expected a value size"),
            ("1,k,1,99999999,3,get,0", "expected a value size up to 16777216"),
            ("1,k,1,2,3,get,soon", "expected a time to live"),
            ("1,,0,2,3,get,0", "expected a key of 1 to 65535 bytes"),
            ("READ usertable", "expected READ, a table and a key"),
            ("SCAN usertable k many", "expected how many records to scan"),
            ("SCAN usertable k", "expected how many records to scan"),
            ("SCAN usertable k 0", "expected how many records to scan"),
        ] {
            let said = request(line).unwrap_err();
            assert!(said.contains(expected), "{line}: {said}");
        }
        assert!(parse(Format::Twitter, b"1,k,1").unwrap_err().contains("timestamp,key"));
        assert!(parse(Format::Ycsb, b"[READ], 5").unwrap_err().contains("READ, INSERT"));
    }
}
