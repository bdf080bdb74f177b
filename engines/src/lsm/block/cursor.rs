//! Standing on an entry of a block, and moving in it.

use std::cmp::Ordering;
use std::ops::Range;

use super::FIXED32_BYTES;
use super::approach::{Approach, Side};
use super::reader::{BlockView, Entry, Origin};
use crate::Result;
use crate::lsm::coding::Malformed;
use crate::lsm::key::compare;

/// The three lengths of an entry take no more.
const ENTRY_HEAD_BYTES: usize = 15;
/// So much is decompressed beyond what is needed at once: it takes longer to begin than to go on.
const FILL_BYTES: usize = 256;

/// A place in a block. It holds no block: every move is told which, and must be told the same
/// until the next seek.
#[derive(Debug, Default)]
pub(crate) struct EntryCursor {
    key: Vec<u8>,
    value: Range<usize>,
    /// Where the entry starts.
    at: usize,
    valid: bool,
    behind: Behind,
}

/// The entries between a restart point and the place of a cursor that walks backwards: they were
/// passed on the way there, and are the next ones it comes to.
#[derive(Debug, Default)]
struct Behind {
    entries: Vec<Passed>,
    /// Their keys, one after the other.
    keys: Vec<u8>,
}

#[derive(Debug)]
struct Passed {
    at: usize,
    value: Range<usize>,
    key_end: usize,
}

impl Behind {
    fn clear(&mut self) {
        self.entries.clear();
        self.keys.clear();
    }

    fn push(&mut self, at: usize, key: &[u8], value: Range<usize>) {
        self.keys.extend_from_slice(key);
        self.entries.push(Passed { at, value, key_end: self.keys.len() });
    }

    /// The last one; its key replaces `key`.
    fn pop(&mut self, key: &mut Vec<u8>) -> Option<Passed> {
        let passed = self.entries.pop()?;
        let start = self.entries.last().map_or(0, |before| before.key_end);
        key.clear();
        key.extend_from_slice(&self.keys[start..passed.key_end]);
        self.keys.truncate(start);
        Some(passed)
    }
}

impl EntryCursor {
    pub(crate) fn valid(&self) -> bool {
        self.valid
    }

    /// The key it stands on.
    pub(crate) fn key(&self) -> &[u8] {
        debug_assert!(self.valid);
        &self.key
    }

