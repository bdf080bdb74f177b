//! What is measured around the engines.

pub mod disk;
pub mod filesystem;
pub mod machine;
