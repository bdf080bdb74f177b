//! An append-only log with a key directory in memory, in Basho's on-disk format.
