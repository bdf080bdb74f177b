//! The versions of an imported trace: the size of the value in the upper bits, and the number of
//! the operation, counted from 1, in the lower ones. So a value needs nothing but its version, and
//! no two puts have the same.

const NUMBER_BITS: u32 = 38;

/// The most operations.
pub(super) const MOST_OPERATIONS: u64 = (1 << NUMBER_BITS) - 2;

/// The version of a value of `bytes` bytes, without a number.
pub(super) fn of_size(bytes: u32) -> u64 {
    u64::from(bytes) << NUMBER_BITS
}

/// The version that operation `number` gives to a value of the size in `version`.
pub(super) fn at(version: u64, number: u64) -> u64 {
    version | (number + 1)
}

/// The size of the value.
pub(super) fn size(version: u64) -> usize {
    usize::try_from(version >> NUMBER_BITS).unwrap_or(0)
}
