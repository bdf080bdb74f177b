//! The values that mark a deletion.
//!
//! ```text
//! v0  "bitcask_tombstone"
//! v1  "bitcask_tombstone1"  u32 id   the value lay in a file before that one
//! v2  "bitcask_tombstone2"  u32 id   the value lay in that file
//! ```
//! Every value with the prefix of v0 counts as a deletion, in Basho's reader too; so such values
//! cannot be stored.
//!
//! What the versions say matters to a merge that does not take all files: it must keep a tombstone
//! for as long as a file stays that holds an older copy of the key. Basho's merge drops
//! - v0 if the merge takes all files from the first on,
//! - v1 if every file up to the named one is gone,
//! - v2 if the named file is gone or is merged too, for Basho's Bitcask leaves no other copy: it
//!   writes a tombstone for the old value before each overwrite.
//!
//! We overwrite without a tombstone (a crash between the two would lose both values), so there may
//! be more copies of a key than the newest one, and v2 would be dropped too early. So we write v1,
//! naming the file that the tombstone itself lies in: every older copy lies in that file or in an
//! earlier one. It is also what Basho's merge makes of a v0 that it has to keep.
//!
//! This covers the tombstones that we write. One that Basho's Bitcask writes later, for a key that
//! we have overwritten across files, is a v2 again. So before a directory is written to by Basho's
//! Bitcask, [`compact`](crate::Engine::compact) it: then no key has two copies.

use super::names::FileId;
use crate::{Error, Result};

const PREFIX: &[u8] = b"bitcask_tombstone";
const V1_PREFIX: &[u8] = b"bitcask_tombstone1";

/// The sizes that tombstones have: v0; v1 and v2.
pub(super) const SIZES: [usize; 2] = [PREFIX.len(), V1_BYTES];
const V1_BYTES: usize = V1_PREFIX.len() + 4;

/// The tombstone of a key of which no copy lies in a later file than `id`.
pub(super) fn v1(id: FileId) -> [u8; V1_BYTES] {
    let mut value = [0; V1_BYTES];
    value[..V1_PREFIX.len()].copy_from_slice(V1_PREFIX);
    value[V1_PREFIX.len()..].copy_from_slice(&id.to_be_bytes());
    value
}

pub(super) fn is_v1(value: &[u8]) -> bool {
    value.len() == V1_BYTES && value.starts_with(V1_PREFIX)
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
        assert_eq!(&v1(0x0102_0304), b"bitcask_tombstone1\x01\x02\x03\x04");
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
