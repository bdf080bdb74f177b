//! Numbers as people type them.

use std::num::{NonZeroU32, NonZeroU64};

/// Reads a memory size: bytes, or with `K`, `M`, `G` or `T` (also `KB`, `KiB`, …) powers of 1024.
pub(super) fn memory_size(text: &str) -> Result<u64, String> {
    let wrong = || "a size is a number of bytes, or one with K, M, G or T, such as 256M".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(wrong()),
    };
    let number = plain(digits).parse::<u64>().map_err(|_| wrong())?;
    let bytes = number.checked_mul(1 << shift).ok_or("more memory than there is anywhere")?;
    if bytes == 0 { Err("no engine runs in no memory".to_owned()) } else { Ok(bytes) }
}

/// Reads a count of at least one; `500_000` and `500,000` are taken too.
pub(super) fn count(text: &str) -> Result<NonZeroU64, String> {
    let number = plain(text).parse::<u64>().map_err(|_| "expected a whole number".to_owned())?;
    NonZeroU64::new(number).ok_or_else(|| "there must be at least 1".to_owned())
}

/// Reads a number of threads. More than this many clients measure the scheduler alone.
pub(super) fn threads(text: &str) -> Result<NonZeroU32, String> {
    up_to(text, 1_024)
}

/// Reads the records of a batch. The batches of one round lie in memory.
pub(super) fn batch(text: &str) -> Result<NonZeroU32, String> {
    up_to(text, 100_000)
}

fn up_to(text: &str, most: u32) -> Result<NonZeroU32, String> {
    let number = NonZeroU32::try_from(count(text)?).ok().filter(|number| number.get() <= most);
    number.ok_or_else(|| format!("there can be at most {most}"))
}

fn plain(text: &str) -> String {
    text.replace(['_', ','], "")
}

/// Reads `a,b`.
pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split(',').map(str::trim).collect::<Vec<_>>().as_slice() {
        [a, b] if !a.is_empty() && !b.is_empty() && a != b => Ok(((*a).into(), (*b).into())),
        _ => Err("a pair is two engines, such as bitcask,lsm".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(memory_size("256M"), Ok(256 << 20));
        assert_eq!(memory_size("1GiB"), Ok(1 << 30));
        assert_eq!(memory_size("64k"), Ok(64 << 10));
        assert_eq!(memory_size("1_000"), Ok(1_000));
        for wrong in ["", "M", "-1", "1.5G", "12Q", "0", "0M", "99999999T", "é"] {
            assert!(memory_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn counts_are_at_least_one() {
        assert_eq!(count("500_000").unwrap().get(), 500_000);
        for wrong in ["0", "", "-3", "many", "1e6"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn threads_and_batches_have_limits() {
        assert_eq!(threads("1024").unwrap().get(), 1_024);
        assert_eq!(batch("100_000").unwrap().get(), 100_000);
        for wrong in ["0", "1025", "99999999999"] {
            assert!(threads(wrong).is_err(), "{wrong}");
        }
        assert!(batch("100001").is_err());
    }

    #[test]
    fn a_pair_is_two_different_names() {
        assert_eq!(pair("a,b"), Ok(("a".into(), "b".into())));
        for wrong in ["a", "a,", ",", "a,a", "a,b,c"] {
            assert!(pair(wrong).is_err(), "{wrong}");
        }
    }
}
