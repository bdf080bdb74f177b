//! An ordered map in memory: what the interface costs with data behind it, but no disk. It is also
//! the model that the conformance suite compares every other engine with.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Bound;
use std::path::Path;

use parking_lot::RwLock;

use super::STORES_NOTHING;
use crate::engine::Visitor;
use crate::{
    Batch, Capabilities, Description, Direction, Engine, Error, KeyRange, OpenOptions, Operation,
    Result, Stats,
};

pub(super) const NAME: &str = "memory";

type Map = BTreeMap<Box<[u8]>, Box<[u8]>>;

/// A map under a reader-writer lock. A scan holds the lock for reading: its visitor must not write
/// to the same engine.
#[derive(Debug, Default)]
pub struct Memory {
    map: RwLock<Map>,
}

impl Memory {
    /// An empty map. Creates the directory, so that its size can be measured, and nothing in it.
    ///
    /// # Errors
    /// [`Error::Io`] if the directory cannot be created.
    pub fn open(directory: &Path, _options: &OpenOptions) -> Result<Self> {
        fs::create_dir_all(directory).map_err(Error::io("create directory", directory))?;
        Ok(Self::default())
    }
}

impl Engine for Memory {
    fn description(&self) -> Description {
        Description {
            engine: NAME,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            durability: STORES_NOTHING.to_owned(),
            settings: vec![("map", "BTreeMap under one reader-writer lock".to_owned())],
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            ordered_scan: true,
            scan_sorts: false,
            atomic_batch: true,
            snapshot_scan: true,
            persistent: false,
        }
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        apply(&mut self.map.write(), Operation::Put { key, value });
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        apply(&mut self.map.write(), Operation::Delete { key });
        Ok(())
    }

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let map = self.map.read();
        let value = map.get(key);
        if let Some(value) = value {
            read(value);
        }
        Ok(value.is_some())
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        let mut map = self.map.write();
        for operation in batch.iter() {
            apply(&mut map, operation);
        }
        Ok(())
    }

    fn scan(
        &self,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let map = self.map.read();
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (range.start, range.end);
        let mut records = map.range::<[u8], _>(bounds);
        let _ = match direction {
            Direction::Forward => records.try_for_each(|(key, value)| visit(key, value)),
            Direction::Backward => records.rev().try_for_each(|(key, value)| visit(key, value)),
        };
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn quiesce(&self) -> Result<()> {
        Ok(())
    }

    fn compact(&self) -> Result<()> {
        Ok(())
    }

    fn stats(&self) -> Result<Stats> {
        Ok(Stats {
            live_records: Some(self.map.read().len() as u64),
            disk_bytes: Some(0),
            ..Stats::default()
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

fn apply(map: &mut Map, operation: Operation<'_>) {
    match operation {
        Operation::Put { key, value } => {
            map.insert(key.into(), value.into());
        }
        Operation::Delete { key } => {
            map.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;

    fn keys(memory: &Memory, range: KeyRange<'_>, direction: Direction, limit: usize) -> String {
        let mut found = String::new();
        let mut visit = |key: &[u8], _: &[u8]| {
            found.push(char::from(key[0]));
            if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        memory.scan(range, direction, &mut visit).unwrap();
        found
    }

    #[test]
    fn scans_keep_to_their_bounds_both_ways_and_stop_when_told() {
        let memory = Memory::default();
        for key in [b"d", b"b", b"a", b"c"] {
            memory.put(key, b"").unwrap();
        }
        let middle = KeyRange { start: Bound::Excluded(b"a"), end: Bound::Included(b"d") };
        assert_eq!(keys(&memory, middle, Direction::Forward, 9), "bcd");
        assert_eq!(keys(&memory, middle, Direction::Backward, 9), "dcb");
        assert_eq!(keys(&memory, KeyRange::all(), Direction::Backward, 2), "dc");
        assert_eq!(keys(&memory, KeyRange::between(b"b", b"d"), Direction::Forward, 9), "bc");
        for empty in [
            KeyRange::between(b"d", b"a"),
            KeyRange::between(b"b", b"b"),
            KeyRange { start: Bound::Excluded(b"b"), end: Bound::Excluded(b"b") },
        ] {
            assert_eq!(keys(&memory, empty, Direction::Forward, 9), "");
        }
    }
}
