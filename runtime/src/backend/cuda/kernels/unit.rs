//! Kernels by name: a source file, the types that it is compiled for, a function in it.

use crate::DType;

/// A source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Family {
    /// Host values and device inputs, scattered to static buffers.
    Put,
    /// The same, with more than 4 KB of them.
    PutLarge,
    /// Unary, binary, comparisons, where.
    Elementwise,
    /// Between dtypes.
    Cast,
    /// Copies, padding, filling, joining.
    Copy,
    /// Embedding, gather, scatter.
    Index,
    /// Sums, maxima, softmax, norms over any axis.
    Reduce,
    /// Layer and RMS norm.
    Norm,
    /// Rotary embedding.
    Rope,
    /// One query against a long cache, split over blocks.
    AttentionDecode,
    /// Many queries, in tiles.
    AttentionPrefill,
    /// Matrix products that the library does not take.
    MatMul,
}

impl Family {
    /// All of them.
    pub(crate) const ALL: [Self; 12] = [
        Self::Put,
        Self::PutLarge,
        Self::Elementwise,
        Self::Cast,
        Self::Copy,
        Self::Index,
        Self::Reduce,
        Self::Norm,
        Self::Rope,
        Self::AttentionDecode,
        Self::AttentionPrefill,
        Self::MatMul,
    ];

    /// The file.
    pub(crate) fn file(self) -> &'static str {
        match self {
            Self::Put => "put.cu",
            Self::PutLarge => "put_large.cu",
            Self::Elementwise => "elementwise.cu",
            Self::Cast => "cast.cu",
            Self::Copy => "copy.cu",
            Self::Index => "index.cu",
            Self::Reduce => "reduce.cu",
            Self::Norm => "norm.cu",
            Self::Rope => "rope.cu",
            Self::AttentionDecode => "attention_decode.cu",
            Self::AttentionPrefill => "attention_prefill.cu",
            Self::MatMul => "matmul.cu",
        }
    }

    /// Its text.
    pub(crate) fn source(self) -> &'static str {
        match self {
            Self::Put => include_str!("put.cu"),
            Self::PutLarge => include_str!("put_large.cu"),
            Self::Elementwise => include_str!("elementwise.cu"),
            Self::Cast => include_str!("cast.cu"),
            Self::Copy => include_str!("copy.cu"),
            Self::Index => include_str!("index.cu"),
            Self::Reduce => include_str!("reduce.cu"),
            Self::Norm => include_str!("norm.cu"),
            Self::Rope => include_str!("rope.cu"),
            Self::AttentionDecode => include_str!("attention_decode.cu"),
            Self::AttentionPrefill => include_str!("attention_prefill.cu"),
            Self::MatMul => include_str!("matmul.cu"),
        }
    }

    /// The types that it is ever compiled for: CI compiles exactly these.
    pub(crate) fn types(self) -> Vec<(Option<DType>, Option<DType>)> {
        use DType::{Bf16, Bool, F16, F32, I32, U8, U32};
        const ALL: [DType; 7] = [F32, F16, Bf16, I32, U32, U8, Bool];
        match self {
            // The last two move words of 1 to 16 bytes, whatever they mean.
            Self::Put | Self::PutLarge | Self::Copy | Self::Index => vec![(None, None)],
            Self::Cast => ALL.iter().flat_map(|&t| ALL.map(|u| (Some(t), Some(u)))).collect(),
            Self::Elementwise | Self::Reduce | Self::MatMul => ALL.map(|t| (Some(t), None)).to_vec(),
            Self::Norm | Self::Rope | Self::AttentionDecode | Self::AttentionPrefill => {
                [F32, F16, Bf16].map(|t| (Some(t), None)).to_vec()
            }
        }
    }
}

/// A file and its types: what is compiled and loaded at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Unit {
    /// The file.
    pub(crate) family: Family,
    /// `T` in it.
    pub(crate) t: Option<DType>,
    /// `U` in it.
    pub(crate) u: Option<DType>,
}

impl Unit {
    /// Names of the types, as `common.cuh` spells them.
    pub(crate) fn defines(self) -> Vec<String> {
        let name = |t: DType| match t {
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::Bf16 => "bf16",
            DType::I32 => "i32",
            DType::U32 => "u32",
            DType::U8 => "u8",
            DType::Bool => "boolean",
        };
        let mut out = Vec::new();
        for (letter, dtype) in [("T", self.t), ("U", self.u)] {
            if let Some(dtype) = dtype {
                // `T` for the code; `T_f32` for the preprocessor.
                out.push(format!("-D{letter}={}", name(dtype)));
                out.push(format!("-D{letter}_{}=1", name(dtype)));
            }
        }
        out
    }
}

/// One function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Kernel {
    /// Where it is.
    pub(crate) unit: Unit,
    /// Its `extern "C"` name.
    pub(crate) name: &'static str,
}

impl Kernel {
    /// A kernel of a file without types.
    pub(crate) fn plain(family: Family, name: &'static str) -> Self {
        Self { unit: Unit { family, t: None, u: None }, name }
    }

    /// A kernel of one type.
    pub(crate) fn of(family: Family, t: DType, name: &'static str) -> Self {
        Self { unit: Unit { family, t: Some(t), u: None }, name }
    }

    /// A kernel of two types.
    pub(crate) fn of2(family: Family, t: DType, u: DType, name: &'static str) -> Self {
        Self { unit: Unit { family, t: Some(t), u: Some(u) }, name }
    }
}

/// How many blocks of how many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Grid {
    /// Blocks along x, y, z.
    pub(crate) blocks: [u32; 3],
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Dynamic shared memory of a block, in bytes.
    pub(crate) shared: u32,
}

impl Grid {
    /// `blocks` along x.
    pub(crate) fn line(blocks: u32, threads: u32) -> Self {
        Self { blocks: [blocks, 1, 1], threads, shared: 0 }
    }
}
