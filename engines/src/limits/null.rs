//! The engine that keeps nothing: what a run costs apart from any engine.

use std::fs;
use std::hint::black_box;
use std::path::Path;

use super::STORES_NOTHING;
use crate::engine::Visitor;
use crate::{
    Batch, Capabilities, Description, Direction, Engine, Error, KeyRange, OpenOptions, Result,
    Stats,
};

pub(super) const NAME: &str = "null";

/// Takes every call and forgets it.
#[derive(Debug)]
pub struct Null(());

impl Null {
    /// Creates the directory, so that its size can be measured, and nothing in it.
    ///
    /// # Errors
    /// [`Error::Io`] if the directory cannot be created.
    pub fn open(directory: &Path, _options: &OpenOptions) -> Result<Self> {
        fs::create_dir_all(directory).map_err(Error::io("create directory", directory))?;
        Ok(Self(()))
    }
}

impl Engine for Null {
    fn description(&self) -> Description {
        Description {
            engine: NAME,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            durability: STORES_NOTHING.to_owned(),
            settings: Vec::new(),
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            ordered_scan: false,
            scan_sorts: false,
            atomic_batch: false,
            snapshot_scan: false,
            persistent: false,
        }
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        black_box((key, value));
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        black_box(key);
        Ok(())
    }

    fn get(&self, key: &[u8], _read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        black_box(key);
        Ok(false)
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        black_box(batch);
        Ok(())
    }

    fn scan(&self, _: KeyRange<'_>, _: Direction, _: &mut Visitor<'_>) -> Result<()> {
        Err(Error::Unsupported { engine: NAME, operation: "ordered scan".to_owned() })
    }

    fn fold(&self, _visit: &mut Visitor<'_>) -> Result<()> {
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
        Ok(Stats { live_records: Some(0), disk_bytes: Some(0), ..Stats::default() })
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
