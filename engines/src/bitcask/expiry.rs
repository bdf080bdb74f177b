//! Records that end by themselves.

use std::time::Duration;

use super::clock::{Time, Timestamp};

/// After which time a record is no longer there.
///
/// A record has expired when the second it was written in, which it carries, and
/// [`after`](Self::after) together are before now: what Basho's Bitcask calls `expiry_secs`. Each
/// record is judged by its own timestamp. An expired record is hidden from reads, scans and folds,
/// and dropped by the next merge of its file that may be sure of the time. Until then it counts as
/// a live record in [`Stats`](crate::Stats), and it can be overwritten and deleted as others can.
///
/// # When the clock is wrong
/// A clock that is set back hides less and drops nothing. One that is set forward hides too much,
/// until it is put right; nothing is dropped by it, because merges go by the time that has really
/// run since the directory was opened. At open the clock is believed only as far as the newest
/// record in the directory bears it out: a directory that nobody wrote to for a month gives
/// nothing back for what expired in that month until it is opened again, after somebody has
/// written to it. A clock that is wrong in two sessions, both of which write, is believed in the
/// second; [`grace`](Self::grace) is the room for errors smaller than that.
///
/// Records that were written by a clock that was ahead expire that much later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry {
    /// How long a record is there. Whole seconds; a part of one counts as one.
    pub after: Duration,
    /// How much longer than that merges keep it: Basho's `expiry_grace_time`. More leaves more time
    /// to find out that a clock is wrong, and keeps more on disk.
    pub grace: Duration,
}

impl Expiry {
    /// Records expire after `after`, and are kept for an hour more.
    pub fn after(after: Duration) -> Self {
        Self { after, grace: Duration::from_secs(3_600) }
    }
}

/// Records with a smaller timestamp are hidden now. Without expiry there are none.
pub(super) fn hidden_before(expiry: Option<&Expiry>, time: &Time) -> Timestamp {
    expiry.map_or(0, |expiry| time.now().saturating_sub(seconds(expiry.after)))
}

/// Records with a smaller timestamp are to be dropped by a merge that begins now.
pub(super) fn dropped_before(expiry: Option<&Expiry>, time: &Time) -> Timestamp {
    let kept = |expiry: &Expiry| seconds(expiry.after).saturating_add(seconds(expiry.grace));
    expiry.map_or(0, |expiry| time.surely().saturating_sub(kept(expiry)))
}

fn seconds(duration: Duration) -> Timestamp {
    let whole = duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0));
    Timestamp::try_from(whole).unwrap_or(Timestamp::MAX)
}
