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

#[derive(Debug, Clone, Copy)]
struct Place {
    start: usize,
    length: u16,
}

const _: () = assert!(size_of::<Place>() <= 16, "the documentation says so");

impl Keys {
    pub(super) fn take(source: &impl Source, range: KeyRange<'_>) -> Self {
        let (mut bytes, mut places) = (Vec::new(), Vec::new());
        source.pin(|key, _| {
            if range.contains(key) {
                let length = u16::try_from(key.len()).unwrap_or(u16::MAX);
                places.push(Place { start: bytes.len(), length });
                bytes.extend_from_slice(key);
            }
        });
        let key = |place: Place| &bytes[place.start..place.start + usize::from(place.length)];
        places.sort_unstable_by(|a, b| key(*a).cmp(key(*b)));
        Self { bytes, places }
    }

    /// The keys, ascending; reversed, descending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator {
        self.places.iter().map(|place| self.key(*place))
    }

    /// The number of keys.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    fn key(&self, place: Place) -> &[u8] {
        &self.bytes[place.start..place.start + usize::from(place.length)]
    }
}
