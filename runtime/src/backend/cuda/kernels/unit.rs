//! Kernels by name: a source, the types that it is compiled for, a function in it.

use std::{
    fmt,
    hash::{Hash, Hasher},
    ptr,
    sync::{Mutex, PoisonError},
};

use rustc_hash::FxHashMap;

use crate::DType;

/// The types for which CI compiles a source: it says so in a line, as `// Types: floats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::backend::cuda) enum Types {
    /// `none`: it moves words of 1 to 16 bytes, whatever they mean.
    None,
    /// `f32`: `T` is `f32`.
    F32,
    /// `halves`: `T` is a floating-point type of 16 bits.
    Halves,
    /// `floats`: `T` is a floating-point type of at most 32 bits.
    Floats,
    /// `narrow`: `T` is any type of at most 32 bits but `i8`.
    Narrow,
    /// `all`: `T` is any type.
    All,
}

impl Types {
    /// Reads the line of a source that states them.
    pub(in crate::backend::cuda) fn stated_in(text: &str) -> Option<Self> {
        let stated = text.lines().find_map(|line| line.strip_prefix("// Types: "))?;
        match stated.trim() {
            "none" => Some(Self::None),
            "f32" => Some(Self::F32),
            "halves" => Some(Self::Halves),
            "floats" => Some(Self::Floats),
            "narrow" => Some(Self::Narrow),
            "all" => Some(Self::All),
            _ => None,
        }
    }

    /// All combinations.
    pub(in crate::backend::cuda) fn list(self) -> Vec<Option<DType>> {
        use DType::{Bf16, Bool, F16, F32, I32, U8, U32};
        const NARROW: [DType; 7] = [F32, F16, Bf16, I32, U32, U8, Bool];
        match self {
            Self::None => vec![None],
            Self::F32 => vec![Some(F32)],
            Self::Halves => [F16, Bf16].map(Some).to_vec(),
            Self::Floats => [F32, F16, Bf16].map(Some).to_vec(),
            Self::Narrow => NARROW.map(Some).to_vec(),
            Self::All => DType::ALL.map(Some).to_vec(),
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
    /// Set if each of its kernels waits for its predecessor before it accesses memory (`in_order()` of
    /// `common.cuh`): only such a kernel may be started while its predecessor ends.
    pub(crate) waits: bool,
    /// Options of the compiler besides those of every source.
    pub(crate) options: &'static [&'static str],
    /// A header that it shares with other sources of its folder.
    pub(crate) header: Option<Header>,
    /// Set if its kernels are declared by `KERNEL` of `common.cuh`, so that each is compiled and loaded when it is needed,
    /// without the others.
    pub(crate) is_split: bool,
}

/// A file that a source includes by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    /// The name that the source writes in quotes.
    pub(crate) name: &'static str,
    /// Its text.
    pub(crate) text: &'static str,
}

impl SourceFile {
    /// One of our own files, whose kernels wait.
    pub(crate) const fn ours(name: &'static str, text: &'static str) -> Self {
        Self { name, text, code: None, options: &[], header: None, waits: true, is_split: false }
    }

    /// The source, all of whose kernels are declared by `KERNEL`.
    pub(crate) const fn split(self) -> Self {
        assert!(contains(self.text, "KERNEL("), "no kernel is declared by `KERNEL`");
        assert!(!contains(self.text, "__global__"), "a kernel is not declared by `KERNEL`");
        Self { is_split: true, ..self }
    }

    /// The source, which includes a header of its folder.
    pub(crate) const fn with_header(self, name: &'static str, text: &'static str) -> Self {
        Self { header: Some(Header { name, text }), ..self }
    }

    /// The source, compiled with more options: a source of its own.
    pub(crate) const fn with_options(self, options: &'static [&'static str]) -> Self {
        Self { options, ..self }
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
        let source = Self { code, waits: false, ..Self::ours(name, text) };
        let source: &'static Self = Box::leak(Box::new(source));
        known.insert((content, is_code), source);
        source
    }
}

/// `str::contains`, where constants are evaluated.
const fn contains(text: &str, part: &str) -> bool {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    let mut from = 0;
    while from + part.len() <= text.len() {
        let mut same = 0;
        while same < part.len() && text[from + same] == part[same] {
            same += 1;
        }
        if same == part.len() {
            return true;
        }
        from += 1;
    }
    false
}

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

