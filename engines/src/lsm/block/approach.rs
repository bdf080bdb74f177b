//! Coming closer to a key, entry by entry, without putting the keys on the way together.
//!
//! What an entry shares with the one before mostly tells on which side of the target it lies. All
//! entries so far came before the target, and the last one starts as the target does for
//! `matching` bytes:
//! - It shares more than those: it leaves the target where the one before did, to the same side.
//! - It shares no more than those: what is shared starts the target too, so only the rest of the
//!   key is to be compared with the rest of the target.
//!
//! That holds for user keys. Where an entry shares bytes of the tag, which sorts backwards, or of
//! what was no user key, nothing is concluded.

use std::cmp::Ordering;

use crate::lsm::key::{TAG_BYTES, user_key};

/// Where an entry lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Before the target: the approach goes on.
    Before,
    /// At the target or behind it, and starting as the target does with all that it shares.
    Reached,
    /// The keys must be put together.
    Unknown,
}

/// A walk from a restart point towards an internal key.
#[derive(Debug)]
pub(super) struct Approach<'a> {
    target: &'a [u8],
    tag: u64,
    /// How much of the target's user key that of the last entry starts with.
    matching: usize,
    /// The length of the last entry's user key.
    last_length: usize,
}

impl<'a> Approach<'a> {
    pub(super) fn new(internal_key: &'a [u8]) -> Self {
        let tag = internal_key.last_chunk().map_or(0, |tag| u64::from_le_bytes(*tag));
        Self { target: user_key(internal_key), tag, matching: 0, last_length: 0 }
    }

    /// On to the entry that shares `shared` bytes with the last one and goes on with `rest`.
    #[inline]
    pub(super) fn step(&mut self, shared: usize, rest: &[u8]) -> Side {
        let Some((rest, tag)) = rest.split_last_chunk::<TAG_BYTES>() else { return Side::Unknown };
        if shared > self.last_length {
            return Side::Unknown;
        }
        self.last_length = shared + rest.len();
        if shared > self.matching {
            return Side::Before;
        }
        let target = self.target.get(shared..).unwrap_or_default();
        let common = rest.iter().zip(target).take_while(|(one, other)| one == other).count();
        self.matching = shared + common;
        let order = match (rest.get(common), target.get(common)) {
            // Of one user key the larger tag comes first.
            (None, None) => self.tag.cmp(&u64::from_le_bytes(*tag)),
            (here, target) => here.cmp(&target),
        };
        if order == Ordering::Less { Side::Before } else { Side::Reached }
    }

    /// Puts the key together at which the target was reached.
    pub(super) fn key(&self, shared: usize, rest: &[u8], key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(self.target.get(..shared).unwrap_or_default());
        key.extend_from_slice(rest);
    }
}
