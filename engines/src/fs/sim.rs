//! A simulated file system that loses what was not synced.
