//! The records: JSON objects of 250 bytes under their numbers.
//!
//! ```text
//! key    000000000123
//! value  {"id": 123, "name": "Ada Okoro", "city": "Turin", "year": 1987, "score": 0.4711,
//!         "tags": ["blue", "oak"], "note": "words …"}          on one line, 250 bytes
//! ```

use std::io::Write;

use crate::workload::job::Records;
use crate::workload::rng::SplitMix64;

/// Digits of every key.
pub(super) const KEY_BYTES: u32 = 12;

/// Bytes of every value.
pub(super) const VALUE_BYTES: usize = 250;

#[rustfmt::skip]
const WORDS: [&str; 48] = [
    "amber", "ash", "blue", "brook", "cedar", "clay", "cloud", "coal", "coast", "copper", "dawn",
    "delta", "dune", "dusk", "ember", "fern", "field", "flint", "frost", "glass", "grain", "green",
    "grove", "harbour", "hazel", "hill", "iron", "island", "ivory", "lake", "maple", "marsh",
    "mist", "moss", "night", "oak", "ocean", "pearl", "pine", "rain", "river", "salt", "sand",
    "slate", "stone", "storm", "valley", "willow",
];
const FIRST_NAMES: [&str; 12] = [
    "Ada", "Bo", "Chidi", "Dana", "Emil", "Farah", "Goro", "Hanna", "Ines", "Jamal", "Kaia", "Luca",
];
const LAST_NAMES: [&str; 12] = [
    "Abara", "Berg", "Costa", "Diaz", "Eriksen", "Fujita", "Grant", "Haddad", "Ito", "Jansen",
    "Keller", "Okoro",
];
const CITIES: [&str; 8] =
    ["Turin", "Lagos", "Osaka", "Oslo", "Quito", "Leeds", "Pune", "Montevideo"];

/// The records of a seed.
pub(super) struct SetteeRecords {
    pub(super) seed: u64,
}

impl Records for SetteeRecords {
    fn write_key(&self, record: u64, out: &mut Vec<u8>) {
        // Writing to memory does not fail.
        let _ = write!(out, "{record:0width$}", width = KEY_BYTES as usize);
    }

    fn write_value(&self, record: u64, version: u64, out: &mut Vec<u8>) {
        let end = out.len() + VALUE_BYTES;
        let mut rng = SplitMix64::for_index(self.seed, record ^ version.rotate_left(32));
        let mut pick = |words: &[&'static str]| words[rng.below(words.len())];
        let (first, last) = (pick(&FIRST_NAMES), pick(&LAST_NAMES));
        let (city, tags) = (pick(&CITIES), [pick(&WORDS), pick(&WORDS)]);
        let (year, score) = (1930 + rng.below(80), rng.below(10_000));
        let _ = write!(
            out,
            r#"{{"id": {record}, "name": "{first} {last}", "city": "{city}", "year": {year}, "#
        );
        let [one, two] = tags;
        let _ = write!(out, r#""score": 0.{score:04}, "tags": ["{one}", "{two}"], "note": ""#);
        while out.len() < end {
            out.extend_from_slice(WORDS[rng.below(WORDS.len())].as_bytes());
            out.push(b' ');
        }
        out.truncate(end - 2);
        out.extend_from_slice(b"\"}");
    }

    fn record_of(&self, key: &[u8]) -> Option<u64> {
        let digits = key.len() == KEY_BYTES as usize && key.iter().all(u8::is_ascii_digit);
        std::str::from_utf8(key).ok().filter(|_| digits)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest record too: its head leaves room for a note.
    #[test]
    fn every_value_is_an_object_of_250_bytes_that_tells_its_record() {
        let records = SetteeRecords { seed: 42 };
        let mut seen = std::collections::HashSet::new();
        for record in (0..2_000).chain([999_999_999_999]) {
            let mut value = Vec::new();
            records.write_value(record, 0, &mut value);
            assert_eq!(value.len(), 250);
            let object: serde_json::Value = serde_json::from_slice(&value).unwrap();
            assert_eq!(object["id"], record);
            assert!(object["note"].as_str().unwrap().len() > 20, "{object}");
            assert!(seen.insert(value), "record {record}");
        }
    }

    #[test]
    fn keys_ascend_with_their_records_and_tell_them() {
        let records = SetteeRecords { seed: 42 };
        let key = |record| {
            let mut key = Vec::new();
            records.write_key(record, &mut key);
            key
        };
        assert_eq!(key(123), b"000000000123");
        let numbers = [0, 9, 10, 99_999, 100_000, 999_999_999_999];
        assert!(numbers.windows(2).all(|pair| key(pair[0]) < key(pair[1])));
        assert!(numbers.iter().all(|&number| records.record_of(&key(number)) == Some(number)));
        for wrong in ["", "123", "00000000012x", "+00000000123"] {
            assert_eq!(records.record_of(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
