//! What can be wrong with a GGUF file.

use super::TensorType;

/// What is wrong with a GGUF file.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GgufError {
    /// Another kind of file.
    #[error("not a GGUF file: {}", begins(found))]
    BadMagic {
        /// The first bytes, at most four.
        found: Vec<u8>,
    },
    /// A version that this reader does not know.
    #[error("GGUF version {found} is not supported, only 2 and 3 are (little endian)")]
    Version {
        /// What the file says.
        found: u32,
    },
    /// The file ends too early.
    #[error("the file is truncated: {what} needs {needed} bytes at offset {at}, {available} are left")]
    Truncated {
        /// What was being read.
        what: String,
        /// Where it starts.
        at: usize,
        /// Bytes needed there.
        needed: u64,
        /// Bytes that are there.
        available: usize,
    },
    /// A size beyond what can be addressed.
    #[error("the file is damaged: the size of {what} overflows")]
    TooLarge {
        /// What has that size.
        what: String,
    },
    /// Text that is no UTF-8.
    #[error("the file is damaged: {what} at offset {at} is not UTF-8")]
    NotUtf8 {
        /// What was being read.
        what: String,
        /// Where it starts.
        at: usize,
    },
    /// A metadata type that does not exist.
    #[error("metadata `{key}` has the unknown type {code}")]
    UnknownValueType {
        /// The key.
        key: String,
        /// Its type.
        code: u32,
    },
    /// Arrays in arrays in arrays.
    #[error("the arrays of metadata `{key}` are nested too deeply")]
    TooDeep {
        /// The key.
        key: String,
    },
    /// A name given twice.
    #[error("the file is damaged: {what} `{name}` appears twice")]
    Duplicate {
        /// Metadata key or tensor.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// An alignment that makes no sense.
    #[error("`general.alignment` must be a power of two of at most 1 MiB")]
    Alignment,
    /// Too many dimensions.
    #[error("tensor `{name}` has {rank} dimensions, at most 4 are possible")]
    Rank {
        /// The tensor.
        name: String,
        /// Its rank.
        rank: u32,
    },
    /// A tensor type that this reader cannot dequantise.
    #[error("tensor `{name}` has type {code}, which this reader cannot dequantise")]
    UnknownTensorType {
        /// The tensor.
        name: String,
        /// Its type.
        code: u32,
    },
    /// Rows that are no whole number of quantisation blocks.
    #[error("tensor `{name}`: rows of {row} elements are not a multiple of {block}, the block of {ty}")]
    PartialBlock {
        /// The tensor.
        name: String,
        /// Elements of a row.
        row: usize,
        /// Elements of a block.
        block: usize,
        /// The type.
        ty: TensorType,
    },
    /// A tensor that does not start where it may.
    #[error("tensor `{name}` starts at {offset}, which is not a multiple of the alignment {alignment}")]
    Misaligned {
        /// The tensor.
        name: String,
        /// Where it starts, within the data.
        offset: usize,
        /// The alignment.
        alignment: usize,
    },
    /// Tensors that share bytes.
    #[error("the file is damaged: tensors `{first}` and `{second}` overlap")]
    Overlap {
        /// The tensor that starts first.
        first: String,
        /// The other one.
        second: String,
    },
    /// Text or an array that is longer than any that a model has.
    #[error("the file is damaged: {what} has {len} {unit}, at most {most} are possible")]
    TooLong {
        /// What is that long.
        what: String,
        /// Its length.
        len: usize,
        /// What the length is counted in.
        unit: &'static str,
        /// The largest length.
        most: usize,
    },
    /// A part of a model that was split into several files.
    #[error(
        "the file is one of the {count} parts of a split model (`split.count`), which are not read one by one"
    )]
    Split {
        /// The number of parts.
        count: u64,
    },
    /// Metadata that is not there.
    #[error("metadata `{key}` is missing")]
    MissingKey {
        /// The key.
        key: String,
    },
    /// Metadata of another type.
    #[error("metadata `{key}` should be {expected} and is {found}")]
    WrongType {
        /// The key.
        key: String,
        /// What is needed.
        expected: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// A tensor that is not there.
    #[error("tensor `{name}` is missing")]
    MissingTensor {
        /// The tensor.
        name: String,
    },
}

/// What a file of another kind begins with, for people.
fn begins(found: &[u8]) -> String {
    match found {
        [] => "it is empty".into(),
        _ => format!("it starts with \"{}\" instead of \"GGUF\"", found.escape_ascii()),
    }
}

impl GgufError {
    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::BadMagic { .. } => {
                "pass a file that ends in `.gguf`; safetensors files and wheels are not read here"
            }
            Self::Version { .. } => "convert the file again with a current converter",
            Self::Split { .. } => {
                "merge the parts by `llama-gguf-split --merge FIRST_PART MODEL.gguf` of llama.cpp, and use the file that it writes"
            }
            Self::UnknownTensorType { .. } => {
                "use a file quantised to F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K or IQ4_NL"
            }
            Self::MissingKey { .. } | Self::WrongType { .. } | Self::MissingTensor { .. } => {
                "use the complete file of a chat model of the families Llama, Mistral, Qwen2, Qwen3 or Gemma"
            }
            _ => "download the file again; it is incomplete or damaged",
        }
    }
}
