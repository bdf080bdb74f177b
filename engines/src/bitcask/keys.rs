//! Keys in order, without their values.

use super::scan::Source;
use crate::KeyRange;

/// The keys of a range at one moment, in order. Made by [`Bitcask::keys`](super::Bitcask::keys) and
/// [`ReadOnlyBitcask::keys`](super::ReadOnlyBitcask::keys) from the keydir alone: no file is read.
///
/// Each key takes its own length and 16 bytes for as long as this lives, and up to twice that while
/// it is made.
#[derive(Debug, Clone)]
pub struct Keys {
    /// The keys one after the other, in no order.
    bytes: Vec<u8>,
    /// Where each key lies in there, in the order of the keys.
    places: Vec<Place>,
}

/// Where a key lies among keys that lie one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    start: usize,
    length: u16,
}

impl Place {
    /// Puts `key` behind the others.
    pub(super) fn push(keys: &mut Vec<u8>, key: &[u8]) -> Self {
        // Keys are not longer: the format has 16 bits for that.
        let place =
            Self { start: keys.len(), length: u16::try_from(key.len()).unwrap_or(u16::MAX) };
        keys.extend_from_slice(key);
        place
    }

    /// The key.
    pub(super) fn key(self, keys: &[u8]) -> &[u8] {
        &keys[self.start..self.start + usize::from(self.length)]
    }
}

const _: () = assert!(size_of::<Place>() <= 16, "the documentation says so");

impl Keys {
    pub(super) fn take(source: &impl Source, range: KeyRange<'_>) -> Self {
        let (mut bytes, mut places) = (Vec::new(), Vec::new());
        source.pin(|key, _| {
            if range.contains(key) {
                places.push(Place::push(&mut bytes, key));
            }
        });
        places.sort_unstable_by(|a, b| a.key(&bytes).cmp(b.key(&bytes)));
        Self { bytes, places }
    }

    /// The keys, ascending; reversed, descending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator {
        self.places.iter().map(|place| place.key(&self.bytes))
    }

    /// The number of keys.
    pub fn count(&self) -> usize {
        self.places.len()
    }
}
