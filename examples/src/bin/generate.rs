//! Chats with a small language model. See `generate --help`.

mod mapped;

use std::process::ExitCode;

fn main() -> ExitCode {
    graphable_examples::cli::run(|args| graphable_examples::generate::run(args, mapped::open))
}
