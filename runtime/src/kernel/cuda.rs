//! A kernel on a GPU: its text, made a kernel for the types of the tensors, and launched.

use std::{any::TypeId, fmt::Write as _};

use smallvec::SmallVec;

use super::{
    definition::{Compute, Definition, Kind},
    index,
    instances::{self, Instance, Instances},
    operation::Constants,
    rows,
    source::{Functions, result},
};
use crate::{
    DType, Float, Result,
    backend::{
        Launch, View,
        cuda::compile_source,
        cuda::kernels::{Dims, Grid, Kernel, Submit, THREADS, Walk},
    },
    base::rank::MAX_RANK,
};

#[cfg(test)]
mod tests;

/// The source of operators and methods in CUDA C++.
pub(super) const LANGUAGE: &str = include_str!("language.cuh");

/// A kernel for certain element types of floats, with numbers for some parameters.
#[derive(PartialEq, Eq, Hash)]
struct Variant {
    id: TypeId,
    /// Of each tensor that is computed in f32, results last.
    floats: Floats,
    /// A bit for each parameter that is a number.
    fixed: u32,
}

/// The driver's limit.
const MOST_BLOCKS: u64 = i32::MAX as u64;

type Floats = SmallVec<[DType; 4]>;

static INSTANCES: Instances<Variant> = Instances::new();

fn instance(definition: &Definition, floats: Floats, fixed: u32) -> &'static Instance {
    let variant = Variant { id: definition.id, floats, fixed };
    INSTANCES.of(definition, variant, |variant| text(definition, &variant.floats, fixed))
}

/// Compiles a kernel whose floats are stored as `T` for an architecture (`sm_90a`), without a GPU, and returns the compiler's
/// remarks.
///
/// # Errors
/// [`Error::NoDevice`](crate::Error::NoDevice) without the compiler; [`Error::Device`](crate::Error::Device) with its log.
pub fn compile<T: Float>(definition: &Definition, arch: &str) -> Result<String> {
    match &definition.kind {
        Kind::Elements => {
            compile_source(&instance(definition, floats_of(definition, T::DTYPE), 0).source, arch)
        }
        Kind::Rows(rows) => rows::cuda::samples(definition, rows, T::DTYPE, arch)
            .map(|source| compile_source(source, arch))
            .collect(),
        Kind::Index(index) => index::cuda::samples(definition, index, T::DTYPE)
            .map(|source| compile_source(source, arch))
            .collect(),
    }
}

/// Compiles element-wise kernels together, as [`compile`] does each: much of the compiler's time is for what precedes them.
///
/// # Errors
/// As for [`compile`].
pub fn compile_all<T: Float>(definitions: &[&Definition], arch: &str) -> Result<String> {
    let source = instances::source("several kernels", text_of_all(definitions, T::DTYPE));
    compile_source(Box::leak(Box::new(source)), arch)
}

/// Launches a kernel; `constants` is empty if every parameter is a tensor.
pub(super) fn launch(
    definition: &Definition,
    constants: &Constants,
    gpu: &mut dyn Submit,
    launch: &Launch,
) -> Result<()> {
    match launch.inputs.len() {
        0 | 1 => of::<1>(definition, constants, gpu, launch),
        2 => of::<2>(definition, constants, gpu, launch),
        3 | 4 => of::<4>(definition, constants, gpu, launch),
        5..=8 => of::<8>(definition, constants, gpu, launch),
        _ => of::<16>(definition, constants, gpu, launch),
    }
}

