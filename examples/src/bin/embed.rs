//! Compares sentences. See `embed --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    graphable_examples::cli::run(graphable_examples::embed::run)
}
