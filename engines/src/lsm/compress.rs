//! Compression of blocks.
//!
//! The byte behind a block tells how it is stored:
//! ```text
//! 0  as it is
//! 1  Snappy, without framing
//! 2  Zstandard (LevelDB's head); in Mojang's fork zlib, told apart by the first bytes
//! 4  raw deflate (Mojang's fork)
//! ```

use super::snappy;
use crate::{Compression, Error};

/// How a block is stored. Persisted: do not renumber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BlockType {
    Plain = 0,
    Snappy = 1,
    Zstd = 2,
}

const SNAPPY: u8 = BlockType::Snappy as u8;
const ZSTD_OR_ZLIB: u8 = BlockType::Zstd as u8;
const RAW_DEFLATE: u8 = 4;

#[cfg(feature = "zstd")]
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Compresses blocks one after the other, with the same working memory.
pub(crate) struct Compressor {
    method: Method,
    /// Where a block is compressed to: it only grows, so that it is not cleared for each block.
    scratch: Vec<u8>,
}

enum Method {
    None,
    Snappy(Box<snap::raw::Encoder>),
    #[cfg(feature = "zstd")]
    Zstd(Box<zstd::bulk::Compressor<'static>>),
}

impl Compressor {
    /// # Errors
    /// [`Error::Unsupported`] if this build has no such compression.
    pub(crate) fn new(compression: Compression) -> crate::Result<Self> {
        let method = match compression {
            Compression::None => Method::None,
            Compression::Snappy => Method::Snappy(Box::new(snap::raw::Encoder::new())),
            #[cfg(feature = "zstd")]
            Compression::Zstd(level) => {
                let compressor = zstd::bulk::Compressor::new(level).map_err(|error| {
                    Error::InvalidArgument(format!("zstd at level {level}: {error}"))
                })?;
                Method::Zstd(Box::new(compressor))
            }
            #[cfg(not(feature = "zstd"))]
            Compression::Zstd(_) => return Err(missing_feature("zstd")),
        };
        Ok(Self { method, scratch: Vec::new() })
    }

    /// Appends `block` to `out`, compressed if that saves more than an eighth.
    pub(crate) fn append(&mut self, block: &[u8], out: &mut Vec<u8>) -> BlockType {
        let compressed = match &mut self.method {
            Method::None => None,
            Method::Snappy(encoder) => {
                // 0 for what is too long for the format.
                let bound = snap::raw::max_compress_len(block.len());
                grow(&mut self.scratch, bound);
                let length = encoder.compress(block, &mut self.scratch).ok();
                length.map(|length| (BlockType::Snappy, length))
            }
            #[cfg(feature = "zstd")]
            Method::Zstd(compressor) => {
                // What does not fit is not worth it.
                grow(&mut self.scratch, block.len());
                let length = compressor.compress_to_buffer(block, &mut self.scratch[..]).ok();
                length.map(|length| (BlockType::Zstd, length))
            }
        };
        match compressed {
            Some((block_type, length)) if length < block.len() - block.len() / 8 => {
                out.extend_from_slice(&self.scratch[..length]);
                block_type
            }
            _ => {
                out.extend_from_slice(block);
                BlockType::Plain
            }
        }
    }
}

fn grow(scratch: &mut Vec<u8>, length: usize) {
    if scratch.len() < length {
        scratch.resize(length, 0);
    }
}

/// Why a block cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DecompressError {
    /// The bytes are not what they should be.
    Malformed(String),
    /// This build has no such compression: the name of the feature.
    #[cfg_attr(all(feature = "zstd", feature = "zlib"), expect(dead_code, reason = "it has all"))]
    MissingFeature(&'static str),
}

/// Whether a block of that type is stored as it is.
pub(crate) fn is_plain(block_type: u8) -> bool {
    block_type == BlockType::Plain as u8
}

/// Whether a block of that type can be decompressed in part.
pub(crate) fn is_snappy(block_type: u8) -> bool {
    block_type == SNAPPY
}

/// Puts into `out`, whose content goes, what the block was before compression: at most `limit`
/// bytes. Memory is taken for what the stored bytes can really hold only.
pub(crate) fn decompress(
    block_type: u8,
    stored: &[u8],
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), DecompressError> {
    if block_type == SNAPPY {
        // It writes over what is there: clearing memory first would cost as much again.
        return decompress_snappy(stored, limit, out);
    }
    out.clear();
    match block_type {
        _ if is_plain(block_type) => out.extend_from_slice(stored),
        ZSTD_OR_ZLIB if is_zlib(stored) => inflate(Deflate::Zlib, stored, limit, out)?,
        ZSTD_OR_ZLIB => decompress_zstd(stored, limit, out)?,
        RAW_DEFLATE => inflate(Deflate::Raw, stored, limit, out)?,
        _ => return Err(malformed(format!("unknown compression type {block_type}"))),
    }
    Ok(())
}

/// The error for a compression that this build leaves out.
pub(crate) fn missing_feature(feature: &str) -> Error {
    Error::Unsupported {
        engine: "lsm",
        operation: format!("{feature} compression in this build (feature \"{feature}\")"),
    }
}

fn malformed(problem: impl Into<String>) -> DecompressError {
    DecompressError::Malformed(problem.into())
}

fn too_large(limit: usize) -> DecompressError {
    malformed(format!("the block decompresses to over {limit} bytes"))
}

fn decompress_snappy(
    stored: &[u8],
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), DecompressError> {
    let mut part = PartialSnappy::new(stored, limit, out)?;
    part.finish(out)?;
    Ok(())
}

/// A Snappy block that is decompressed as far as somebody needs it.
pub(crate) struct PartialSnappy<'a>(snappy::Decoder<'a>);

