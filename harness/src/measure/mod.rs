//! What is measured around the engines.

pub mod recorder;

pub mod figures;
pub mod over_time;
pub mod resources;
pub mod sampler;
pub mod told;

pub mod cold;
pub mod disk;
pub mod filesystem;
pub mod machine;
