//! Measures how well a chat model predicts a text. See `perplexity --help`.

mod mapped;

use std::process::ExitCode;

fn main() -> ExitCode {
    graphable_examples::cli::run(|args| graphable_examples::perplexity::run(args, mapped::open))
}