impl<'a> PartialSnappy<'a> {
    /// Gives `out` the length of the content and [`snappy::SLACK`]; what is in it means nothing.
    pub(crate) fn new(
        stored: &'a [u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<Self, DecompressError> {
        let decoder = snappy::Decoder::new(stored).map_err(snappy_problem)?;
        let length = decoder.length();
        if length > limit {
            return Err(too_large(limit));
        }
        // The densest element makes 64 bytes of 3.
        if length / 22 > stored.len() {
            return Err(malformed(format!("snappy claims {length} bytes from {}", stored.len())));
        }
        out.resize(length + snappy::SLACK, 0);
        Ok(Self(decoder))
    }

    /// The length of the content.
    pub(crate) fn length(&self) -> usize {
        self.0.length()
    }

    /// Sees to it that the first `wanted` bytes of the content are in `out`.
    pub(crate) fn advance(&mut self, out: &mut [u8], wanted: usize) -> Result<(), DecompressError> {
        self.0.advance(out, wanted).map_err(snappy_problem)
    }

    /// Decompresses all that is left, and cuts `out` to the content.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), DecompressError> {
        self.0.finish(out).map_err(snappy_problem)?;
        out.truncate(self.length());
        Ok(())
    }
}

fn snappy_problem(problem: &'static str) -> DecompressError {
    malformed(format!("snappy: {problem}"))
}

#[cfg(feature = "zstd")]
fn decompress_zstd(stored: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), DecompressError> {
    use std::cell::RefCell;
    use std::io::Read;

    use zstd::bulk::Decompressor;

    thread_local! {
        // A context takes longer to make than a block to decompress.
        static CONTEXT: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
    }

    if !stored.starts_with(&ZSTD_MAGIC) {
        return Err(malformed("compression type 2 with neither zstd nor zlib in it"));
    }
    let fail = |error: std::io::Error| malformed(format!("zstd: {error}"));
    let content_size = zstd::zstd_safe::get_frame_content_size(stored)
        .map_err(|_| malformed("zstd: the frame header is damaged"))?;
    // The densest block makes 128 KiB of 4 bytes.
    let bound = (stored.len() as u64 / 4 + 1) << 17;
    match content_size {
        Some(size) if size > limit as u64 => return Err(too_large(limit)),
        Some(size) if size > bound => {
            return Err(malformed(format!("zstd claims {size} bytes from {}", stored.len())));
        }
        // Small enough to be believed at once; the rest grows with what really comes.
        Some(size) if size <= 16 << 20 => {
            out.reserve(usize::try_from(size).map_err(|_| too_large(limit))?);
            return CONTEXT.with_borrow_mut(|context| {
                let context = match context {
                    Some(context) => context,
                    None => context.insert(Decompressor::new().map_err(fail)?),
                };
                let written = context.decompress_to_buffer(stored, out).map_err(fail)?;
                if written as u64 != size {
                    return Err(malformed("zstd: the content size is wrong"));
                }
                Ok(())
            });
        }
        _ => {}
    }
    let decoder = zstd::stream::read::Decoder::with_buffer(stored).map_err(fail)?;
    decoder.take(limit as u64 + 1).read_to_end(out).map_err(fail)?;
    if out.len() > limit { Err(too_large(limit)) } else { Ok(()) }
}