    /// The value it stands on.
    pub(crate) fn value<'a>(&self, block: BlockView<'a>) -> &'a [u8] {
        debug_assert!(self.valid);
        block.entries.get(self.value.clone()).unwrap_or_default()
    }

    /// Stands nowhere from now on.
    pub(crate) fn clear(&mut self) {
        self.valid = false;
        self.behind.clear();
    }

    pub(crate) fn seek_to_first(&mut self, block: BlockView<'_>) -> Result<()> {
        self.valid = false;
        if block.restarts.is_empty() {
            return Ok(());
        }
        self.go_to_restart(block, 0)
    }

    pub(crate) fn seek_to_last(&mut self, block: BlockView<'_>) -> Result<()> {
        self.valid = false;
        self.go_to_last_before(block, block.restarts.len(), block.entries.len())
    }

    /// To the first entry at or after `target`. The keys are internal keys.
    pub(crate) fn seek(&mut self, block: BlockView<'_>, target: &[u8]) -> Result<()> {
        self.valid = false;
        let Some(mut high) = block.restarts.len().checked_sub(1) else { return Ok(()) };
        let mut low = 0;
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if compare(block.restart_key(middle)?, target) == Ordering::Less {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        self.behind.clear();
        let mut approach = Approach::new(target);
        let mut at = block.restart(low)?;
        while at < block.entries.len() {
            let entry = block.entry(at)?;
            let rest = &block.entries[entry.key_rest];
            match approach.step(entry.shared, rest) {
                Side::Before => at = entry.value.end,
                Side::Reached => {
                    approach.key(entry.shared, rest, &mut self.key);
                    (self.at, self.value, self.valid) = (at, entry.value, true);
                    return Ok(());
                }
                Side::Unknown => return self.seek_from_restart(block, low, target),
            }
        }
        Ok(())
    }

    /// To the first entry at or after `target` behind a restart point, key by key.
    fn seek_from_restart(
        &mut self,
        block: BlockView<'_>,
        restart: usize,
        target: &[u8],
    ) -> Result<()> {
        self.go_to_restart(block, restart)?;
        while self.valid && compare(&self.key, target) == Ordering::Less {
            self.next(block)?;
        }
        Ok(())
    }

    /// As [`seek`](Self::seek), on a block that is still being made at the start of `content`:
    /// `fill` is told how much of it is needed. Returns where the value is; `None` if the whole
    /// block is needed to tell.
    pub(crate) fn seek_early(
        &mut self,
        content: &mut [u8],
        length: usize,
        origin: &Origin,
        target: &[u8],
        mut fill: impl FnMut(&mut [u8], usize) -> Result<()>,
    ) -> Result<Option<Range<usize>>> {
        self.clear();
        // Each restart point takes four bytes and leads to an entry of no less than eleven: three
        // lengths of a byte and a tag. So much of the block is entries surely.
        let sure = length.saturating_sub(FIXED32_BYTES) / 15 * 11;
        let mut approach = Approach::new(target);
        let (mut at, mut filled) = (0, 0);
        while at + ENTRY_HEAD_BYTES <= sure {
            if filled < at + ENTRY_HEAD_BYTES {
                filled = length.min(at + ENTRY_HEAD_BYTES + FILL_BYTES);
                fill(content, filled)?;
            }
            let entry = Entry::decode(&content[..length], at)
                .map_err(|malformed| origin.corrupt(&malformed))?;
            // Whether it is passed by or found, all of it is needed.
            if filled < entry.value.end {
                filled = entry.value.end;
                fill(content, filled)?;
            }
            let rest = &content[entry.key_rest];
            match approach.step(entry.shared, rest) {
                Side::Before => at = entry.value.end,
                Side::Reached => {
                    approach.key(entry.shared, rest, &mut self.key);
                    return Ok(Some(entry.value));
                }
                Side::Unknown => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The key that [`seek_early`](Self::seek_early) found.
    pub(crate) fn early_key(&self) -> &[u8] {
        &self.key
    }

    pub(crate) fn next(&mut self, block: BlockView<'_>) -> Result<()> {
        debug_assert!(self.valid);
        self.behind.clear();
        self.load(block, self.value.end)
    }

    pub(crate) fn prev(&mut self, block: BlockView<'_>) -> Result<()> {
        debug_assert!(self.valid);
        if let Some(passed) = self.behind.pop(&mut self.key) {
            (self.at, self.value) = (passed.at, passed.value);
            return Ok(());
        }
        let here = self.at;
        self.valid = false;
        // The number of restart points before this entry.
        let (mut low, mut high) = (0, block.restarts.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if block.restart(middle)? < here {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.go_to_last_before(block, low, here)
    }

    /// To the entry that ends at `end`, walking from the last of the first `restart_count`
    /// restart points.
    fn go_to_last_before(
        &mut self,
        block: BlockView<'_>,
        restart_count: usize,
        end: usize,
    ) -> Result<()> {
        let Some(restart) = restart_count.checked_sub(1) else { return Ok(()) };
        self.go_to_restart(block, restart)?;
        while self.valid && self.value.end < end {
            self.behind.push(self.at, &self.key, self.value.clone());
            self.load(block, self.value.end)?;
        }
        if self.valid && self.value.end != end {
            self.valid = false;
            let problem = format!("no entry ends at {end}");
            return Err(block.origin.corrupt(&Malformed::new(self.at, problem)));
        }
        Ok(())
    }

    fn go_to_restart(&mut self, block: BlockView<'_>, index: usize) -> Result<()> {
        self.valid = false;
        self.behind.clear();
        self.key.clear();
        let offset = block.restart(index)?;
        if offset < block.entries.len() {
            block.check_restart(&block.entry(offset)?)?;
        }
        self.load(block, offset)
    }

    /// To the entry at `at`; the key before it is in `self.key`.
    fn load(&mut self, block: BlockView<'_>, at: usize) -> Result<()> {
        self.valid = false;
        if at >= block.entries.len() {
            return Ok(());
        }
        let entry = block.entry(at)?;
        if entry.shared > self.key.len() {
            let problem =
                format!("an entry shares {} bytes with a key of {}", entry.shared, self.key.len());
            return Err(block.origin.corrupt(&Malformed::new(at, problem)));
        }
        self.key.truncate(entry.shared);
        self.key.extend_from_slice(&block.entries[entry.key_rest.clone()]);
        block.check_key(&self.key, &entry)?;
        (self.at, self.value) = (at, entry.value);
        self.valid = true;
        Ok(())
    }
}
