//! Reference points: what the machine allows without a storage engine.
