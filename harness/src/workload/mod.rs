//! What the engines are given to do: one file a workload, on generators that derive record N from
//! its number alone, so that nothing has to be stored and everything can be checked afterwards.

pub mod insert;

pub mod bacon;
pub mod keys;
pub mod rng;
pub mod texts;
pub mod values;

use serde::{Deserialize, Serialize};

/// A workload with its parameters. In JSON, `name` tells which.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Workload {
    /// New records under random keys.
    Insert(insert::Insert),
}
