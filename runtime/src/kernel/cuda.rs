//! A kernel on a GPU: its text, made a kernel for the types of the tensors, and launched.

use std::{any::TypeId, fmt::Write as _};

use smallvec::SmallVec;

use super::{
    definition::{Compute, Definition, Kind},
    index,
    instances::{self, Instance, Instances},
    operation::Constants,
    random::{NUMBERS, draws::Draws},
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
    /// Set if the place of a random number depends on a padded dimension.
    padded: bool,
}

/// The driver's limit.
const MOST_BLOCKS: u64 = i32::MAX as u64;

type Floats = SmallVec<[DType; 4]>;

static INSTANCES: Instances<Variant> = Instances::new();

fn instance(definition: &Definition, floats: Floats, fixed: u32, padded: bool) -> &'static Instance {
    let variant = Variant { id: definition.id, floats, fixed, padded };
    INSTANCES.of(definition, variant, |variant| text(&Map::new(definition, &variant.floats, fixed, padded)))
}

/// Compiles a kernel whose floats are stored as `T` for an architecture (`sm_90a`), without a GPU, and returns the compiler's
/// remarks.
///
/// # Errors
/// [`Error::NoDevice`](crate::Error::NoDevice) without the compiler; [`Error::Device`](crate::Error::Device) with its log.
pub fn compile<T: Float>(definition: &Definition, arch: &str) -> Result<String> {
    match &definition.kind {
        Kind::Elements => {
            let floats = floats_of(definition, T::DTYPE);
            compile_source(&instance(definition, floats, 0, draws(definition)).source, arch)
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

/// Returns whether a parameter is a random number.
fn draws(definition: &Definition) -> bool {
    definition.inputs.iter().any(|(_, compute)| *compute == Compute::Random)
}

/// A launch: its kernel, and what its inputs are.
struct Mapped<'l> {
    definition: &'l Definition,
    constants: &'l Constants,
    draws: Option<&'l Draws>,
    tensors: &'l [View],
    generators: &'l [View],
    real: &'l [View],
    outputs: &'l [View],
}

/// Launches a kernel; `constants` is empty if no parameter is a number, and it draws if one is a random number.
pub(super) fn launch(
    definition: &Definition,
    constants: &Constants,
    draws: Option<&Draws>,
    gpu: &mut dyn Submit,
    launch: &Launch,
) -> Result<()> {
    let [tensors, generators, real] = match draws {
        Some(draws) => draws.split(definition, constants, &launch.inputs),
        None => [&launch.inputs[..], &[], &[]],
    };
    let outputs = &launch.outputs[..];
    let mapped = Mapped { definition, constants, draws, tensors, generators, real, outputs };
    match tensors.len() {
        0 | 1 => of::<1>(&mapped, gpu),
        2 => of::<2>(&mapped, gpu),
        3 | 4 => of::<4>(&mapped, gpu),
        5..=8 => of::<8>(&mapped, gpu),
        _ => of::<16>(&mapped, gpu),
    }
}

impl Mapped<'_> {
    /// The tensors that are read, then those that are written.
    fn views(&self) -> impl Iterator<Item = &View> {
        self.tensors.iter().chain(self.outputs)
    }

    /// A bit for each parameter that is a number.
    fn fixed(&self) -> u32 {
        let numbers = self.constants.iter().enumerate();
        numbers.fold(0, |bits, (i, constant)| bits | u32::from(constant.is_some()) << i)
    }

    fn instance(&self) -> &'static Instance {
        let fixed = self.fixed();
        let computes = tensors(self.definition, fixed).chain(self.definition.outputs.iter().copied());
        let floats = computes.zip(self.views()).filter(|(compute, _)| *compute == Compute::F32);
        let padded = self.draws.is_some_and(|draws| !draws.padded.is_empty());
        instance(self.definition, floats.map(|(_, view)| view.dtype).collect(), fixed, padded)
    }

    /// The words about random numbers: mirrors the fields of `MapParams` that [`Map::parameter`] writes for them.
    fn numbers(&self) -> SmallVec<[u64; 16]> {
        let mut words: SmallVec<[u64; 16]> = self.generators.iter().map(|view| view.addr).collect();
        let Some(draws) = self.draws else { return words };
        words.extend(draws.ahead.iter().map(|ahead| u64::from(*ahead)));
        if draws.padded.is_empty() {
            return words;
        }
        let shape = self.outputs.first().map_or(&[][..], |view| view.layout.shape());
        let (mut sizes, mut real) = ([1; MAX_RANK], [0; MAX_RANK]);
        for (to, size) in sizes.iter_mut().zip(shape) {
            *to = *size as u64;
        }
        for (axis, view) in draws.padded.axes().zip(self.real) {
            real[axis] = view.addr;
        }
        words.push(shape.len() as u64);
        words.extend(sizes);
        words.extend(real);
        words
    }
}