/// With at most `N` tensors.
fn of<const N: usize>(
    definition: &Definition,
    constants: &Constants,
    gpu: &mut dyn Submit,
    launch: &Launch,
) -> Result<()> {
    let Some(first) = launch.outputs.first() else { return Ok(()) };
    let none = [0; MAX_RANK];
    let rank = first.layout.shape().len();
    let strides: [&[usize]; N] = std::array::from_fn(|i| match launch.inputs.get(i) {
        Some(view) => view.layout.strides(),
        None => &none[..rank],
    });
    let walk = Walk::new(first.layout.shape(), strides);
    let views = || launch.inputs.iter().chain(&launch.outputs);
    let lanes = 16 / views().map(|view| view.dtype.size()).max().unwrap_or(1) as u64;
    let operands: [(u64, u64); N] = std::array::from_fn(|i| match launch.inputs.get(i) {
        Some(view) => (view.addr, view.dtype.size() as u64),
        None => (0, 1),
    });
    let aligned = |view: &View| view.addr.is_multiple_of(lanes * view.dtype.size() as u64);
    let packed = walk.in_packs(lanes, operands).filter(|_| launch.outputs.iter().all(aligned));
    let (walk, packs) = match packed {
        Some(walk) => (walk, true),
        None => (walk, false),
    };
    let fixed = constants.iter().enumerate().fold(0, |bits, (i, c)| bits | u32::from(c.is_some()) << i);
    let tensors = definition.inputs.iter().enumerate().filter(|(i, _)| fixed & 1 << i == 0);
    let computes = tensors.map(|(_, (_, compute))| compute).chain(definition.outputs);
    let floats = computes.zip(views()).filter(|(compute, _)| **compute == Compute::F32);
    let instance = instance(definition, floats.map(|(_, view)| view.dtype).collect(), fixed);

    // Mirrors `MapParams`, all of whose fields are words.
    let mut words: SmallVec<[u64; 64]> = views().map(|view| view.addr).collect();
    words.extend([first.layout.count() as u64, walk.count(), packs.into()]);
    words.extend(constants.iter().flatten().map(|number| u64::from(number.bits)));
    let dims: [u64; 7] = bytemuck::cast::<Dims, _>(walk.dims());
    words.extend(dims);
    words.extend(walk.strides().into_iter().take(launch.inputs.len()).flatten());
    // A pass for each thread: blocks that loop leave the last ones alone at the end, which costs up to a tenth.
    let blocks = walk.count().div_ceil(u64::from(THREADS)).clamp(1, MOST_BLOCKS) as u32;
    let grid = Grid::line(blocks, THREADS);
    gpu.submit_bytes(Kernel::plain(&instance.source, &instance.entry), grid, bytemuck::cast_slice(&words))
}

/// The source of a kernel and the name of its entry; parameters in `fixed` are numbers.
fn text(definition: &Definition, floats: &[DType], fixed: u32) -> (String, String) {
    let mut functions = Functions::default();
    let name = functions.add(definition);
    let mut text = format!("#include \"common.cuh\"\n\n{LANGUAGE}\n{}\n", functions.text);
    let entry = Map::new(definition, floats, fixed).kernel(&mut text, &name);
    (entry, text)
}

/// The source of several kernels whose floats are stored as `float`.
fn text_of_all(definitions: &[&Definition], float: DType) -> String {
    let mut functions = Functions::default();
    let mut kernels = String::new();
    for (i, definition) in definitions.iter().enumerate() {
        let name = functions.add(definition);
        // Each has a parameter and a loop of its own.
        let _ = writeln!(kernels, "namespace kernel_{i} {{");
        Map::new(definition, &floats_of(definition, float), 0).kernel(&mut kernels, &name);
        kernels.push_str("}\n");
    }
    format!("#include \"common.cuh\"\n\n{LANGUAGE}\n{}\n{kernels}", functions.text)
}

/// The types of the tensors that are computed in f32, all stored as `float`.
fn floats_of(definition: &Definition, float: DType) -> Floats {
    let all = definition.inputs.iter().map(|(_, compute)| compute).chain(definition.outputs);
    all.filter(|compute| **compute == Compute::F32).map(|_| float).collect()
}

/// The text of a loop over packs of elements.
struct Map<'a> {
    definition: &'a Definition,
    /// A bit for each parameter that is a number.
    fixed: u32,
    /// The tensors among the parameters.
    inputs: Vec<Stored>,
    outputs: Vec<Stored>,
}

impl<'a> Map<'a> {
    fn new(definition: &'a Definition, floats: &[DType], fixed: u32) -> Self {
        let mut floats = floats.iter();
        let mut stored = |compute: Compute| in_memory(compute, &mut floats);
        let tensors = definition.inputs.iter().enumerate().filter(|(i, _)| fixed & 1 << i == 0);
        let inputs = tensors.map(|(_, (_, compute))| stored(*compute)).collect();
        let outputs = definition.outputs.iter().map(|&compute| stored(compute)).collect();
        Self { definition, fixed, inputs, outputs }
    }

    /// Writes the kernel whose function for one element is `name`, and returns the name of its entry.
    fn kernel(&self, text: &mut String, name: &str) -> String {
        self.parameter(text);
        self.body(text, name);
        let largest = self.inputs.iter().chain(&self.outputs).map(|stored| stored.size).max().unwrap_or(1);
        let (entry, lanes) = (format!("{name}_map"), 16 / largest);
        let _ = writeln!(
            text,
            "extern \"C\" __global__ void __launch_bounds__(256) {entry}(const __grid_constant__ MapParams p) {{ in_order();\n    \
             if (p.packed) map<{lanes}>(p);\n    else map<1>(p);\n}}"
        );
        entry
    }

