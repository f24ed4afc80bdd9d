//! Shows what a runtime holds. See `tree --help`.

mod mapped;

use std::process::ExitCode;

fn main() -> ExitCode {
    graphable_examples::cli::run(|args| graphable_examples::tree::run(args, mapped::open))
}
