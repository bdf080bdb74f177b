//! Results for people and for programs: one file a format, on summaries that all formats share.

pub mod csv;
pub mod html;
pub mod json;
pub mod markdown;
pub mod terminal;
pub mod ycsb;

pub mod diff;
pub mod fairness;
pub mod machines;
pub mod ratios;
pub mod summary;
pub mod tables;
pub mod traffic;

pub(crate) mod figures;
