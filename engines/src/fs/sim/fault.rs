//! Calls that fail on demand.

use std::io::{self, ErrorKind};

use super::trace::Call;

/// Which call fails, and how.
///
/// A failed call changes nothing, but for two: a write may leave its first half
/// ([`short_write`](Self::short_write)), and after a failed sync the bytes that it should have
/// saved are as good as lost, as on Linux: a later sync that succeeds does not save them, unless
/// they are written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultPoint {
    /// How many calls succeed first, counted from [`SimFs::fail_at`](super::SimFs::fail_at) on.
    pub after: usize,
    /// Which calls are counted and fail.
    pub scope: FaultScope,
    /// What the system says.
    pub kind: FaultKind,
    /// Whether all later calls of the scope fail too, or only this one.
    pub sticky: bool,
    /// Whether a failing write leaves the first half of its bytes behind.
    pub short_write: bool,
}

/// Which calls a fault counts and strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultScope {
    /// Those that change the disk.
    Mutating,
    /// Those that need space: creating, writing, linking. What a full disk refuses.
    TakesSpace,
    /// File and directory syncs.
    Sync,
    /// All, reading and listing too.
    Any,
}

/// What the system says when a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// Input/output error (EIO).
    Io,
    /// No space left on the device (ENOSPC).
    NoSpace,
    /// Permission denied (EACCES).
    Denied,
}

impl FaultKind {
    fn error(self) -> io::Error {
        match self {
            Self::Io => io::Error::other("simulated input/output error"),
            Self::NoSpace => io::Error::new(ErrorKind::StorageFull, "simulated full disk"),
            Self::Denied => io::Error::new(ErrorKind::PermissionDenied, "simulated refusal"),
        }
    }
}

impl FaultScope {
    fn covers(self, call: Option<&Call>) -> bool {
        match self {
            Self::Any => true,
            Self::Mutating => call.is_some(),
            Self::Sync => matches!(call, Some(Call::Sync { .. } | Call::SyncDirectory { .. })),
            Self::TakesSpace => matches!(
                call,
                Some(
                    Call::CreateDirectory { .. }
                        | Call::Create { .. }
                        | Call::Write { .. }
                        | Call::HardLink { .. }
                )
            ),
        }
    }
}

/// The faults that were asked for.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Each with the number of calls that still succeed.
    points: Vec<FaultPoint>,
    struck: usize,
}

impl Faults {
    pub(super) fn add(&mut self, point: FaultPoint) {
        self.points.push(point);
    }

    pub(super) fn clear(&mut self) {
        self.points.clear();
    }

    pub(super) fn struck(&self) -> usize {
        self.struck
    }

    /// Fails a call that changes nothing, if it is its turn.
    pub(super) fn observe(&mut self) -> io::Result<()> {
        self.next(None).map_or(Ok(()), |point| Err(point.kind.error()))
    }

    /// Gives a mutating call back, or the error and what the failing call leaves behind.
    pub(super) fn strike(&mut self, call: Call) -> Result<Call, (io::Error, Option<Call>)> {
        let Some(point) = self.next(Some(&call)) else { return Ok(call) };
        let left_behind = match call {
            Call::Sync { path, file } => Some(Call::FailedSync { path, file }),
            Call::Write { .. } if point.short_write && call.written_bytes() > 1 => {
                call.cut_short(call.written_bytes() / 2)
            }
            _ => None,
        };
        Err((point.kind.error(), left_behind))
    }

    /// Counts one call; the point that strikes it, if any.
    fn next(&mut self, call: Option<&Call>) -> Option<FaultPoint> {
        let mut striking = None;
        self.points.retain_mut(|point| {
            if !point.scope.covers(call) {
                return true;
            }
            match point.after.checked_sub(1) {
                Some(after) => {
                    point.after = after;
                    true
                }
                None => {
                    striking.get_or_insert(*point);
                    point.sticky
                }
            }
        });
        self.struck += usize::from(striking.is_some());
        striking
    }
}
