//! RocksDB as the crate `rocksdb` compiles it: the newest one, instead of the system's library.
//! Same levels and settings as there, so that the two can be compared.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;

use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, Options, WaitForCompactOptions, WriteBatch,
    WriteOptions,
};

use super::adapter::{MemorySplit, clamp_usize, fail, locked, prepare};
use super::footprint;
use super::rocksdb::{durability, is_lock_message, version};
use crate::engine::Visitor;
use crate::{
    Batch, Capabilities, Compression, Description, Direction, Durability, Engine, KeyRange,
    OpenOptions, Operation, Result, Stats,
};

const NAME: &str = "rocksdb";

pub(super) fn open(directory: &Path, options: &OpenOptions) -> Result<Box<dyn Engine>> {
    prepare(NAME, directory, options, footprint::rocksdb)?;
    let memory = MemorySplit::of(options.memory_bytes);
    let threads = thread::available_parallelism().map_or(2, NonZero::get);
    let db = DB::open(&settings(options, memory, threads), directory).map_err(|error| {
        let is_locked = is_lock_message(error.as_ref());
        if is_locked { locked(directory, error) } else { fail(NAME)(error) }
    })?;
    let mut write_options = WriteOptions::default();
    write_options.set_sync(options.durability == Durability::Power);
    Ok(Box::new(Rocks {
        db,
        write_options,
        directory: directory.to_path_buf(),
        options: options.clone(),
        memory,
        threads,
    }))
}

fn settings(options: &OpenOptions, memory: MemorySplit, threads: usize) -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_lru_cache(clamp_usize(memory.cache_bytes)));
    table.set_bloom_filter(10.0, false);
    let mut settings = Options::default();
    settings.create_if_missing(options.create);
    settings.set_block_based_table_factory(&table);
    settings.set_write_buffer_size(clamp_usize(memory.write_buffer_bytes));
    settings.increase_parallelism(i32::try_from(threads).unwrap_or(i32::MAX));
    settings.set_manual_wal_flush(options.durability == Durability::Buffered);
    match options.compression {
        Compression::None => settings.set_compression_type(DBCompressionType::None),
        Compression::Snappy => settings.set_compression_type(DBCompressionType::Snappy),
        Compression::Zstd(level) => {
            settings.set_compression_type(DBCompressionType::Zstd);
            // Window and strategy as by default, no dictionary.
            settings.set_compression_options(-14, level, 0, 0);
        }
    }
    settings
}

struct Rocks {
    db: DB,
    write_options: WriteOptions,
    directory: PathBuf,
    options: OpenOptions,
    memory: MemorySplit,
    threads: usize,
}

impl Rocks {
    fn number(&self, property: &str) -> Option<u64> {
        self.db.property_int_value(property).ok().flatten()
    }
}

impl Engine for Rocks {
    fn description(&self) -> Description {
        Description {
            engine: NAME,
            version: version(&self.directory).unwrap_or_else(|| "of the crate 0.25".to_owned()),
            durability: durability(self.options.durability).unwrap_or_default().to_owned(),
            settings: vec![
                ("library", "compiled from the crate rocksdb".to_owned()),
                ("write_buffer_size", self.memory.write_buffer_bytes.to_string()),
                ("block_cache", self.memory.cache_bytes.to_string()),
                ("bloom_bits_per_key", "10".to_owned()),
                ("compression", self.options.compression.to_string()),
                ("max_write_buffer_number", "2 (default)".to_owned()),
                ("increase_parallelism", self.threads.to_string()),
            ],
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            ordered_scan: true,
            scan_sorts: false,
            atomic_batch: true,
            snapshot_scan: true,
            persistent: true,
        }
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.db.put_opt(key, value, &self.write_options).map_err(fail(NAME))
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.db.delete_opt(key, &self.write_options).map_err(fail(NAME))
    }

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.db.get_pinned(key).map_err(fail(NAME))?;
        if let Some(value) = &value {
            read(value);
        }
        Ok(value.is_some())
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        let mut writes = WriteBatch::default();
        for operation in batch.iter() {
            match operation {
                Operation::Put { key, value } => writes.put(key, value),
                Operation::Delete { key } => writes.delete(key),
            }
        }
        self.db.write_opt(writes, &self.write_options).map_err(fail(NAME))
    }

    fn scan(
        &self,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<()> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let mut records = self.db.raw_iterator();
        match (direction, range.start, range.end) {
            (Direction::Forward, Included(key) | Excluded(key), _) => records.seek(key),
            (Direction::Forward, Unbounded, _) => records.seek_to_first(),
            (Direction::Backward, _, Included(key) | Excluded(key)) => records.seek_for_prev(key),
            (Direction::Backward, _, Unbounded) => records.seek_to_last(),
        }
        while let Some((key, value)) = records.item() {
            // The first key may be an excluded bound.
            let is_short_of_range = match direction {
                Direction::Forward => range.is_before(key),
                Direction::Backward => range.is_after(key),
            };
            if !is_short_of_range && (!range.contains(key) || visit(key, value).is_break()) {
                break;
            }
            match direction {
                Direction::Forward => records.next(),
                Direction::Backward => records.prev(),
            }
        }
        records.status().map_err(fail(NAME))
    }

    fn sync(&self) -> Result<()> {
        self.db.flush_wal(true).map_err(fail(NAME))
    }

    fn quiesce(&self) -> Result<()> {
        self.db.wait_for_compact(&WaitForCompactOptions::default()).map_err(fail(NAME))
    }

    fn compact(&self) -> Result<()> {
        self.db.compact_range::<&[u8], &[u8]>(None, None);
        self.quiesce()
    }

    fn stats(&self) -> Result<Stats> {
        let memory = ["rocksdb.cur-size-all-mem-tables", "rocksdb.block-cache-usage"];
        let levels = self.db.property_value("rocksdb.levelstats").map_err(fail(NAME))?;
        Ok(Stats {
            memory_bytes: memory.iter().map(|name| self.number(name)).sum(),
            details: levels.map(|text| ("levels".to_owned(), text)).into_iter().collect(),
            ..Stats::default()
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.db.flush_wal(false).map_err(fail(NAME))
    }
}

impl Drop for Rocks {
    fn drop(&mut self) {
        // Dropping cannot report; whoever needs to know calls `close`.
        let _ = self.db.flush_wal(false);
    }
}
