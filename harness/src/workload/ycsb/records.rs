//! YCSB's keys and values.
//!
//! ```text
//! key     "user" and a number in decimal, filled up with zeros to `zeropadding` digits: the
//!         record's own (insertorder=ordered), or its FNV hash (hashed)
//! value   for each field: length of name (4 bytes, high first), name, length (4), content
//! ```
//! That is how YCSB's own bindings for stores of whole values write a record.

use crate::workload::choose::fnv;
use crate::workload::job::Records;
use crate::workload::rng::{SplitMix64, mix};

/// The records of a workload.
#[derive(Debug, Clone)]
pub(super) struct YcsbRecords {
    pub(super) seed: u64,
    pub(super) hashed: bool,
    pub(super) zero_padding: usize,
    pub(super) field_count: u64,
    pub(super) field_length: usize,
    /// A version replaces all fields, not one.
    pub(super) whole: bool,
}

impl YcsbRecords {
    /// The bytes of every value.
    pub(super) fn value_bytes(&self) -> u64 {
        let names: u64 = (0..self.field_count).map(|field| name(field).len() as u64).sum();
        names + self.field_count * (8 + self.field_length as u64)
    }

    /// The bytes of the longest key.
    pub(super) fn most_key_bytes(&self) -> u64 {
        (KEY_HEAD.len() + self.zero_padding.max(MOST_DIGITS)) as u64
    }

    /// The field that `version` replaces.
    fn replaced(&self, version: u64) -> u64 {
        mix(version) % self.field_count
    }
}

const KEY_HEAD: &[u8] = b"user";

/// Digits of the largest number.
const MOST_DIGITS: usize = 20;

impl Records for YcsbRecords {
    fn write_key(&self, record: u64, out: &mut Vec<u8>) {
        let number = if self.hashed { fnv(record) } else { record };
        let (digits, start) = decimal(number);
        let digits = &digits[start..];
        out.extend_from_slice(KEY_HEAD);
        out.resize(out.len() + self.zero_padding.saturating_sub(digits.len()), b'0');
        out.extend_from_slice(digits);
    }

    /// Version 0 is what was loaded; a later one has one field of its own, or all of them.
    fn write_value(&self, record: u64, version: u64, out: &mut Vec<u8>) {
        for field in 0..self.field_count {
            let name = name(field);
            push_length(out, name.len());
            out.extend_from_slice(name.as_bytes());
            push_length(out, self.field_length);
            let is_new = version > 0 && (self.whole || self.replaced(version) == field);
            let stamp = if is_new { version } else { 0 };
            let seed = self.seed ^ mix(field) ^ mix(stamp).rotate_left(32);
            content(&mut SplitMix64::for_index(seed, record), self.field_length, out);
        }
    }
}

fn name(field: u64) -> String {
    format!("field{field}")
}

fn push_length(out: &mut Vec<u8>, length: usize) {
    // Field lengths are checked when they are chosen.
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
}

/// The digits of a number at the end of an array, and where they start.
fn decimal(mut number: u64) -> ([u8; 20], usize) {
    let (mut digits, mut start) = ([0; 20], 20);
    loop {
        start -= 1;
        digits[start] = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
        if number == 0 {
            return (digits, start);
        }
    }
}

/// Random bytes as YCSB makes them: six of every 32 random bits, each a blank plus some of the
/// bits, so that they are printable and compress a little.
fn content(rng: &mut SplitMix64, length: usize, out: &mut Vec<u8>) {
    const SHAPES: [(u32, u64); 6] = [(0, 31), (5, 63), (10, 95), (15, 31), (20, 63), (25, 95)];
    let end = out.len() + length;
    while out.len() < end {
        let bits = rng.next_u64();
        for half in [bits & 0xffff_ffff, bits >> 32] {
            out.extend(
                SHAPES
                    .map(|(shift, mask)| b' ' + u8::try_from((half >> shift) & mask).unwrap_or(0)),
            );
        }
    }
    out.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> YcsbRecords {
        YcsbRecords {
            seed: 42,
            hashed: true,
            zero_padding: 1,
            field_count: 10,
            field_length: 100,
            whole: false,
        }
    }

    fn key(records: &YcsbRecords, record: u64) -> String {
        let mut key = Vec::new();
        records.write_key(record, &mut key);
        String::from_utf8(key).unwrap()
    }

    #[test]
    fn keys_are_those_of_ycsb() {
        let records = records();
        assert_eq!(key(&records, 0), "user6284781860667377211");
        assert_eq!(key(&records, 1), "user8517097267634966620");
        assert_eq!(key(&records, 2), "user1820151046732198393");
        let ordered = YcsbRecords { hashed: false, zero_padding: 6, ..records };
        assert_eq!(
            (key(&ordered, 0), key(&ordered, 1_234_567)),
            ("user000000".into(), "user1234567".into())
        );
        assert_eq!(key(&ordered, 42), "user000042");
    }

    /// The fields of a value by name.
    fn fields(mut value: &[u8]) -> Vec<(String, Vec<u8>)> {
        let mut fields = Vec::new();
        let mut take = |count: usize| {
            let (taken, rest) = value.split_at(count);
            value = rest;
            taken.to_vec()
        };
        for _ in 0..10 {
            let length = u32::from_be_bytes(take(4).try_into().unwrap()) as usize;
            let name = String::from_utf8(take(length)).unwrap();
            let length = u32::from_be_bytes(take(4).try_into().unwrap()) as usize;
            fields.push((name, take(length)));
        }
        assert!(value.is_empty());
        fields
    }

    fn value(records: &YcsbRecords, record: u64, version: u64) -> Vec<u8> {
        let mut value = Vec::new();
        records.write_value(record, version, &mut value);
        assert_eq!(value.len() as u64, records.value_bytes());
        value
    }

    #[test]
    fn a_value_is_ten_printable_fields_of_which_an_update_replaces_one() {
        let records = records();
        let loaded = fields(&value(&records, 7, 0));
        assert_eq!(loaded.len(), 10);
        for (at, (name, content)) in loaded.iter().enumerate() {
            assert_eq!((name.as_str(), content.len()), (format!("field{at}").as_str(), 100));
            assert!(content.iter().all(|byte| (b' '..=b' ' + 95).contains(byte)));
        }
        let mut replaced = [0; 10];
        for version in 1..=200 {
            let updated = fields(&value(&records, 7, version));
            let changed: Vec<_> = (0..10).filter(|&at| updated[at] != loaded[at]).collect();
            assert_eq!(changed.len(), 1, "version {version}");
            replaced[changed[0]] += 1;
        }
        assert!(replaced.iter().all(|&count| count > 5), "{replaced:?}");
        let whole = YcsbRecords { whole: true, ..records };
        let updated = fields(&value(&whole, 7, 1));
        assert!((0..10).all(|at| updated[at] != loaded[at]));
    }

    #[test]
    fn values_differ_by_record_version_and_seed() {
        let records = records();
        let other = YcsbRecords { seed: 43, ..records.clone() };
        let mut seen = std::collections::HashSet::new();
        for record in 0..20 {
            for version in 0..20 {
                assert!(seen.insert(value(&records, record, version)));
            }
        }
        assert!(seen.insert(value(&other, 0, 0)));
    }
}
