//! Listing a directory that is being changed.
//!
//! The system may or may not show what appears or goes away during a listing. So it can miss the
//! output of a merge, which appeared behind its back, and the input too, which was removed ahead of
//! it. A listing of some hundred files is taken as of one moment (see [`RealFs`]); of more files
//! two listings that agree are. Both could only have missed an output if it was itself merged and
//! removed within the second one: an input that is missing in the first was removed before the
//! second began, so its output was there by then.
//!
//! Two that agree also show every file that was created before any that they show, so that no
//! write is found without an earlier one. A writer that begins a file with every few records may
//! never let two listings agree; then it is enough, after some patience, that nothing went away
//! between them.
//!
//! [`RealFs`]: crate::fs::RealFs

use std::path::Path;

use crate::bitcask::load::Listing;
use crate::fs::FileSystem;
use crate::{Error, Result};

const LISTINGS_MAX: usize = 1_000;
/// After how many listings two that agree are no longer waited for.
const PATIENCE: usize = 20;

/// The files of one moment.
pub(super) fn read(fs: &dyn FileSystem, directory: &Path) -> Result<Listing> {
    let mut before = Listing::read(fs, directory)?.for_reading();
    for attempt in 0..LISTINGS_MAX {
        let now = Listing::read(fs, directory)?.for_reading();
        let nothing_went_away = before.data.iter().all(|(id, _)| now.identity(*id).is_some());
        let agree = nothing_went_away && before.data.len() == now.data.len();
        if agree || (nothing_went_away && attempt > PATIENCE) {
            return Ok(now);
        }
        before = now;
    }
    Err(unsteady(directory))
}

/// Somebody changes the directory faster than it can be read.
pub(super) fn unsteady(directory: &Path) -> Error {
    let problem = std::io::Error::other("files come and go faster than they can be listed");
    Error::io("read the files in", directory)(problem)
}
