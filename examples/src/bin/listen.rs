//! Finds speech in a recording. See `listen --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    graphable_examples::cli::run(graphable_examples::listen::run)
}
