//! Kernels by name: a source, the types that it is compiled for, a function in it.

use std::{
    fmt,
    hash::{Hash, Hasher},
    ptr,
    sync::{Mutex, PoisonError},
};

use rustc_hash::FxHashMap;

use crate::DType;

/// All types for which a source is compiled: CI compiles exactly these.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Types {
    /// None: it moves words of 1 to 16 bytes, whatever they mean.
    None,
    /// `T`: floating-point types.
    Floats,
    /// `T`: every type.
    All,
    /// `T` and `U`: every pair.
    Pairs,
}

impl Types {
    /// All combinations.
    pub(crate) fn list(self) -> Vec<(Option<DType>, Option<DType>)> {
        use DType::{Bf16, Bool, F16, F32, I32, U8, U32};
        const ALL: [DType; 7] = [F32, F16, Bf16, I32, U32, U8, Bool];
        match self {
            Self::None => vec![(None, None)],
            Self::Floats => [F32, F16, Bf16].map(|t| (Some(t), None)).to_vec(),
            Self::All => ALL.map(|t| (Some(t), None)).to_vec(),
            Self::Pairs => ALL.iter().flat_map(|&t| ALL.map(|u| (Some(t), Some(u)))).collect(),
        }
    }
}

/// A source: CUDA C++, which may include `common.cuh` and `graphable.cuh`, or code that needs no compiler.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// Its name in messages.
    pub(crate) name: &'static str,
    /// Its text, empty where there is code.
    pub(crate) text: &'static str,
    /// PTX to its zero byte, or machine code.
    pub(crate) code: Option<&'static [u8]>,
    /// The types that it is compiled for.
    pub(crate) types: Types,
    /// Set if each of its kernels waits for its predecessor before it accesses memory (`in_order()` of
    /// `common.cuh`): only such a kernel may be started while its predecessor ends.
    pub(crate) waits: bool,
    /// Options of the compiler besides those of every source.
    pub(crate) options: &'static [&'static str],
}

impl SourceFile {
    /// One of our own files, whose kernels wait.
    pub(crate) const fn ours(name: &'static str, text: &'static str, types: Types) -> Self {
        Self { name, text, code: None, options: &[], types, waits: true }
    }

    /// A source of a user's: text, or code for the device. Equal ones are one, which is kept for the life of the process.
    pub(crate) fn interned(name: &'static str, content: Vec<u8>, is_code: bool) -> &'static Self {
        type Known = FxHashMap<(&'static [u8], bool), &'static SourceFile>;
        static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        if let Some(source) = known.get(&(&content[..], is_code)) {
            return source;
        }
        let content: &'static [u8] = content.leak();
        // Text was a string; code is not looked at as one.
        let text = if is_code { "" } else { str::from_utf8(content).unwrap_or_default() };
        let code = is_code.then_some(content);
        let source = Self { name, text, code, options: &[], types: Types::None, waits: false };
        let source: &'static Self = Box::leak(Box::new(source));
        known.insert((content, is_code), source);
        source
    }
}

/// Host values and device inputs, scattered to static buffers.
pub(crate) static PUT: SourceFile = SourceFile::ours("put.cu", include_str!("put.cu"), Types::None);
/// The same, with more than 4 KB of them.
pub(crate) static PUT_LARGE: SourceFile =
    SourceFile::ours("put_large.cu", include_str!("put_large.cu"), Types::None);
/// Unary, binary, comparisons, where.
pub(crate) static ELEMENTWISE: SourceFile =
    SourceFile::ours("elementwise.cu", include_str!("elementwise.cu"), Types::All);
/// Between dtypes.
pub(crate) static CAST: SourceFile = SourceFile::ours("cast.cu", include_str!("cast.cu"), Types::Pairs);
/// Copies, padding, filling, joining.
pub(crate) static COPY: SourceFile = SourceFile::ours("copy.cu", include_str!("copy.cu"), Types::None);
/// Embedding, gather, scatter.
pub(crate) static INDEX: SourceFile = SourceFile::ours("index.cu", include_str!("index.cu"), Types::None);
/// Sums, maxima, softmax, norms over any axis.
pub(crate) static REDUCE: SourceFile = SourceFile::ours("reduce.cu", include_str!("reduce.cu"), Types::All);
/// Layer and RMS norm.
pub(crate) static NORM: SourceFile = SourceFile::ours("norm.cu", include_str!("norm.cu"), Types::Floats);
/// Rotary embedding.
pub(crate) static ROPE: SourceFile = SourceFile::ours("rope.cu", include_str!("rope.cu"), Types::Floats);
/// One query against a long cache, split over blocks.
pub(crate) static ATTENTION_DECODE: SourceFile =
    SourceFile::ours("attention_decode.cu", include_str!("attention_decode.cu"), Types::Floats);
/// Many queries, in tiles.
pub(crate) static ATTENTION_PREFILL: SourceFile =
    SourceFile::ours("attention_prefill.cu", include_str!("attention_prefill.cu"), Types::Floats);
/// Matrix products that the library does not take.
pub(crate) static MATMUL: SourceFile = SourceFile::ours("matmul.cu", include_str!("matmul.cu"), Types::All);

/// All of our own files.
pub(crate) static FILES: [&SourceFile; 12] = [
    &PUT,
    &PUT_LARGE,
    &ELEMENTWISE,
    &CAST,
    &COPY,
    &INDEX,
    &REDUCE,
    &NORM,
    &ROPE,
    &ATTENTION_DECODE,
    &ATTENTION_PREFILL,
    &MATMUL,
];

/// Sources are distinguished by their addresses: one that is made at run time is made once and kept, like its
/// code on the device.
impl PartialEq for SourceFile {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }
}

impl Eq for SourceFile {}

impl Hash for SourceFile {
    fn hash<H: Hasher>(&self, to: &mut H) {
        ptr::hash(self, to);
    }
}

/// A source and its types, which are compiled and loaded together.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Unit {
    /// The source.
    pub(crate) source: &'static SourceFile,
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

impl fmt::Debug for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.source.name, self.defines().join(" "))
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
    /// A kernel of a source without types.
    pub(crate) fn plain(source: &'static SourceFile, name: &'static str) -> Self {
        Self { unit: Unit { source, t: None, u: None }, name }
    }

    /// A kernel of one type.
    pub(crate) fn of(source: &'static SourceFile, t: DType, name: &'static str) -> Self {
        Self { unit: Unit { source, t: Some(t), u: None }, name }
    }

    /// A kernel of two types.
    pub(crate) fn of2(source: &'static SourceFile, t: DType, u: DType, name: &'static str) -> Self {
        Self { unit: Unit { source, t: Some(t), u: Some(u) }, name }
    }
}

/// The number of blocks and of their threads.
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
