//! Numbers as people type them.

use std::num::{NonZeroU32, NonZeroU64};

use crate::workload::sized::MOST_VALUE_BYTES;

/// The most client threads: more of them measure the scheduler alone.
pub(crate) const MOST_THREADS: u32 = 1_024;

/// The most records of a batch: the batches of one round lie in memory.
pub(crate) const MOST_BATCH: u32 = 100_000;

/// The most of anything that is counted, far beyond what a machine does in a lifetime: so sums of
/// a few counts are numbers still.
pub(crate) const MOST_COUNT: u64 = 1 << 48;

/// Reads a memory size: bytes, or with `K`, `M`, `G` or `T` (also `KB`, `KiB`, …) powers of 1024.
pub(crate) fn memory_size(text: &str) -> Result<u64, String> {
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
    let number = plain(digits).and_then(|plain| plain.parse::<u64>().ok()).ok_or_else(wrong)?;
    let bytes = number.checked_mul(1 << shift).ok_or("more memory than there is anywhere")?;
    if bytes < LEAST_MEMORY { Err("expected at least 1M".to_owned()) } else { Ok(bytes) }
}

/// With less, some engines refuse to open.
const LEAST_MEMORY: u64 = 1 << 20;

/// Reads a count of at least one; `500_000` and `500,000` are taken too.
pub(crate) fn count(text: &str) -> Result<NonZeroU64, String> {
    let wrong = || "expected a whole number, such as 500000 or 500,000".to_owned();
    let number = plain(text).and_then(|plain| plain.parse::<u64>().ok()).ok_or_else(wrong)?;
    if number > MOST_COUNT {
        return Err(format!("there can be at most {MOST_COUNT}"));
    }
    NonZeroU64::new(number).ok_or_else(|| "there must be at least 1".to_owned())
}

/// Reads a number of threads.
pub(crate) fn threads(text: &str) -> Result<NonZeroU32, String> {
    up_to(text, MOST_THREADS)
}

/// Reads the records of a batch.
pub(crate) fn batch(text: &str) -> Result<NonZeroU32, String> {
    up_to(text, MOST_BATCH)
}

/// Reads the bytes of a value.
pub(crate) fn value_bytes(text: &str) -> Result<NonZeroU32, String> {
    up_to(text, MOST_VALUE_BYTES)
}

/// Reads a share or a probability.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

fn up_to(text: &str, most: u32) -> Result<NonZeroU32, String> {
    let number = NonZeroU32::try_from(count(text)?).ok().filter(|number| number.get() <= most);
    number.ok_or_else(|| format!("there can be at most {most}"))
}

/// Reads how often something is repeated.
pub(crate) fn repeats(text: &str) -> Result<NonZeroU32, String> {
    up_to(text, 1_000_000)
}

/// Reads operations a second.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let number = match text.parse::<f64>() {
        Ok(number) => number,
        Err(_) => count(text)?.get() as f64,
    };
    let wrong = "a rate is a number of operations a second from 0.001 to 1,000,000,000";
    if is_rate(number) { Ok(number) } else { Err(wrong.to_owned()) }
}

/// Whether it may be a rate.
pub(crate) fn is_rate(number: f64) -> bool {
    (1e-3..=1e9).contains(&number)
}

/// Whether it may be a time in seconds.
pub(crate) fn is_time(number: f64) -> bool {
    number > 0.0 && number <= 1e9
}

/// Reads a time in seconds.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let wrong = || "a time is a number of seconds over 0, at most 1,000,000,000".to_owned();
    let number = text.parse::<f64>().map_err(|_| wrong())?;
    if is_time(number) { Ok(number) } else { Err(wrong()) }
}

/// Reads how many times faster something goes.
pub(crate) fn factor(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (1e-3..=1e6).contains(number));
    number.ok_or_else(|| "expected a number from 0.001 to 1000000".to_owned())
}

/// Reads a share in percent, with or without the sign.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    let number = number.filter(|number| (0.0..=10_000.0).contains(number));
    number.ok_or_else(|| "expected a number of percent from 0 to 10000".to_owned())
}

/// Reads a name: what is around it does not count.
pub(crate) fn name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("a name is missing".to_owned()),
        name => Ok(name.to_owned()),
    }
}

/// The number without what groups its digits: `_` between any two, `,` before every third.
fn plain(text: &str) -> Option<String> {
    let mut groups = text.split(',');
    let first = groups.next()?;
    let rest: Vec<&str> = groups.collect();
    let in_threes = rest.iter().all(|group| group.len() == 3) && (1..=3).contains(&first.len());
    (rest.is_empty() || in_threes).then(|| text.replace(['_', ','], ""))
}

/// Reads `a,b`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
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
        assert_eq!(memory_size("2048k"), Ok(2 << 20));
        assert_eq!(memory_size("1_048_576"), Ok(1 << 20));
        for wrong in ["", "M", "-1", "1.5G", "12Q", "0", "0M", "1", "1023K", "99999999T", "é"] {
            assert!(memory_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn counts_are_at_least_one_and_no_sum_of_them_is_too_large() {
        assert_eq!(count("500_000").unwrap().get(), 500_000);
        assert_eq!(count("1,500,000").unwrap().get(), 1_500_000);
        assert_eq!(count("281474976710656").unwrap().get(), MOST_COUNT);
        for far in ["281474976710657", "18446744073709551615"] {
            assert_eq!(count(far).unwrap_err(), "there can be at most 281474976710656");
        }
        for wrong in ["0", "", "-3", "many", "1e6", "1,2,3", "1234,567", "12,34", ",100", "1,"] {
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
    fn rates_and_times_are_numbers_that_make_sense() {
        assert_eq!((rate("2.5"), rate("10,000")), (Ok(2.5), Ok(10_000.0)));
        for wrong in ["0", "-1", "inf", "NaN", "fast", ""] {
            assert!(rate(wrong).is_err() && seconds(wrong).is_err(), "{wrong}");
        }
        assert_eq!(seconds("0.25"), Ok(0.25));
    }

    #[test]
    fn a_share_is_at_most_the_whole() {
        assert_eq!((share("0"), share("0.25"), share("1")), (Ok(0.0), Ok(0.25), Ok(1.0)));
        for wrong in ["-0.1", "1.01", "NaN", "half", ""] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_stands_alone() {
        assert_eq!(name(" lsm"), Ok("lsm".into()));
        assert!(name(" ").is_err());
    }

    #[test]
    fn a_pair_is_two_different_names() {
        assert_eq!(pair("a,b"), Ok(("a".into(), "b".into())));
        for wrong in ["a", "a,", ",", "a,a", "a,b,c"] {
            assert!(pair(wrong).is_err(), "{wrong}");
        }
    }
}
