//! The program.

use std::process::ExitCode;

fn main() -> ExitCode {
    harness::run::child::serve_if_asked();
    harness::cli::main()
}
