//! Decompression of Snappy blocks, as far as is wanted.
//!
//! ```text
//! varint32 length of the content, then elements:
//! tag & 3 == 0  literal: (tag >> 2) + 1 bytes follow; for 60 to 63 the length less 1 follows in
//!               1 to 4 bytes
//! tag & 3 == 1  copy of (tag >> 2 & 7) + 4 bytes from tag >> 5 << 8 | next byte back
//! tag & 3 == 2  copy of (tag >> 2) + 1 bytes, distance in 2 bytes
//! tag & 3 == 3  the same, distance in 4 bytes
//! ```
//! What the crate `snap` cannot do, and why this is here: stop in the middle. A lookup needs half
//! of a block on average, and decompression is most of what a lookup costs.
//!
//! [`run`] copies 32 bytes for each element, or 64, whatever its length, and what is too much is
//! written over by the next element. In a text no processor can guess which kind comes next, so
//! literals and copies take the same instructions, with another place to copy from. Elements that
//! do not fit that (long ones, copies that overlap themselves, the last bytes of the input) go
//! through [`Decoder::step`], byte by byte.
//!
//! # Invariant
//! The unsafe code is [`run`] and [`copy`]. They read and write only while the input holds 65 bytes
//! from the tag on and the output 64 from the place written to; both are compared in the loop's
//! head. Copies start inside what was written before: that is compared for each.
#![expect(unsafe_code, reason = "as fast as snap, which is written so too; see the invariant")]

use std::hint::select_unpredictable;
use std::ptr;

/// So many bytes are copied at once, and so many the output is longer than the content.
pub(super) const SLACK: usize = 64;

/// Longer ones have their length behind the tag.
const LONGEST_SHORT_LITERAL: usize = 60;

/// What is wrong with the input, if it is.
pub(super) type Result<T> = std::result::Result<T, &'static str>;

/// Decompresses one block, as far as is asked for.
#[derive(Debug)]
pub(super) struct Decoder<'a> {
    input: &'a [u8],
    /// Where the next element starts.
    at: usize,
    /// How much of the content there is.
    written: usize,
    length: usize,
}

