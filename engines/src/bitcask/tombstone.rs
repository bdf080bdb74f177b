//! The values that mark a deletion.
//!
//! ```text
//! v0  "bitcask_tombstone"
//! v1  "bitcask_tombstone1"  u32 id   the value lay in a file before that one
//! v2  "bitcask_tombstone2"  u32 id   the value lay in that file
//! ```
//! Every value with the prefix of v0 counts as a deletion, in Basho's reader too; so such values
//! cannot be stored.

use super::names::FileId;
use crate::{Error, Result};

const PREFIX: &[u8] = b"bitcask_tombstone";
const V2_PREFIX: &[u8] = b"bitcask_tombstone2";

/// The sizes that tombstones have.
pub(super) const SIZES: [usize; 2] = [PREFIX.len(), V2_BYTES];
const V2_BYTES: usize = V2_PREFIX.len() + 4;

/// The tombstone of a value that lies in file `id`.
pub(super) fn v2(id: FileId) -> [u8; V2_BYTES] {
    let mut value = [0; V2_BYTES];
    value[..V2_PREFIX.len()].copy_from_slice(V2_PREFIX);
    value[V2_PREFIX.len()..].copy_from_slice(&id.to_be_bytes());
    value
}

pub(super) fn is_tombstone(value: &[u8]) -> bool {
    value.starts_with(PREFIX)
}

/// Refuses values that would read back as deletions.
pub(super) fn check_value(value: &[u8]) -> Result<()> {
    if is_tombstone(value) {
        return Err(Error::InvalidArgument(
            "a value that starts with \"bitcask_tombstone\" cannot be stored: \
             the format reads it as a deletion"
                .to_owned(),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_tombstone() {
        assert_eq!(&v2(0x0102_0304), b"bitcask_tombstone2\x01\x02\x03\x04");
    }

    #[test]
    fn every_version_is_recognized_and_refused_as_a_value() {
        for value in [
            &b"bitcask_tombstone"[..],
            b"bitcask_tombstone1\0\0\0\x05",
            b"bitcask_tombstone2\0\0\0\x05",
            b"bitcask_tombstone of no version",
        ] {
            assert!(is_tombstone(value));
            assert!(matches!(check_value(value), Err(Error::InvalidArgument(_))));
        }
        for value in [&b""[..], b"bitcask_tombston", b" bitcask_tombstone"] {
            assert!(check_value(value).is_ok());
        }
    }
}