/// The types of the parameters that are tensors; those in `fixed` are numbers.
fn tensors(definition: &Definition, fixed: u32) -> impl Iterator<Item = Compute> {
    let all = definition.inputs.iter().enumerate();
    all.filter(move |(i, (_, compute))| fixed & 1 << i == 0 && *compute != Compute::Random)
        .map(|(_, (_, compute))| *compute)
}

/// With at most `N` tensors.
fn of<const N: usize>(launch: &Mapped<'_>, gpu: &mut dyn Submit) -> Result<()> {
    let Some(first) = launch.outputs.first() else { return Ok(()) };
    let views = || launch.views();
    let none = [0; MAX_RANK];
    let rank = first.layout.shape().len();
    let strides: [&[usize]; N] = std::array::from_fn(|i| match launch.tensors.get(i) {
        Some(view) => view.layout.strides(),
        None => &none[..rank],
    });
    let walk = Walk::new(first.layout.shape(), strides);
    let lanes = 16 / views().map(|view| view.dtype.size()).max().unwrap_or(1) as u64;
    let operands: [(u64, u64); N] = std::array::from_fn(|i| match launch.tensors.get(i) {
        Some(view) => (view.addr, view.dtype.size() as u64),
        None => (0, 1),
    });
    let aligned = |view: &View| view.addr.is_multiple_of(lanes * view.dtype.size() as u64);
    let packed = walk.in_packs(lanes, operands).filter(|_| launch.outputs.iter().all(aligned));
    let (walk, packs) = match packed {
        Some(walk) => (walk, true),
        None => (walk, false),
    };
    let instance = launch.instance();

    // Mirrors `MapParams`, all of whose fields are words.
    let mut words: SmallVec<[u64; 64]> = views().map(|view| view.addr).collect();
    words.extend([first.layout.count() as u64, walk.count(), packs.into()]);
    words.extend(launch.numbers());
    words.extend(launch.constants.iter().flatten().map(|number| u64::from(number.bits)));
    let dims: [u64; 7] = bytemuck::cast::<Dims, _>(walk.dims());
    words.extend(dims);
    words.extend(walk.strides().into_iter().take(launch.tensors.len()).flatten());
    // A pass for each thread: blocks that loop leave the last ones alone at the end, which costs up to a tenth.
    let blocks = walk.count().div_ceil(u64::from(THREADS)).clamp(1, MOST_BLOCKS) as u32;
    let grid = Grid::line(blocks, THREADS);
    gpu.submit_bytes(Kernel::plain(&instance.source, &instance.entry), grid, bytemuck::cast_slice(&words))
}

/// The source of a kernel and the name of its entry.
fn text(map: &Map<'_>) -> (String, String) {
    let mut functions = Functions::default();
    let name = functions.add(map.definition);
    let mut text = before(draws(map.definition));
    let _ = writeln!(text, "{}", functions.text);
    let entry = map.kernel(&mut text, &name);
    (entry, text)
}

/// What precedes the functions of kernels, some of which may draw random numbers.
fn before(draws: bool) -> String {
    let numbers = if draws { NUMBERS } else { "" };
    format!("#include \"common.cuh\"\n\n{LANGUAGE}\n{numbers}")
}

