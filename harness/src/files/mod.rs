//! The files that a user names: what is read is an ordinary file, as a whole only up to a size;
//! what is written comes as a whole, and never in the place of what is read.

mod input;

pub mod output;

pub use input::Inputs;
