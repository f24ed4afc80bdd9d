//! The program that measures how well a model predicts a text.
//!
//! As llama.cpp does it, so that numbers can be compared: a text is cut into chunks of as many tokens as the context; the first token of
//! each becomes the one that starts a text, if the model wants one; and the tokens of the second half of each are predicted, so that
//! every prediction has seen at least half a context.

use std::{fmt, path::Path, time::Instant};

use graphable::{DType, Float};
use half::{bf16, f16};
use serde::Serialize;

use crate::{
    Error, Result,
    checkpoint::{Blocks, Checkpoint, Files, LoadProgress},
    cli::{self, device, print, say},
    fetch::{Cache, SMOLLM2},
    llama::{IGNORED, Scorer},
    progress::{ByteBar, CountBar},
};

/// What came of it. Its fields, in this order, are the keys of `--json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Perplexity {
    /// The exponential of the mean negative logarithm of the probability of a token.
    pub perplexity: f64,
    /// The standard error of the perplexity, from the spread of the logarithms.
    pub standard_error: f64,
    /// Tokens that were predicted.
    pub predicted: usize,
    /// Tokens of the text.
    pub tokens: usize,
    /// Chunks that were read.
    pub chunks: usize,
    /// Tokens of a chunk.
    pub context: usize,
    /// The type of activations and cache: `f32`, `bf16` or `f16`.
    pub dtype: String,
    /// How most elements of the layers' matrices are on the device: the same type, or the format of their blocks, such as `Q4_1`.
    pub weights: String,
    /// What it ran on.
    pub device: String,
    /// Reading the chunks, in seconds, without loading.
    pub seconds: f64,
}

impl Perplexity {
    /// One JSON object on a line of its own.
    pub fn to_json(&self) -> String {
        match serde_json::to_string(self) {
            Ok(json) => json + "\n",
            Err(_) => unreachable!("strings and numbers can always be written"),
        }
    }
}

impl fmt::Display for Perplexity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { perplexity, standard_error, predicted, chunks, context, .. } = self;
        writeln!(
            f,
            "{perplexity:.4} +/- {standard_error:.4}, of {predicted} tokens in {chunks} chunks of {context}"
        )
    }
}

/// Measures as the options say, and prints the perplexity. `open` reads or maps the files of the model.
///
/// # Errors
/// Everything that can go wrong with options, text, model, device and output.
pub fn run(args: cli::Perplexity, open: impl FnOnce(&Path) -> Result<Files>) -> Result<()> {
    if let Some(note) = args.dtype.unused(args.activations).filter(|_| !args.common.quiet) {
        say(format_args!("{note}"));
    }
    let on = device(&args.common.device)?;
    let text = std::fs::read(&args.text).map_err(|e| Error::io(&args.text, "read", &e))?;
    let text = String::from_utf8(text).map_err(|e| Error::File {
        path: args.text.clone(),
        reason: format!("is not UTF-8: {e}"),
        help: "pass a text in UTF-8".into(),
    })?;
    let path = match &args.model {
        Some(path) => path.clone(),
        None => Cache::of_user(args.common.quiet)?.get(&SMOLLM2)?.join(SMOLLM2.files[0].name),
    };
    let files = open(&path)?;
    let (dtype, blocks) = args.dtype.of(files.stored()?, args.activations, &on);
    let result = match dtype {
        DType::Bf16 => measure::<bf16>(&args, &files, on, blocks, &text)?,
        DType::F16 => measure::<f16>(&args, &files, on, blocks, &text)?,
        // The only other float type.
        _ => measure::<f32>(&args, &files, on, blocks, &text)?,
    };
    if args.common.json {
        return print(&result.to_json());
    }
    if !args.common.quiet {
        let Perplexity { dtype, weights, device, seconds, .. } = &result;
        say(format_args!("{dtype} with {weights} on {device}, {seconds:.1} s"));
    }
    print(&result.to_string())
}

fn measure<T: Float>(
    args: &cli::Perplexity,
    files: &Files,
    device: graphable::Device,
    blocks: Blocks,
    text: &str,
) -> Result<Perplexity> {
    let config = files.config()?;
    let tokenizer = files.tokenizer()?;
    let context = args.context.min(config.context);
    let tokens = tokenizer.encode_text(text)?;
    let start = tokenizer.start_of_text();
    let all = tokens.len() / context;
    let chunks = args.chunks.map_or(all, |most| most.min(all));
    if chunks == 0 {
        return Err(Error::File {
            path: args.text.clone(),
            reason: format!("has {} tokens, and a chunk has {context}", tokens.len()),
            help: "pass a longer text, or a smaller `--context`".into(),
        });
    }
    let bars = args.common.bars();
    let mode = args.common.mode.of(&device);
    let bar = ByteBar::new("loading", bars);
    let mut show = |p: LoadProgress| bar.show(p.done, p.total);
    let mut scorer = Scorer::<T>::load(files, &config, device.clone(), mode, context, blocks, &mut show)?;
    drop(bar);
    let bar = CountBar::new("chunks", chunks as u64, bars);
    let begin = Instant::now();
    let mut losses = Vec::new();
    for chunk in tokens.chunks_exact(context).take(chunks) {
        losses.extend(of_chunk(&mut scorer, chunk, start)?);
        bar.advance();
    }
    let (perplexity, standard_error) = perplexity(&losses);
    if !perplexity.is_finite() {
        return Err(Error::Model {
            what: "model".into(),
            reason: "it gave a probability that is not a number".into(),
            help: "pass `--dtype bf16` or `--dtype f32`, or with blocks `--activations bf16`; if that fails as well, download the model again"
                .into(),
        });
    }
    Ok(Perplexity {
        perplexity,
        standard_error,
        predicted: losses.len(),
        tokens: tokens.len(),
        chunks,
        context,
        dtype: T::DTYPE.to_string(),
        weights: scorer.model().stored(),
        device: device.to_string(),
        seconds: begin.elapsed().as_secs_f64(),
    })
}

/// The losses of the tokens of the second half of a chunk.
fn of_chunk<T: Float>(scorer: &mut Scorer<T>, chunk: &[u32], start: Option<u32>) -> Result<Vec<f32>> {
    let mut read = chunk.to_vec();
    if let (Some(start), Some(first)) = (start, read.first_mut()) {
        *first = start;
    }
    let half = chunk.len() / 2;
    // The token at a place is followed by the next one; nothing follows the last one.
    let labels: Vec<i32> = (0..chunk.len())
        .map(|i| if i < half { IGNORED } else { chunk.get(i + 1).map_or(IGNORED, |next| *next as i32) })
        .collect();
    let losses = scorer.losses(&read, &labels)?;
    Ok(losses[half..chunk.len() - 1].to_vec())
}

/// The exponential of the mean, and its standard error.
fn perplexity(losses: &[f32]) -> (f64, f64) {
    let n = losses.len() as f64;
    let mean = losses.iter().map(|loss| f64::from(*loss)).sum::<f64>() / n;
    let spread = losses.iter().map(|loss| (f64::from(*loss) - mean).powi(2)).sum::<f64>();
    (mean.exp(), mean.exp() * (spread / n / (n - 1.0).max(1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_probabilities_it_is_their_number() {
        let (perplexity, error) = perplexity(&[8f32.ln(); 100]);
        assert!((perplexity - 8.0).abs() < 1e-5 && error < 1e-5, "{perplexity} {error}");
        let (perplexity, error) = super::perplexity(&[0.0, 2.0]);
        assert!((perplexity - 1f64.exp()).abs() < 1e-12 && (error - 1f64.exp()).abs() < 1e-12);
    }
}
