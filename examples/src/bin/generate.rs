//! Chats with a small language model. See `generate --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    graphable_examples::cli::run(graphable_examples::generate::run)
}
