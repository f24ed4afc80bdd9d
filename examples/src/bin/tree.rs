//! Shows what a runtime holds. See `tree --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    graphable_examples::cli::run(graphable_examples::tree::run)
}
