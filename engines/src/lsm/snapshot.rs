//! The moments that somebody may still read at.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::key::Sequence;

/// The sequences in use, each with its number of holders. Merges keep what they see.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshots(Arc<Mutex<BTreeMap<Sequence, usize>>>);

impl Snapshots {
    /// Holds the moment that `now` tells. It is asked under the lock, so that no merge may have
    /// looked at the list in between and dropped what the moment sees.
    pub(crate) fn take(&self, now: impl FnOnce() -> Sequence) -> Snapshot {
        let mut held = self.0.lock();
        let sequence = now();
        *held.entry(sequence).or_default() += 1;
        Snapshot { sequence, held: self.clone() }
    }

    /// The sequences in use, ascending.
    pub(crate) fn list(&self) -> Vec<Sequence> {
        self.0.lock().keys().copied().collect()
    }
}

/// A moment at which [`Lsm`](super::Lsm) can be read as long as this lives, whatever is written
/// meanwhile. It keeps what it sees from being reclaimed: let it go soon.
#[derive(Debug)]
pub struct Snapshot {
    pub(super) sequence: Sequence,
    held: Snapshots,
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut held = self.held.0.lock();
        if let Some(holders) = held.get_mut(&self.sequence) {
            *holders -= 1;
            if *holders == 0 {
                held.remove(&self.sequence);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_held_until_its_last_holder_goes() {
        let snapshots = Snapshots::default();
        let take = |at| snapshots.take(|| Sequence(at));
        let (a, b, c) = (take(5), take(5), take(3));
        assert_eq!(snapshots.list(), [Sequence(3), Sequence(5)]);
        drop((a, c));
        assert_eq!(snapshots.list(), [Sequence(5)]);
        drop(b);
        assert_eq!(snapshots.list(), []);
    }
}