/// The source of several kernels whose floats are stored as `float`.
fn text_of_all(definitions: &[&Definition], float: DType) -> String {
    let mut functions = Functions::default();
    let mut kernels = String::new();
    for (i, definition) in definitions.iter().enumerate() {
        let name = functions.add(definition);
        // Each has a parameter and a loop of its own.
        let _ = writeln!(kernels, "namespace kernel_{i} {{");
        let floats = floats_of(definition, float);
        Map::new(definition, &floats, 0, draws(definition)).kernel(&mut kernels, &name);
        kernels.push_str("}\n");
    }
    let before = before(definitions.iter().any(|definition| draws(definition)));
    format!("{before}{}\n{kernels}", functions.text)
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
    /// Set if the place of a random number depends on a padded dimension.
    padded: bool,
    /// The tensors among the parameters.
    inputs: Vec<Stored>,
    outputs: Vec<Stored>,
}

impl<'a> Map<'a> {
    fn new(definition: &'a Definition, floats: &[DType], fixed: u32, padded: bool) -> Self {
        let mut floats = floats.iter();
        let mut stored = |compute: Compute| in_memory(compute, &mut floats);
        let inputs = tensors(definition, fixed).map(&mut stored).collect();
        let outputs = definition.outputs.iter().map(|&compute| stored(compute)).collect();
        Self { definition, fixed, padded, inputs, outputs }
    }

    /// Number of parameters that are random numbers.
    fn numbers(&self) -> usize {
        self.definition.inputs.iter().filter(|(_, compute)| *compute == Compute::Random).count()
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
        text.push_str("struct MapParams {\n");
        // C++ has no arrays without elements.
        if n > 0 {
            let _ = writeln!(text, "    u64 x[{n}];");
        }
        let _ = write!(text, "    u64 y[{m}];\n    u64 count;\n    u64 packs;\n    u64 packed;\n");
        if self.numbers() > 0 {
            let _ = write!(text, "    u64 generators[{0}];\n    u64 ahead[{0}];\n", self.numbers());
        }
        if self.padded {
            text.push_str("    lang::Unpadded unpadded;\n");
        }
        if constants > 0 {
            let _ = writeln!(text, "    u64 constants[{constants}];");
        }
        text.push_str("    Dims dims;\n");
        if n > 0 {
            let _ = writeln!(text, "    u64 strides[{n}][MAX_RANK];");
        }
        text.push_str("};\n\n");
    }

    /// The loop, a function of the parameter, in which each element is the function `name` of the inputs' elements.
    fn body(&self, text: &mut String, name: &str) {
        text.push_str("template <int V> DEVICE void map(const MapParams& p) {\n");
        let arguments = self.arguments(text);
        let n = self.inputs.len();
        text.push_str(
            "    for (u64 n = (u64)blockIdx.x * blockDim.x + threadIdx.x; n < p.packs; n += (u64)gridDim.x * blockDim.x) {\n",
        );
        if n > 0 {
            let _ = write!(text, "        u64 at[{n}];\n        locate<{n}>(p.dims, p.strides, n, at);\n");
        }
        text.push_str("        const u64 left = p.count - n * V;\n");
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
        text.push_str("#pragma unroll\n        for (int i = 0; i < V; ++i) {\n");
        if self.numbers() > 0 {
            let index = if self.padded { "lang::unpadded(p.unpadded, n * V + i)" } else { "n * V + i" };
            let _ = writeln!(text, "            const u64 index = {index};");
        }
        let _ = writeln!(text, "            const {result} r = {name}({arguments});");
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
        let (mut constant, mut tensor, mut number) = (0, 0, 0);
        for (i, (_, compute)) in self.definition.inputs.iter().enumerate() {
            if *compute == Compute::Random {
                let _ = writeln!(
                    text,
                    "    const lang::Generator g{number} = lang::generator(p.generators[{number}], p.ahead[{number}]);"
                );
                arguments.push(format!("lang::number(g{number}, index)"));
                number += 1;
                continue;
            }
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
pub(crate) fn element(dtype: DType) -> &'static str {
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
