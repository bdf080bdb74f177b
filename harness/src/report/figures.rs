//! How figures are written.

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with `decimals` places and its whole part in groups.
pub(crate) fn grouped_decimal(number: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", number.abs());
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), ""), |parts| parts);
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), grouped);
    let sign = if number < 0.0 { "-" } else { "" };
    match fraction {
        "" => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{fraction}"),
    }
}

/// Seconds with three significant places or the millisecond, whichever is coarser.
pub(crate) fn seconds(seconds: f64) -> String {
    match seconds {
        ..10.0 => format!("{seconds:.3}"),
        ..100.0 => format!("{seconds:.2}"),
        _ => grouped_decimal(seconds, 1),
    }
}

/// Bytes as megabytes of 10^6.
pub(crate) fn megabytes(bytes: f64) -> String {
    let megabytes = bytes / 1e6;
    grouped_decimal(megabytes, if megabytes < 100.0 { 2 } else { 1 })
}

/// A memory size in binary units, exact.
pub(crate) fn binary_size(bytes: u64) -> String {
    for (shift, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes >= 1 << shift && bytes.trailing_zeros() >= shift {
            return format!("{} {unit}", grouped(bytes >> shift));
        }
    }
    format!("{} bytes", grouped(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_grouped_and_rounded() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(4_886_613_449), "4,886,613,449");
        assert_eq!(grouped_decimal(48_871_588.4, 1), "48,871,588.4");
        assert_eq!(grouped_decimal(-1_234.5, 0), "-1,234");
        assert_eq!(seconds(1_201.673), "1,201.7");
        assert_eq!(seconds(12.036), "12.04");
        assert_eq!(seconds(0.5), "0.500");
        assert_eq!(megabytes(1_627_507_469.0), "1,627.5");
        assert_eq!(megabytes(4_096.0), "0.00");
        assert_eq!(binary_size(256 << 20), "256 MiB");
        assert_eq!(binary_size((1 << 30) + 1), "1,073,741,825 bytes");
        assert_eq!(binary_size(3 << 30), "3 GiB");
    }
}
