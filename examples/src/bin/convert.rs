//! Writes a chat model as a GGUF file in another format. See `convert --help`.

mod mapped;

use std::process::ExitCode;

fn main() -> ExitCode {
    graphable_examples::cli::run(|args| graphable_examples::convert::run(args, mapped::open))
}
