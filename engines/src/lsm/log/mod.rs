//! The record log: what logs and manifests are made of.
//!
//! A file is a row of blocks of 32 KiB. A record is cut into fragments that do not cross blocks:
//! ```text
//! 0  fixed32  checksum of type and payload
//! 4  u16      length of the payload, little-endian
//! 6  u8       type: 1 FULL, 2 FIRST, 3 MIDDLE, 4 LAST
//! 7  payload
//! ```
//! Fewer than seven bytes at the end of a block are zeros. With exactly seven left, a FIRST
//! without payload may stand there. A header of zeros is space that was reserved and never
//! written: the rest of the block holds nothing.

mod reader;
mod writer;

pub(crate) use reader::{LogReader, OnCorruption, Tail, Torn, TornKind};
pub(crate) use writer::{LogOptions, LogWriter};

/// The size of a block.
pub(crate) const BLOCK_BYTES: usize = 32 << 10;
/// The size of a fragment's header.
pub(crate) const HEADER_BYTES: usize = 7;

const _: () = assert!(BLOCK_BYTES - HEADER_BYTES <= u16::MAX as usize);

/// What a fragment is to its record. Persisted: do not renumber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum FragmentType {
    Full = 1,
    First = 2,
    Middle = 3,
    Last = 4,
}

impl FragmentType {
    fn of(is_first: bool, is_last: bool) -> Self {
        match (is_first, is_last) {
            (true, true) => Self::Full,
            (true, false) => Self::First,
            (false, false) => Self::Middle,
            (false, true) => Self::Last,
        }
    }

    fn parse(byte: u8) -> Option<Self> {
        [Self::Full, Self::First, Self::Middle, Self::Last]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

#[cfg(test)]
mod tests;
