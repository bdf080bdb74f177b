//! The integration tests of the crate, in one binary.
#![expect(missing_docs, reason = "tests")]

mod golden;
