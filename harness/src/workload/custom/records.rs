//! The keys and values that the file describes.

use super::{Custom, KeyForm};
use crate::workload::choose::Scatter;
use crate::workload::job::Records;
use crate::workload::keys::hex_digit;
use crate::workload::rng::{SplitMix64, mix};
use crate::workload::shares::Shares;
use crate::workload::sized::SizedValues;

/// The records of a seed.
pub(super) struct CustomRecords {
    prefix: Vec<u8>,
    digits: usize,
    form: KeyForm,
    /// Where the numbers of hexadecimal keys go.
    scatter: Scatter,
    sizes: Shares<[u32; 2]>,
    values: SizedValues,
    seed: u64,
}

/// So many hexadecimal digits are a number that is scattered; those behind them are made of it.
const SCATTERED_DIGITS: usize = 15;

impl CustomRecords {
    pub(super) fn new(custom: &Custom, seed: u64) -> Self {
        let prefix = custom.keys.prefix.clone().into_bytes();
        let digits = (custom.keys.bytes.get() as usize).saturating_sub(prefix.len());
        let sizes = custom.values.all_sizes().into_iter().map(|size| (size.bytes, size.share));
        Self {
            prefix,
            digits,
            form: custom.keys.form,
            scatter: Scatter::new(1 << (4 * digits.min(SCATTERED_DIGITS)), mix(seed)),
            sizes: Shares::new(sizes),
            values: SizedValues::new(custom.values.content, seed),
            seed: SplitMix64::for_index(seed, u64::from_le_bytes(*b"the size")).next_u64(),
        }
    }

    /// The size that `record` has at `version`.
    fn size(&self, record: u64, version: u64) -> usize {
        let mut sizes = self.sizes.things();
        if let (1, Some([least, most])) = (sizes.len(), sizes.next())
            && least == most
        {
            return least as usize;
        }
        let mut rng = SplitMix64::for_index(self.seed ^ mix(version), record);
        let [least, most] = self.sizes.at(rng.fraction()).unwrap_or([0, 0]);
        least as usize + rng.below((most - least) as usize + 1)
    }
}

impl Records for CustomRecords {
    fn write_key(&self, record: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.prefix);
        let (start, end) = (out.len(), out.len() + self.digits);
        let mut rest = record;
        match self.form {
            KeyForm::Decimal => {
                out.resize(end, b'0');
                for digit in out[start..].iter_mut().rev() {
                    *digit = b'0' + (rest % 10).to_le_bytes()[0];
                    rest /= 10;
                }
            }
            KeyForm::Hex => {
                rest = self.scatter.place(record);
                let scattered = self.digits.min(SCATTERED_DIGITS);
                for at in (0..scattered).rev() {
                    out.push(hex_digit(rest >> (4 * at)));
                }
                let mut rng = SplitMix64::new(rest);
                out.extend((scattered..self.digits).map(|_| hex_digit(rng.next_u64())));
            }
        }
    }

    fn write_value(&self, record: u64, version: u64, out: &mut Vec<u8>) {
        self.values.write(record, version, self.size(record, version), out);
    }

    fn record_of(&self, key: &[u8]) -> Option<u64> {
        let digits = std::str::from_utf8(key.strip_prefix(self.prefix.as_slice())?).ok()?;
        let record = match self.form {
            KeyForm::Decimal => digits.parse().ok()?,
            KeyForm::Hex => {
                let scattered = digits.get(..self.digits.min(SCATTERED_DIGITS))?;
                self.scatter.number(u64::from_str_radix(scattered, 16).ok()?)
            }
        };
        let mut again = Vec::new();
        self.write_key(record, &mut again);
        (again == key).then_some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::custom::{Keys, Size, Values};
    use crate::workload::sized::Content;

    fn records(keys: Keys, values: Values) -> CustomRecords {
        CustomRecords::new(&Custom { keys, values, phases: Vec::new() }, 42)
    }

    fn keys(bytes: u32, form: KeyForm, prefix: &str) -> Keys {
        let bytes = bytes.try_into().unwrap();
        Keys { count: std::num::NonZeroU64::MIN, bytes, form, prefix: prefix.to_owned() }
    }

    fn fixed(bytes: u32) -> Values {
        Values { content: Content::Random, bytes: Some(bytes), sizes: Vec::new() }
    }

    fn key(records: &CustomRecords, record: u64) -> String {
        let mut key = Vec::new();
        records.write_key(record, &mut key);
        String::from_utf8(key).unwrap()
    }

    #[test]
    fn decimal_keys_are_the_numbers_behind_the_prefix() {
        let records = records(keys(10, KeyForm::Decimal, "user"), fixed(1));
        assert_eq!(key(&records, 0), "user000000");
        assert_eq!(key(&records, 42), "user000042");
        assert_eq!(key(&records, 999_999), "user999999");
        assert_eq!(records.record_of(b"user000042"), Some(42));
        for wrong in ["user42", "resu000042", "user00004x", "user+00042", "user0000042"] {
            assert_eq!(records.record_of(wrong.as_bytes()), None, "{wrong}");
        }
    }

    /// All keys of two digits are there once; longer ones differ, and tell their number.
    #[test]
    fn hexadecimal_keys_are_another_for_every_record_and_tell_it() {
        let two = records(keys(3, KeyForm::Hex, "k"), fixed(1));
        let mut all: Vec<String> = (0..256).map(|record| key(&two, record)).collect();
        assert!(!all.is_sorted());
        all.sort();
        assert_eq!(all, (0..256).map(|number| format!("k{number:02x}")).collect::<Vec<_>>());
        for bytes in [14, 15, 16, 32, 100] {
            let records = records(keys(bytes, KeyForm::Hex, ""), fixed(1));
            let mut seen = std::collections::HashSet::new();
            for record in 0..10_000 {
                let key = key(&records, record);
                assert_eq!(key.len(), bytes as usize);
                assert_eq!(records.record_of(key.as_bytes()), Some(record));
                assert!(seen.insert(key));
            }
        }
    }

    /// By hand: 0.7 of 10,000 values within five standard deviations (46 each).
    #[test]
    fn sizes_have_their_shares() {
        let sizes = vec![
            Size { bytes: [100, 199], share: 0.7 },
            Size { bytes: [5_000, 5_000], share: 0.3 },
        ];
        let values = Values { content: Content::Random, bytes: None, sizes };
        assert_eq!(values.mean_bytes(), 1_605);
        let records = records(keys(8, KeyForm::Decimal, ""), values);
        let sizes: Vec<usize> = (0..10_000).map(|record| records.size(record, 3)).collect();
        let small: Vec<_> = sizes.iter().filter(|&&size| size < 5_000).collect();
        assert!(small.len().abs_diff(7_000) < 230, "{}", small.len());
        assert_eq!((small.iter().min(), small.iter().max()), (Some(&&100), Some(&&199)));
        let versions: std::collections::HashSet<_> =
            (0..100).map(|version| records.size(5, version)).collect();
        assert!(versions.len() > 30, "another size for another version");
        let mut value = Vec::new();
        records.write_value(9, 3, &mut value);
        assert_eq!(value.len(), sizes[9]);
    }
}
