//! A log-structured merge tree in LevelDB's on-disk format.
//!
//! LevelDB opens what this engine wrote, at any moment, and this engine what LevelDB wrote. What
//! differs is how the work is done:
//! - Writers share log appends and syncs (group commit), and reads take no lock.
//! - Several memtables are flushed at once, on threads of their own.
//! - Level 0 may hold many tables: they are merged late and at once, instead of rewriting as data
//!   comes in (see [`Options`]), on several threads, each with a range of keys.
//! - Tables are large (32 MiB): opening is cheap.
//! - Tables hold a second filter, over all of their keys, which LevelDB passes over; indexes lie in
//!   memory made for searching; blocks are decompressed as far as a lookup needs them.
//! - The block cache keeps what is read again and again, whatever is walked over.

// From the engine down to the bytes.
mod options;
mod store;

mod by_hand;
mod checkpoint;
mod destroy;
mod properties;
mod read_only;
mod repair;

mod background;
mod compaction;
mod core;
mod cursor;
mod flush;
mod multi_get;
mod reader;
mod reads;
mod recovery;
mod write;

mod counters;
mod garbage;
mod group;
mod inventory;
mod janitor;
mod key_count;
mod manifest;
mod output;
mod pace;
mod picker;
mod poison;
mod reach;
mod retention;
mod snapshot;
mod split;
mod throttle;
mod version;
mod view;

mod arena;
mod leaf;
mod log_file;
mod memtable;

mod db_iter;
mod iterator;
mod level_iter;
mod merge_iter;

mod cache;
mod table_cache;

mod block;
mod compress;
mod filter;
mod snappy;
mod table;
mod table_filter;

mod edit;
mod log;
mod write_batch;

mod coding;
mod copy;
mod filename;
mod key;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod test_iter;
#[cfg(test)]
mod testing;

pub use by_hand::CompactionPause;
pub use cursor::{Cursor, CursorOptions};
pub use destroy::{destroy, destroy_in};
pub use options::Options;
pub use properties::LevelStats;
pub use reader::Reader;
pub use repair::{RepairReport, repair, repair_in};
pub use snapshot::Snapshot;
pub use store::{Lsm, REGISTRATION};