    /// The kernel's parameter.
    fn parameter(&self, text: &mut String) {
        let (n, m, constants) = (self.inputs.len(), self.outputs.len(), self.fixed.count_ones());
        let _ = write!(
            text,
            "struct MapParams {{\n    u64 x[{n}];\n    u64 y[{m}];\n    u64 count;\n    u64 packs;\n    u64 packed;\n"
        );
        if constants > 0 {
            let _ = writeln!(text, "    u64 constants[{constants}];");
        }
        let _ = writeln!(text, "    Dims dims;\n    u64 strides[{n}][MAX_RANK];\n}};\n");
    }

    /// The loop, a function of the parameter, in which each element is the function `name` of the inputs' elements.
    fn body(&self, text: &mut String, name: &str) {
        text.push_str("template <int V> DEVICE void map(const MapParams& p) {\n");
        let arguments = self.arguments(text);
        let n = self.inputs.len();
        let _ = write!(
            text,
            "    for (u64 n = (u64)blockIdx.x * blockDim.x + threadIdx.x; n < p.packs; n += (u64)gridDim.x * blockDim.x) {{\n        \
             u64 at[{n}];\n        locate<{n}>(p.dims, p.strides, n, at);\n        const u64 left = p.count - n * V;\n"
        );
        for (k, Stored { name, .. }) in self.inputs.iter().enumerate() {
            let _ = write!(
                text,
                "        Pack<{name}, V> x{k};\n        \
                 load_pack<{name}, V>(x{k}, p.x[{k}], at[{k}], V > 1 && p.strides[{k}][0] == 0, left);\n"
            );
        }
        for (k, Stored { name, .. }) in self.outputs.iter().enumerate() {
            let _ = writeln!(text, "        Pack<{name}, V> y{k};");
        }
        let result = result(self.definition.outputs, "");
        let _ = write!(
            text,
            "#pragma unroll\n        for (int i = 0; i < V; ++i) {{\n            const {result} r = {name}({arguments});\n"
        );
        for (k, Stored { name, .. }) in self.outputs.iter().enumerate() {
            let part = if self.outputs.len() > 1 { format!(".v{k}") } else { String::new() };
            let _ = writeln!(text, "            y{k}.v[i] = lang::Write<{name}>::of(r{part});");
        }
        text.push_str("        }\n");
        for (k, Stored { name, .. }) in self.outputs.iter().enumerate() {
            let _ = writeln!(text, "        store_pack<{name}, V>(y{k}, p.y[{k}], n * V, left);");
        }
        text.push_str("    }\n}\n\n");
    }

    /// Declares the numbers among the parameters, and returns the arguments of the function for one element.
    fn arguments(&self, text: &mut String) -> String {
        let mut arguments = Vec::new();
        let (mut constant, mut tensor) = (0, 0);
        for (i, (_, compute)) in self.definition.inputs.iter().enumerate() {
            if self.fixed & 1 << i == 0 {
                arguments.push(format!("lang::read(x{tensor}.v[i])"));
                tensor += 1;
                continue;
            }
            let ty = compute.name();
            let _ = writeln!(
                text,
                "    const {ty} c{constant} = lang::Bits<{ty}>::of((u32)p.constants[{constant}]);"
            );
            arguments.push(format!("c{constant}"));
            constant += 1;
        }
        arguments.join(", ")
    }
}

/// As `common.cuh` spells it.
pub(super) fn element(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "f32",
        DType::F16 => "f16",
        DType::Bf16 => "bf16",
        DType::I32 => "i32",
        DType::U32 => "u32",
        DType::U8 => "u8",
        DType::Bool => "boolean",
    }
}

/// A type in memory, as `common.cuh` spells it.
struct Stored {
    name: &'static str,
    size: usize,
}

/// The type in memory of elements that are computed as `compute`; of those in f32, the next of `floats`.
fn in_memory<'a>(compute: Compute, floats: &mut impl Iterator<Item = &'a DType>) -> Stored {
    let float = if compute == Compute::F32 { floats.next() } else { None };
    let dtype = compute.stored(*float.unwrap_or(&DType::F16));
    let name = if compute == Compute::U16 { "u16" } else { element(dtype) };
    Stored { name, size: dtype.size() }
}
