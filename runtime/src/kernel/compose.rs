//! Kernels for GPUs of which kernels in Rust are parts: their functions, and how a block computes rows for itself.

use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

pub(crate) use super::{cuda::element, instances::Instance};
use super::{
    cuda::{FURTHER, LANGUAGE},
    definition::{Compute, Definition, Rows},
    instances::source,
    rows::{
        cuda::{ROWS, lanes},
        plan::{Packs, Plan},
    },
    source::{Functions, result},
};
use crate::DType;

/// The place of a row that not every block writes, in a kernel of rows.
const MAYBE: &str = "\
namespace rows {
template <typename E> struct Maybe { E* to; };
template <class C, typename E, class R> DEVICE void put(const C& cx, const Maybe<E>& y, const R& row) {
    if (y.to) put(cx, Output<E>{y.to}, row);
}
}  // namespace rows
";

/// The functions of a source, as it grows.
#[derive(Debug, Default)]
pub(crate) struct Composition {
    functions: Functions,
    has_rows: bool,
}

/// The way in which the threads of a block compute some rows at a time.
#[derive(Debug)]
pub(crate) struct RowsOfBlock {
    /// The type of the context in CUDA C++.
    pub(crate) context: String,
    /// Threads of each row.
    pub(crate) threads: usize,
}

impl Composition {
    /// Returns the name of a kernel's function.
    pub(crate) fn function(&mut self, definition: &Definition) -> String {
        self.functions.add(definition)
    }

    /// Returns how `threads` threads compute `count` rows of `size` elements that are stored as `float`, in packs that can be loaded
    /// at once. The order of every reduction is that of the kernel alone.
    pub(crate) fn rows(
        &mut self,
        definition: &Definition,
        rows: &Rows,
        float: DType,
        [count, size]: [usize; 2],
        threads: usize,
    ) -> RowsOfBlock {
        self.has_rows = true;
        let lanes = lanes(definition, rows, float);
        // More than a warp share memory with their whole block, which then has one row.
        // Lanes are divided between a power of two of threads; nine warps are not one.
        let each = if count == 1 { Plan::most_of_piece(lanes).min(1 << threads.ilog2()) } else { 32 };
        let Packs { count, lanes, held, whole } =
            Packs::new(size, lanes, rows.held * rows.value_words, each, 1);
        let context = format!("rows::Cx<{each}, {count}, {lanes}, 1, {held}, {whole}, true>");
        RowsOfBlock { context, threads: each }
    }

    /// Returns the source that consists of `header`, the functions, and `text` with the kernel `entry`. The process keeps it.
    pub(crate) fn instance(
        self,
        name: &'static str,
        header: &str,
        text: &str,
        entry: &str,
    ) -> &'static Instance {
        static KNOWN: Mutex<Option<FxHashMap<String, &'static Instance>>> = Mutex::new(None);
        let rows = if self.has_rows { [ROWS, MAYBE].concat() } else { String::new() };
        let further = if self.functions.further { FURTHER } else { "" };
        let text = format!(
            "#include \"common.cuh\"\n\n{header}\n{LANGUAGE}\n{further}{rows}\n{}\n{text}",
            self.functions.text
        );
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert_default().entry(text).or_insert_with_key(|text| {
            Box::leak(Box::new(Instance { source: source(name, text.clone()), entry: entry.to_owned() }))
        })
    }
}

/// The type in memory of what is computed as `compute`, and stored as `dtype` if it is a float, in CUDA C++.
pub(crate) fn stored(compute: Compute, dtype: DType) -> &'static str {
    element(compute.stored(dtype))
}

/// The type of a kernel's result in CUDA C++.
pub(crate) fn returned(definition: &Definition) -> String {
    result(definition.outputs, "")
}

/// The name of a type in CUDA C++.
pub(crate) fn computed(compute: Compute) -> &'static str {
    compute.name()
}
