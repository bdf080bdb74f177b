//! A log-structured merge tree in LevelDB's on-disk format.

mod iterator;
mod key;
