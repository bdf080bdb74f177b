//! Whether an engine still has what it was given.

pub mod read_back;