/// What is compiled and loaded together: a source with its type, or one kernel of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Unit {
    /// The source.
    pub(crate) source: &'static SourceFile,
    /// `T` in it.
    pub(crate) t: Option<DType>,
    /// The one kernel that code is made of; `None` for all of them.
    pub(crate) alone: Option<&'static str>,
}

/// An element type, as `common.cuh` spells it.
pub(crate) fn element(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "f32",
        DType::F16 => "f16",
        DType::Bf16 => "bf16",
        DType::I32 => "i32",
        DType::U32 => "u32",
        DType::U8 => "u8",
        DType::Bool => "boolean",
        DType::F64 => "f64",
        DType::I64 => "i64",
        DType::I8 => "i8",
    }
}

impl Unit {
    /// All kernels of a source.
    pub(crate) fn whole(source: &'static SourceFile, t: Option<DType>) -> Self {
        Self { source, t, alone: None }
    }

    /// The macros of its type and of its kernel, as `common.cuh` reads them.
    pub(crate) fn defines(self) -> Vec<String> {
        let mut all = Vec::new();
        if let Some(t) = self.t.map(element) {
            // `T` for the code; `T_f32` for the preprocessor.
            all.extend([format!("-DT={t}"), format!("-DT_{t}=1")]);
        }
        if let Some(name) = self.alone {
            all.extend(["-DALONE=1".to_owned(), format!("-DALONE_{name}=CHOSEN")]);
        }
        all
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
    /// What is compiled for it: its source or only this kernel of it, with the element type.
    pub(crate) unit: Unit,
    /// Its `extern "C"` name.
    pub(crate) name: &'static str,
}

impl Kernel {
    /// A kernel of a source without types.
    pub(crate) fn plain(source: &'static SourceFile, name: &'static str) -> Self {
        Self::within(source, None, name)
    }

    /// A kernel of one type.
    pub(crate) fn of(source: &'static SourceFile, t: DType, name: &'static str) -> Self {
        Self::within(source, Some(t), name)
    }

    fn within(source: &'static SourceFile, t: Option<DType>, name: &'static str) -> Self {
        Self { unit: Unit { source, t, alone: source.is_split.then_some(name) }, name }
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
    /// Blocks along x that form a cluster, beside what the kernel was compiled for: at most
    /// [`DeviceProperties::largest_cluster`](crate::backend::cuda::DeviceProperties::largest_cluster).
    pub(crate) cluster: u32,
}

impl Grid {
    /// `blocks` along x.
    pub(crate) fn line(blocks: u32, threads: u32) -> Self {
        Self { blocks: [blocks, 1, 1], threads, shared: 0, cluster: 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_a_split_source_are_units_of_their_own() {
        static WHOLE: SourceFile = SourceFile::ours("whole.cu", "");
        static SPLIT: SourceFile = SourceFile::ours("split.cu", "KERNEL(one)() {} KERNEL(two)() {}").split();
        assert_eq!(Kernel::plain(&WHOLE, "one").unit, Kernel::plain(&WHOLE, "two").unit);
        assert_ne!(Kernel::plain(&SPLIT, "one").unit, Kernel::plain(&SPLIT, "two").unit);
        assert!(
            Kernel::of(&WHOLE, DType::F32, "one")
                .unit
                .defines()
                .iter()
                .all(|define| !define.contains("ALONE"))
        );
        assert_eq!(
            Kernel::of(&SPLIT, DType::F32, "one").unit.defines(),
            ["-DT=f32", "-DT_f32=1", "-DALONE=1", "-DALONE_one=CHOSEN"]
        );
    }

    #[test]
    fn a_source_states_its_types_in_a_line() {
        assert_eq!(
            Types::stated_in("// Rows.\n// Types: floats\n#include \"common.cuh\"\n"),
            Some(Types::Floats)
        );
        assert_eq!(Types::stated_in("// Types: all").map(|types| types.list().len()), Some(10));
        assert_eq!(Types::stated_in("// Types: narrow").map(|types| types.list().len()), Some(7));
        assert_eq!(Types::stated_in("// Types: halves").map(|types| types.list().len()), Some(2));
        assert_eq!(Types::stated_in("// Types: f32").map(Types::list), Some(vec![Some(DType::F32)]));
        assert_eq!(Types::stated_in("// Types: some"), None);
        assert_eq!(Types::stated_in("int x;  // Types: all"), None);
    }
}
