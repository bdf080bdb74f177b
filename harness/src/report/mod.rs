//! Results for people and for programs: one file a format, on summaries that all formats share.

pub mod json;
pub mod markdown;
pub mod terminal;

pub mod ratios;
pub mod summary;
pub mod tables;

pub(crate) mod figures;