impl<'a> Decoder<'a> {
    /// Reads the length of the content.
    pub(super) fn new(input: &'a [u8]) -> Result<Self> {
        let (mut length, mut at) = (0u64, 0);
        loop {
            let byte = *input.get(at).filter(|_| at < 5).ok_or("no length")?;
            length |= u64::from(byte & 0x7f) << (7 * at);
            at += 1;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let length = u32::try_from(length).map_err(|_| "a length of over 32 bits")? as usize;
        Ok(Self { input, at, written: 0, length })
    }

    /// The length of the content.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Decompresses at least the first `wanted` bytes of the content, which has as many, into
    /// `out`, which is [`SLACK`] longer than the content and holds what was decompressed before.
    ///
    /// # Errors
    /// What is wrong with the input.
    pub(super) fn advance(&mut self, out: &mut [u8], wanted: usize) -> Result<()> {
        debug_assert!(wanted <= self.length && out.len() >= self.length + SLACK);
        while self.written < wanted {
            (self.at, self.written) = run(self.input, self.at, out, self.written, wanted);
            if self.written < wanted {
                self.step(out)?;
            }
        }
        if self.written > self.length { Err("more content than told") } else { Ok(()) }
    }

    /// Decompresses everything; nothing may be left over.
    ///
    /// # Errors
    /// What is wrong with the input.
    pub(super) fn finish(&mut self, out: &mut [u8]) -> Result<()> {
        self.advance(out, self.length)?;
        if self.at == self.input.len() { Ok(()) } else { Err("bytes behind the content") }
    }

    /// One element, whatever it is.
    fn step(&mut self, out: &mut [u8]) -> Result<()> {
        let tag = usize::from(*self.input.get(self.at).ok_or("it ends early")?);
        self.at += 1;
        let (length, distance) = match tag & 3 {
            0 => {
                let short = tag >> 2;
                let length = if short < 60 { short } else { self.number(short - 59)? };
                return self.literal(out, length + 1);
            }
            1 => ((tag >> 2 & 7) + 4, tag >> 5 << 8 | self.number(1)?),
            2 => ((tag >> 2) + 1, self.number(2)?),
            _ => ((tag >> 2) + 1, self.number(4)?),
        };
        if distance == 0 || distance > self.written {
            return Err("a copy from before the start");
        }
        if length > self.length - self.written {
            return Err("more content than told");
        }
        let from = self.written - distance;
        // What is copied may be what this copy has just written.
        for at in 0..length {
            out[self.written + at] = out[from + at];
        }
        self.written += length;
        Ok(())
    }

    fn literal(&mut self, out: &mut [u8], length: usize) -> Result<()> {
        let end = self.at.checked_add(length).ok_or("it ends early")?;
        let bytes = self.input.get(self.at..end).ok_or("it ends early")?;
        if length > self.length - self.written {
            return Err("more content than told");
        }
        out[self.written..self.written + length].copy_from_slice(bytes);
        (self.at, self.written) = (end, self.written + length);
        Ok(())
    }

    /// A number of 1 to 4 bytes.
    fn number(&mut self, byte_count: usize) -> Result<usize> {
        let bytes = self.input.get(self.at..self.at + byte_count).ok_or("it ends early")?;
        self.at += byte_count;
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }
}

/// Decompresses from `at` on into `out` from `written` on, until there are `wanted` bytes or an
/// element does not fit; returns how far it came. The last element may go up to 63 bytes past what
/// is wanted.
fn run(
    input: &[u8],
    mut at: usize,
    out: &mut [u8],
    mut written: usize,
    wanted: usize,
) -> (usize, usize) {
    let Some(last) = input.len().checked_sub(1 + SLACK) else { return (at, written) };
    let wanted = wanted.min(out.len().saturating_sub(SLACK));
    let (source, target) = (input.as_ptr(), out.as_mut_ptr());
    while written < wanted && at <= last {
        // SAFETY: `at + 65` is at most the input's length.
        let (tag, behind) = unsafe {
            let tag = source.add(at);
            (usize::from(*tag), u32::from_le(ptr::read_unaligned(tag.add(1).cast())))
        };
        let (kind, upper) = (tag & 3, tag >> 2);
        let is_literal = kind == 0;
        // One byte of it and three bits of the tag, or two bytes.
        let high = ((tag & 0xe0) << 3) & usize::from(kind != 1).wrapping_sub(1);
        let distance = (behind as usize & ((1 << (8 * kind)) - 1)) | high;
        let length = select_unpredictable(kind == 1, (upper & 7) + 4, upper + 1);
        let longest = select_unpredictable(is_literal, LONGEST_SHORT_LITERAL, distance);
        if length > longest || distance > written || kind == 3 {
            break;
        }
        // SAFETY: a literal lies behind the tag, in the input with the 64 bytes from there on. A
        // copy starts inside what is written, and reads at most 64 bytes, which end before
        // `written + 64`, in the output. What it needs of them lies before `written`.
        unsafe {
            let literal = source.add(at + 1);
            let copied = target.add(written.wrapping_sub(distance)).cast_const();
            let from = select_unpredictable(is_literal, literal, copied);
            copy(from, target.add(written), length);
        }
        written += length;
        at += 1 + select_unpredictable(is_literal, length, kind);
    }
    (at, written)
}

/// Copies `length` bytes, and up to 64 in all.
///
/// # Safety
/// 64 bytes can be read and written there.
unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: the caller's promise. Each piece is read before it is written.
    unsafe {
        let first: [u8; 32] = ptr::read_unaligned(from.cast());
        ptr::write_unaligned(to.cast(), first);
        // Few elements are longer.
        if length > 32 {
            let rest: [u8; 32] = ptr::read_unaligned(from.add(32).cast());
            ptr::write_unaligned(to.add(32).cast(), rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decompress(input: &[u8]) -> Result<Vec<u8>> {
        let mut decoder = Decoder::new(input)?;
        let length = decoder.length();
        // No more than 64 bytes come of 3.
        if length / 22 > input.len() {
            return Err("too long");
        }
        let mut out = vec![0xee; length + SLACK];
        decoder.finish(&mut out)?;
        out.truncate(length);
        Ok(out)
    }

    #[test]
    fn every_kind_of_element_is_read() {
        for (input, content) in [
            (&b"\x00"[..], &b""[..]),
            (b"\x03\x08abc", b"abc"),
            (b"\x03\xf0\x02abc", b"abc"),
            (b"\x03\xf4\x02\x00abc", b"abc"),
            (b"\x03\xf8\x02\x00\x00abc", b"abc"),
            (b"\x03\xfc\x02\x00\x00\x00abc", b"abc"),
            (b"\x0a\x08abc\x0d\x03", b"abcabcabca"),
            (b"\x05\x08abc\x06\x03\x00", b"abcab"),
            (b"\x05\x08abc\x07\x02\x00\x00\x00", b"abcbc"),
            (b"\x08\x00a\x0d\x01", b"aaaaaaaa"),
        ] {
            assert_eq!(decompress(input).unwrap(), content, "{input:?}");
        }
    }

    #[test]
    fn damage_is_told() {
        for input in [
            &b""[..],
            b"\x80",
            b"\xff\xff\xff\xff\x7f",
            b"\x80\x80\x80\x80\x80\x01",
            b"\x03",
            b"\x03\x08ab",
            b"\x02\x08abc",
            b"\x03\x08abcd",
            b"\x07\x08abc\x01\x04",
            b"\x07\x08abc\x01\x00",
            b"\x06\x08abc\x01\x03",
            b"\x03\xfc\xff\xff\xff\xffabc",
            b"\x03\xf4\x02",
        ] {
            assert!(decompress(input).is_err(), "{input:?}");
        }
    }

    /// Texts with repeats near and far, long literals and runs.
    fn text() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => prop::collection::vec(prop::sample::select(&b"abcd "[..]), 0..40),
            1 => prop::collection::vec(any::<u8>(), 0..200),
            1 => (any::<u8>(), 0usize..300).prop_map(|(byte, count)| vec![byte; count]),
        ];
        prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn what_another_program_compressed_is_restored_whole_and_in_parts(
            content in text(),
            parts in prop::collection::vec(0usize..4000, 0..6),
        ) {
            let input = snap::raw::Encoder::new().compress_vec(&content).unwrap();
            prop_assert_eq!(decompress(&input).unwrap(), content.clone());
            let mut decoder = Decoder::new(&input).unwrap();
            let mut out = vec![0; content.len() + SLACK];
            for part in parts {
                let wanted = part.min(content.len());
                decoder.advance(&mut out, wanted).unwrap();
                prop_assert_eq!(&out[..wanted], &content[..wanted]);
            }
            decoder.finish(&mut out).unwrap();
            prop_assert_eq!(&out[..content.len()], &content[..]);
        }

        /// What `snap` makes of damaged input, this makes of it too.
        #[test]
        fn damaged_input_is_judged_as_another_program_does(
            content in text(),
            flips in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..4),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut input = snap::raw::Encoder::new().compress_vec(&content).unwrap();
            for (at, bits) in flips {
                let at = at.index(input.len());
                input[at] ^= bits;
            }
            for input in [&input[..], &input[..cut.index(input.len())]] {
                let length = snap::raw::decompress_len(input).unwrap_or(0);
                if length / 22 > input.len() {
                    continue;
                }
                match (decompress(input), snap::raw::Decoder::new().decompress_vec(input)) {
                    (Ok(ours), Ok(theirs)) => prop_assert_eq!(ours, theirs),
                    (Err(_), Err(_)) => {}
                    // snap takes nothing for an empty block.
                    (Err(_), Ok(theirs)) if input.is_empty() => prop_assert!(theirs.is_empty()),
                    (ours, theirs) => {
                        prop_assert!(false, "ours {ours:?}, theirs {theirs:?}, of {input:?}")
                    }
                }
            }
        }
    }
}