#[cfg(not(feature = "zstd"))]
fn decompress_zstd(_: &[u8], _: usize, _: &mut Vec<u8>) -> Result<(), DecompressError> {
    Err(DecompressError::MissingFeature("zstd"))
}

/// Whether the bytes start as a zlib stream: method 8, and the check bits right.
fn is_zlib(stored: &[u8]) -> bool {
    matches!(stored, [first, second, ..]
        if first & 0x0f == 8 && u16::from_be_bytes([*first, *second]) % 31 == 0)
}

enum Deflate {
    Zlib,
    Raw,
}

#[cfg(feature = "zlib")]
fn inflate(
    deflate: Deflate,
    stored: &[u8],
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), DecompressError> {
    use std::io::Read;

    use flate2::bufread::{DeflateDecoder, ZlibDecoder};

    let most = limit as u64 + 1;
    let read = match deflate {
        Deflate::Zlib => ZlibDecoder::new(stored).take(most).read_to_end(out),
        Deflate::Raw => DeflateDecoder::new(stored).take(most).read_to_end(out),
    };
    read.map_err(|error| malformed(format!("deflate: {error}")))?;
    if out.len() > limit { Err(too_large(limit)) } else { Ok(()) }
}

#[cfg(not(feature = "zlib"))]
fn inflate(_: Deflate, _: &[u8], _: usize, _: &mut Vec<u8>) -> Result<(), DecompressError> {
    Err(DecompressError::MissingFeature("zlib"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 1 << 20;

    fn text() -> Vec<u8> {
        b"bacon ipsum dolor amet ".repeat(200)
    }

    fn methods() -> Vec<Compression> {
        let mut methods = vec![Compression::None, Compression::Snappy];
        if cfg!(feature = "zstd") {
            methods.extend([Compression::Zstd(1), Compression::Zstd(19)]);
        }
        methods
    }

    fn decompress_vec(block_type: u8, stored: &[u8]) -> Result<Vec<u8>, DecompressError> {
        let mut out = b"left over".to_vec();
        decompress(block_type, stored, LIMIT, &mut out).map(|()| out)
    }

    #[test]
    fn stored_types_have_the_documented_numbers() {
        let mut out = Vec::new();
        let types: Vec<_> = methods()
            .into_iter()
            .map(|method| Compressor::new(method).unwrap().append(&text(), &mut out) as u8)
            .collect();
        assert_eq!(types, [0, 1, 2, 2][..types.len()]);
    }

    #[test]
    fn snappy_bytes_by_hand_are_decompressed() {
        // Length 10, a literal of 2 bytes, a copy of 8 bytes from 2 back.
        assert_eq!(decompress_vec(1, b"\x0a\x04ab\x11\x02"), Ok(b"ababababab".to_vec()));
    }

    #[test]
    fn what_saves_an_eighth_or_less_is_stored_as_it_is() {
        // Zeros that compress to nothing, just over an eighth of the whole.
        for (zeros, expected) in [(500, BlockType::Plain), (800, BlockType::Snappy)] {
            let mut block = random_bytes(4096 - zeros);
            block.resize(4096, 0);
            let mut out = b"before".to_vec();
            let block_type = Compressor::new(Compression::Snappy).unwrap().append(&block, &mut out);
            assert_eq!(block_type, expected, "{zeros}");
            assert!(out.starts_with(b"before"));
            if block_type == BlockType::Plain {
                assert_eq!(out[6..], block);
            }
        }
    }

    /// Bytes that do not compress.
    fn random_bytes(length: usize) -> Vec<u8> {
        use rand::{RngExt, SeedableRng};
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        (0..length).map(|_| random.random()).collect()
    }

    #[test]
    fn unknown_types_and_damage_are_refused() {
        assert_eq!(decompress_vec(3, b"x"), Err(malformed("unknown compression type 3")));
        for block_type in [1, 2, 4] {
            for stored in [&b""[..], b"\xff", b"\xff\xff\xff\xff\x0f", &[0xaa; 50]] {
                decompress_vec(block_type, stored).unwrap_err();
            }
        }
        // Claims 4 GiB less 1.
        let error = decompress_vec(1, b"\xff\xff\xff\xff\x0f\x00a").unwrap_err();
        assert_eq!(error, too_large(LIMIT));
        // Claims 1 MiB from 6 bytes: no memory is taken.
        let mut out = Vec::new();
        decompress(1, b"\x80\x80\x40\x04ab", LIMIT, &mut out).unwrap_err();
        assert_eq!(out.capacity(), 0);
    }

    #[cfg(feature = "zlib")]
    #[test]
    fn zlib_and_raw_deflate_of_mojangs_fork_are_read() {
        use std::io::Write;
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), Default::default());
        zlib.write_all(&text()).unwrap();
        let zlib = zlib.finish().unwrap();
        assert_eq!(decompress_vec(2, &zlib), Ok(text()));
        assert_eq!(decompress_vec(4, &zlib[2..zlib.len() - 4]), Ok(text()));
        decompress_vec(2, &zlib[..zlib.len() - 5]).unwrap_err();
        let mut out = Vec::new();
        let error = decompress(2, &zlib, text().len() - 1, &mut out).unwrap_err();
        assert_eq!(error, too_large(text().len() - 1));
        decompress(2, &zlib, text().len(), &mut out).unwrap();
    }

    #[cfg(not(feature = "zlib"))]
    #[test]
    fn without_the_feature_zlib_is_a_refusal_by_name() {
        let missing = Err(DecompressError::MissingFeature("zlib"));
        assert_eq!(decompress_vec(4, b"x"), missing);
        assert_eq!(decompress_vec(2, b"\x78\x9c"), missing);
    }

    #[cfg(not(feature = "zstd"))]
    #[test]
    fn without_the_feature_zstd_is_a_refusal_by_name() {
        let stored = b"\x28\xb5\x2f\xfd";
        assert_eq!(decompress_vec(2, stored), Err(DecompressError::MissingFeature("zstd")));
        assert!(Compressor::new(Compression::Zstd(1)).is_err());
    }

    #[cfg(feature = "zstd")]
    #[test]
    fn zstd_is_bounded_whether_it_tells_its_size_or_not() {
        let zeros = vec![0; 3 << 20];
        let told = zstd::bulk::compress(&zeros, 1).unwrap();
        let untold = zstd::stream::encode_all(&zeros[..], 1).unwrap();
        for stored in [told, untold] {
            let mut out = Vec::new();
            assert_eq!(decompress(2, &stored, LIMIT, &mut out).unwrap_err(), too_large(LIMIT));
            decompress(2, &stored, 3 << 20, &mut out).unwrap();
            assert!(out == zeros);
            decompress(2, &stored[..stored.len() - 1], 3 << 20, &mut out).unwrap_err();
        }
    }

    proptest! {
        #[test]
        fn what_is_compressed_is_decompressed(
            blocks in prop::collection::vec(
                prop::collection::vec(prop_oneof![3 => Just(b'a'), 1 => any::<u8>()], 0..9000), 1..4),
        ) {
            for method in methods() {
                let mut compressor = Compressor::new(method).unwrap();
                for block in &blocks {
                    let mut out = Vec::new();
                    let block_type = compressor.append(block, &mut out);
                    prop_assert_eq!(&decompress_vec(block_type as u8, &out), &Ok(block.clone()));
                }
            }
        }

        #[test]
        fn random_bytes_are_decompressed_or_refused(bytes: Vec<u8>) {
            for block_type in 0..=5 {
                let _ = decompress_vec(block_type, &bytes);
            }
        }
    }
}
