//! Whether an engine kept what it was given.

pub(crate) mod final_state;
pub(crate) mod read_back;
