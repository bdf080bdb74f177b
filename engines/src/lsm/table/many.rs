//! Looking many keys up in one table.

use std::sync::Arc;

use super::BlockHandle;
use super::reader::{Place, Scratch, Table};
use crate::Result;
use crate::lsm::block::{Block, EntryCursor, KeyFormat};
use crate::lsm::key::user_key;
use crate::lsm::table_filter::KeyHash;

/// One of many keys.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// The user key at the sequence it is looked up at.
    pub(crate) internal_key: Vec<u8>,
    pub(crate) hash: KeyHash,
    /// Whose it is: handed back with what is found.
    pub(crate) place: usize,
    /// Whether an entry was found.
    pub(crate) is_done: bool,
}

impl Wanted {
    pub(crate) fn user_key(&self) -> &[u8] {
        user_key(&self.internal_key)
    }
}

impl Table {
    /// As [`get`](Self::get) for each of `wanted`, which ascend: `visit` is called with place,
    /// internal key and value. Each block is read once.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(crate) fn get_many(
        &self,
        wanted: &mut [Wanted],
        visit: &mut impl FnMut(usize, &[u8], &[u8]),
    ) -> Result<()> {
        let in_blocks: Vec<(BlockHandle, usize)> = wanted
            .iter()
            .enumerate()
            .filter_map(|(at, wanted)| {
                self.block_of(&wanted.internal_key, wanted.hash).map(|handle| (handle, at))
            })
            .collect();
        let mut scratch = Scratch::default();
        for run in in_blocks.chunk_by(|one, other| one.0 == other.0) {
            let &[(handle, first), ref more @ ..] = run else { continue };
            if more.is_empty() {
                let Wanted { internal_key, place, .. } = &wanted[first];
                wanted[first].is_done =
                    self.get_in_block(&mut scratch, handle, internal_key, &mut |key, value| {
                        visit(*place, key, value);
                    })?;
                continue;
            }
            let block = self.whole_block(handle)?;
            let mut cursor = EntryCursor::default();
            for (_, at) in run {
                let wanted = &mut wanted[*at];
                cursor.seek(block.view(), &wanted.internal_key)?;
                if cursor.valid() && user_key(cursor.key()) == wanted.user_key() {
                    visit(wanted.place, cursor.key(), cursor.value(block.view()));
                    wanted.is_done = true;
                }
            }
        }
        Ok(())
    }

    fn whole_block(&self, handle: BlockHandle) -> Result<Arc<Block>> {
        if let Some(block) = self.cached(handle) {
            return Ok(block);
        }
        let (mut stored, mut bytes) = (Vec::new(), Vec::new());
        let file = self.file();
        match file.load(handle, self.verify_checksums(), &mut stored, &mut bytes)? {
            Place::Mapped => {
                bytes.extend_from_slice(file.read(handle.offset, handle.size, &mut stored)?);
            }
            Place::Stored => bytes = stored,
            Place::Decompressed => bytes.shrink_to_fit(),
        }
        let block = Arc::new(Block::new(bytes, file.origin(handle), KeyFormat::Internal)?);
        if let Some(cache) = self.cache()
            && cache.admits(self.number(), handle.offset)
        {
            cache.insert(self.number(), handle.offset, Arc::clone(&block));
        }
        Ok(block)
    }
}
