//! Where the entries of a shard lie: end to end in chunks, so that nothing is copied as it grows.
//!
//! ```text
//! place of an entry   number of its chunk × 4,096 + its place in the chunk
//! ```
//! No entry reaches into a second chunk; one that is too long for any has a chunk of its own size.

/// Small enough that the free rest of the last chunk weighs little in a shard of some thousand
/// entries, large enough that the rests of all others do.
const CHUNK_BYTES: usize = 1 << CHUNK_BITS;
const CHUNK_BITS: u32 = 12;
/// The first chunk starts so small.
const FIRST_CHUNK_BYTES: usize = 64;

/// See the module. Place 0 belongs to no entry.
#[derive(Debug, Clone, Default)]
pub(super) struct Arena {
    chunks: Vec<Vec<u8>>,
    used_bytes: usize,
}

impl Arena {
    /// Appends an entry of some parts; returns its place.
    pub(super) fn push(&mut self, parts: [&[u8]; 2]) -> usize {
        let length = parts[0].len() + parts[1].len();
        if self.chunks.is_empty() {
            self.chunks.push(vec![0]);
        }
        let fits = self.chunks.last().is_some_and(|chunk| chunk.len() + length <= CHUNK_BYTES);
        if !fits {
            self.chunks.push(Vec::with_capacity(length.max(CHUNK_BYTES)));
        }
        self.used_bytes += length;
        let number = self.chunks.len() - 1;
        let chunk = &mut self.chunks[number];
        if chunk.capacity() - chunk.len() < length {
            let doubled = chunk.len().max(FIRST_CHUNK_BYTES);
            chunk.reserve_exact(doubled.min(CHUNK_BYTES - chunk.len()).max(length));
        }
        let at = chunk.len();
        parts.into_iter().for_each(|part| chunk.extend_from_slice(part));
        (number << CHUNK_BITS) + at
    }

    /// What lies at `place`, and what follows it in its chunk.
    pub(super) fn at(&self, place: usize) -> &[u8] {
        &self.chunks[place >> CHUNK_BITS][place % CHUNK_BYTES..]
    }

    /// The same, to be changed.
    pub(super) fn at_mut(&mut self, place: usize) -> &mut [u8] {
        &mut self.chunks[place >> CHUNK_BITS][place % CHUNK_BYTES..]
    }

    /// Visits the entries in the order of their places; `visit` is given the place and what lies
    /// there, and returns the length of the entry.
    pub(super) fn for_each(&self, mut visit: impl FnMut(usize, &[u8]) -> usize) {
        for (number, chunk) in self.chunks.iter().enumerate() {
            let mut at = usize::from(number == 0);
            while at < chunk.len() {
                at += visit((number << CHUNK_BITS) + at, &chunk[at..]);
            }
        }
    }

    /// Above all places that there are after an entry of `length` bytes more.
    pub(super) fn end_after(&self, length: usize) -> usize {
        // A chunk that is longer than others takes no more places than they.
        (self.chunks.len().max(1) + 1) * CHUNK_BYTES + length.min(CHUNK_BYTES)
    }

    /// Makes room ahead for the list of chunks.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.chunks.reserve_exact(bytes / CHUNK_BYTES + 1);
    }

    /// The bytes of all entries.
    pub(super) fn used_bytes(&self) -> usize {
        self.used_bytes
    }

    /// Everything allocated.
    pub(super) fn memory_bytes(&self) -> usize {
        let chunks: usize = self.chunks.iter().map(Vec::capacity).sum();
        chunks + self.chunks.capacity() * size_of::<Vec<u8>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_every_length_are_found_and_walked_through() {
        let mut arena = Arena::default();
        let entry = |length: usize| {
            [&u32::try_from(length).unwrap().to_be_bytes()[..], &vec![7; length]].concat()
        };
        let lengths = (0..200).chain([4_000, 4_091, 4_092, 4_093, 9_000, 70_000, 0, 1]);
        let mut places = Vec::new();
        for length in lengths {
            let entry = entry(length);
            let limit = arena.end_after(entry.len());
            let place = arena.push([&entry[..4], &entry[4..]]);
            assert!(place > 0 && place < limit);
            assert!(arena.at(place).starts_with(&entry));
            places.push((place, entry.len()));
        }
        assert_eq!(arena.used_bytes(), places.iter().map(|(_, length)| length).sum::<usize>());
        let mut walked = Vec::new();
        arena.for_each(|place, bytes| {
            let length = u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize + 4;
            walked.push((place, length));
            length
        });
        assert_eq!(walked, places);
    }
}
