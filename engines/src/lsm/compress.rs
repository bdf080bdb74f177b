//! Compression of blocks.
//!
//! The byte behind a block tells how it is stored:
//! ```text
//! 0  as it is
//! 1  Snappy, without framing
//! 2  Zstandard (LevelDB's head); in Mojang's fork zlib, told apart by the first bytes
//! 4  raw deflate (Mojang's fork)
//! ```

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
pub(crate) struct Compressor(Method);

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
        Ok(Self(match compression {
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
        }))
    }

    /// Appends `block` to `out`, compressed if that saves more than an eighth.
    pub(crate) fn append(&mut self, block: &[u8], out: &mut Vec<u8>) -> BlockType {
        let start = out.len();
        let compressed = match &mut self.0 {
            Method::None => None,
            Method::Snappy(encoder) => {
                // 0 for what is too long for the format.
                let bound = snap::raw::max_compress_len(block.len());
                out.resize(start + bound, 0);
                let length = encoder.compress(block, &mut out[start..]).ok();
                length.map(|length| (BlockType::Snappy, length))
            }
            #[cfg(feature = "zstd")]
            Method::Zstd(compressor) => {
                // What does not fit is not worth it.
                out.resize(start + block.len(), 0);
                let length = compressor.compress_to_buffer(block, &mut out[start..]).ok();
                length.map(|length| (BlockType::Zstd, length))
            }
        };
        match compressed {
            Some((block_type, length)) if length < block.len() - block.len() / 8 => {
                out.truncate(start + length);
                block_type
            }
            _ => {
                out.truncate(start);
                out.extend_from_slice(block);
                BlockType::Plain
            }
        }
    }
}

/// Why a block cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DecompressError {
    /// The bytes are not what they should be.
    Malformed(String),
    /// This build has no such compression: the name of the feature.
    MissingFeature(&'static str),
}

/// Whether a block of that type is stored as it is.
pub(crate) fn is_plain(block_type: u8) -> bool {
    block_type == BlockType::Plain as u8
}

/// Puts into `out`, whose content goes, what the block was before compression: at most `limit`
/// bytes. Memory is taken for what the stored bytes can really hold only.
pub(crate) fn decompress(
    block_type: u8,
    stored: &[u8],
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), DecompressError> {
    out.clear();
    match block_type {
        _ if is_plain(block_type) => out.extend_from_slice(stored),
        SNAPPY => decompress_snappy(stored, limit, out)?,
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
    let length = snap::raw::decompress_len(stored).map_err(|error| malformed(error.to_string()))?;
    if length > limit {
        return Err(too_large(limit));
    }
    // The densest element makes 64 bytes of 3.
    if length / 22 > stored.len() {
        let problem = format!("snappy claims {length} bytes from {}", stored.len());
        return Err(malformed(problem));
    }
    out.resize(length, 0);
    let written = snap::raw::Decoder::new().decompress(stored, out);
    if written.map_err(|error| malformed(error.to_string()))? != length {
        return Err(malformed("snappy: the length is wrong"));
    }
    Ok(())
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
