//! A kernel of indices on a GPU: each thread computes one element, or several that are next to each other or a block apart.

use std::{any::TypeId, fmt::Write as _};

use smallvec::SmallVec;

use super::{
    super::{
        cuda::{before, draws, element, map::number},
        definition::{Compute, Definition, Index},
        instances::{Instance, Instances},
        source::{Functions, result},
    },
    operation::{Kernel, Owner, PaddedDim},
};
use crate::{
    DType, Result,
    backend::{
        Launch, View,
        cuda::kernels::{Grid, Kernel as Entry, SourceFile, Submit, THREADS},
    },
};

#[cfg(test)]
mod tests;

/// The source of views in CUDA C++.
const VIEWS: &str = include_str!("index.cuh");

/// Elements of a thread, whose reads overlap; one if it has loops. 16 bytes hold so many of every type of at most 32 bits.
const SEVERAL: u32 = 4;

/// The driver's limit.
const MOST_BLOCKS: u64 = i32::MAX as u64;

/// Numbers of elements and offsets that a 32-bit word is used for.
const NARROW: usize = 1 << 31;

/// A kernel for one element type of floats, with numbers for some parameters.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Variant {
    id: TypeId,
    float: DType,
    /// A bit for each parameter that is a number.
    fixed: u32,
    /// Set if a number or an offset may not fit in 31 bits.
    wide: bool,
    /// Set if a dimension is padded.
    padded: bool,
    /// Set if the elements of a thread are next to each other.
    whole: bool,
}

static INSTANCES: Instances<Variant> = Instances::new();

fn instance(definition: &Definition, index: &Index, variant: Variant) -> &'static Instance {
    INSTANCES.of(definition.name, variant, |variant| text(definition, index, *variant))
}

/// The sources of a kernel whose floats are stored as `float`, one of each sort.
pub(in crate::kernel) fn samples(
    definition: &Definition,
    index: &Index,
    float: DType,
) -> impl Iterator<Item = &'static SourceFile> {
    [(false, false, true), (false, true, true), (true, true, false)]
        .map(|(wide, padded, whole)| Variant { id: definition.id, float, fixed: 0, wide, padded, whole })
        .map(|variant| &instance(definition, index, variant).source)
        .into_iter()
}

/// Elements that a thread computes at once.
fn per_thread(definition: &Definition, index: &Index) -> u32 {
    let is_wide = |compute: &Compute| compute.stored(DType::F32).size() > 4;
    match index.straight {
        true if definition.outputs.iter().any(is_wide) => SEVERAL / 2,
        true => SEVERAL,
        false => 1,
    }
}

/// Launches a kernel.
pub(super) fn launch(kernel: &Kernel<'_>, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
    let Kernel { definition, index, constants, padded, ahead } = *kernel;
    let Some(first) = launch.outputs.first() else { return Ok(()) };
    let count = first.layout.count();
    if count == 0 {
        return Ok(());
    }
    let [tensors, generators, counts] = kernel.split(launch);
    let fixed = constants.iter().enumerate().fold(0, |bits, (i, c)| bits | u32::from(c.is_some()) << i);
    let views = || tensors.iter().chain(&launch.outputs);
    let float = views().map(|view| view.dtype).find(|dtype| dtype.is_computed_in_f32()).unwrap_or(DType::F32);
    let wide = views().any(|view| view.layout.span() >= NARROW);
    let whole = are_whole(definition, index, &launch.outputs);
    let variant = Variant { id: definition.id, float, fixed, wide, padded: !padded.is_empty(), whole };
    let instance = instance(definition, index, variant);

    // Mirrors `IndexParams`, all of whose fields are words.
    let real = |of, axis| real(padded, counts, of, axis);
    let mut words: SmallVec<[u64; 64]> = views().map(|view| view.addr).collect();
    let sink = gpu.faults();
    words.extend([count as u64, sink.fault, sink.claim, gpu.fault_op(definition.name).into()]);
    words.extend(constants.iter().flatten().map(|number| number.bits));
    words.extend(generators.iter().map(|view| view.addr));
    words.extend(ahead.iter().map(|ahead| u64::from(*ahead)));
    let shape = first.layout.shape();
    let divisors: SmallVec<[Divisor; 6]> = shape.iter().map(|size| Divisor::new(*size)).collect();
    words.extend(shape.iter().map(|size| *size as u64));
    words.extend(divisors.iter().map(|divisor| u64::from(divisor.multiplier)));
    words.extend(divisors.iter().map(|divisor| u64::from(divisor.shift)));
    words.extend((0..shape.len()).map(|axis| real(Owner::Results, axis)));
    let ranks = index
        .views
        .iter()
        .enumerate()
        .filter(|(i, _)| is_tensor(definition, fixed, *i))
        .map(|(_, rank)| rank);
    for (i, (view, _)) in tensors.iter().zip(ranks).enumerate().filter(|(_, (_, rank))| rank.is_some()) {
        words.extend(view.layout.shape().iter().map(|size| *size as u64));
        words.extend(view.layout.strides().iter().map(|stride| *stride as u64));
        words.extend((0..view.layout.rank()).map(|axis| real(Owner::Input(i as u8), axis)));
    }
    let each = u64::from(THREADS * per_thread(definition, index));
    let blocks = (count as u64).div_ceil(each).clamp(1, MOST_BLOCKS) as u32;
    let entry = Entry::plain(&instance.source, &instance.entry);
    gpu.submit_bytes(entry, Grid::line(blocks, THREADS), bytemuck::cast_slice(&words))
}

/// Returns whether a parameter is a tensor, and neither a number nor a random number.
fn is_tensor(definition: &Definition, fixed: u32, parameter: usize) -> bool {
    let is_random = definition.inputs.get(parameter).is_some_and(|(_, compute)| *compute == Compute::Random);
    fixed & 1 << parameter == 0 && !is_random
}

/// Returns whether what a thread computes never spans two rows of the last dimension, and can be stored at once.
fn are_whole(definition: &Definition, index: &Index, outputs: &[View]) -> bool {
    let each = per_thread(definition, index) as usize;
    let is_whole = |view: &View| {
        let last = view.layout.shape().last().copied().unwrap_or(1);
        last.is_multiple_of(each) && view.addr.is_multiple_of((each * view.dtype.size()) as u64)
    };
    each > 1 && outputs.iter().all(is_whole)
}

/// The address of a dimension's real size; 0 if it is not padded.
fn real(padded: &[PaddedDim], counts: &[View], of: Owner, axis: usize) -> u64 {
    let found = padded.iter().find(|padded| padded.of == of && usize::from(padded.axis) == axis);
    found.and_then(|padded| counts.get(usize::from(padded.count))).map_or(0, |view| view.addr)
}

/// Division of a number below 2³¹: the factor, and the shift of the upper half of the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Divisor {
    /// 0 for 1, by which nothing need be divided.
    multiplier: u32,
    shift: u32,
}

impl Divisor {
    /// By a size below 2³¹.
    fn new(size: usize) -> Self {
        if size <= 1 {
            return Self { multiplier: 0, shift: 0 };
        }
        let size = size as u64;
        // 2^(31 + bits) / size, rounded up: it is larger than the quotient by less than 1 / size for every such number.
        let bits = (size - 1).ilog2() + 1;
        let multiplier = (1u64 << (31 + bits)).div_ceil(size);
        Self { multiplier: multiplier as u32, shift: bits - 1 }
    }
}

/// The source of a variant, and the name of its entry.
fn text(definition: &Definition, index: &Index, variant: Variant) -> (String, String) {
    let Variant { fixed, wide, .. } = variant;
    let mut functions = Functions::default();
    let name = functions.add(definition);
    let entry = format!("{name}_index");
    let is_random = draws(definition);
    let mut text = format!("{}\n{VIEWS}\n{}\n", before(is_random, functions.further), functions.text);
    params(&mut text, definition, index, fixed);
    let word = if wide { "u64" } else { "u32" };
    let all = THREADS * per_thread(definition, index);
    // ptxas aims at more blocks by itself, and spills registers to reach them: of the longest kernels that draw, and of those of
    // `f64`, whose functions are long.
    let bounds = if is_random || functions.further { ", 3" } else { "" };
    let _ = write!(
        text,
        "extern \"C\" __global__ void __launch_bounds__({THREADS}{bounds}) {entry}(const __grid_constant__ IndexParams p) {{ in_order();\n    \
         const {word} count = ({word})p.count, step = ({word})gridDim.x * {all};\n    views::Cx cx;\n",
    );
    let arguments = arguments(&mut text, definition, index, variant);
    let call = format!("{name}({arguments})");
    match variant.whole {
        true => neighbours(&mut text, definition, index, variant, &call),
        false => apart(&mut text, definition, index, variant, &call),
    }
    text.push_str("    if (cx.failed) report(p.sink, (u32)p.op, cx.index, cx.bound);\n}\n");
    (entry, text)
}

/// The loop whose threads compute elements that are next to each other, in one row of the last dimension: what depends on the
/// other dimensions is computed once.
fn neighbours(text: &mut String, definition: &Definition, index: &Index, variant: Variant, call: &str) {
    let (rank, each, word) =
        (index.rank, per_thread(definition, index), if variant.wide { "u64" } else { "u32" });
    let (padded, result) = (variant.padded, result(definition.outputs, ""));
    let _ = write!(
        text,
        "    for ({word} first = (({word})blockIdx.x * {THREADS} + threadIdx.x) * {each}; first < count; first += step) {{\n        \
         u32 at[{rank}];\n        views::split(p.out, first, at);\n"
    );
    for (k, (stored, _)) in stored(definition, variant).enumerate() {
        let _ = writeln!(text, "        Pack<{stored}, {each}> y{k};");
    }
    let _ = write!(
        text,
        "#pragma unroll\n        for (u32 v = 0; v < {each}; ++v) {{\n            \
         {result} r = {result}();\n            if (views::is_real<{padded}>(p.out, at)) r = {call};\n"
    );
    for (k, (stored, part)) in stored(definition, variant).enumerate() {
        let _ = writeln!(text, "            y{k}.v[v] = lang::Write<{stored}>::of(r{part});");
    }
    let _ = writeln!(text, "            ++at[{}];\n        }}", rank - 1);
    for (k, (stored, _)) in stored(definition, variant).enumerate() {
        let _ = writeln!(
            text,
            "        *(Raw<sizeof({stored}) * {each}>*)(({stored}*)p.y[{k}] + first) = y{k}.raw;"
        );
    }
    text.push_str("    }\n");
}

/// The loop whose threads compute elements that are a block apart, in any rows.
fn apart(text: &mut String, definition: &Definition, index: &Index, variant: Variant, call: &str) {
    let (rank, each, word) =
        (index.rank, per_thread(definition, index), if variant.wide { "u64" } else { "u32" });
    let (padded, result) = (variant.padded, result(definition.outputs, ""));
    let _ = write!(
        text,
        "    for ({word} first = ({word})blockIdx.x * {all} + threadIdx.x; first < count; first += step) {{\n        \
         {result} r[{each}];\n#pragma unroll\n        \
         for (u32 v = 0; v < {each}; ++v) {{\n            const {word} own = first + v * {THREADS}, n = own < count ? own : first;\n            \
         u32 at[{rank}];\n            views::split(p.out, n, at);\n            \
         r[v] = {result}();\n            \
         if (views::is_real<{padded}>(p.out, at)) r[v] = {call};\n        }}\n#pragma unroll\n        \
         for (u32 v = 0; v < {each}; ++v) {{\n            const {word} n = first + v * {THREADS};\n",
        all = THREADS * each,
    );
    for (k, (stored, part)) in stored(definition, variant).enumerate() {
        let _ = writeln!(
            text,
            "            if (n < count) (({stored}*)p.y[{k}])[n] = lang::Write<{stored}>::of(r[v]{part});"
        );
    }
    text.push_str("        }\n    }\n");
}

/// Of each output, its type in memory, and the part of the function's result that it is.
fn stored(definition: &Definition, variant: Variant) -> impl Iterator<Item = (&'static str, String)> {
    let several = definition.outputs.len() > 1;
    definition.outputs.iter().enumerate().map(move |(k, compute)| {
        let part = if several { format!(".v{k}") } else { String::new() };
        (element(compute.stored(variant.float)), part)
    })
}

/// Declares the views and values, and returns the arguments of the function.
fn arguments(text: &mut String, definition: &Definition, index: &Index, variant: Variant) -> String {
    let Variant { float, fixed, wide, padded, .. } = variant;
    let word = if wide { "u64" } else { "u32" };
    let mut arguments = String::from("cx");
    let (mut tensor, mut constant, mut generator) = (0, 0, 0);
    for (i, ((_, compute), rank)) in definition.inputs.iter().zip(index.views).enumerate() {
        if *compute == Compute::Random {
            let _ = writeln!(
                text,
                "    const lang::Generator x{i} = lang::generator(p.generators[{generator}], p.ahead[{generator}]);"
            );
            let _ = write!(arguments, ", lang::number(x{i}, views::unpadded<{padded}>(p.out, at))");
            generator += 1;
            continue;
        }
        let (ty, stored) = (compute.name(), element(compute.stored(float)));
        let _ = match (fixed & 1 << i != 0, rank) {
            (true, _) => {
                writeln!(text, "    const {ty} x{i} = {};", number(*compute, constant))
            }
            (false, None) => {
                writeln!(text, "    const {ty} x{i} = lang::read(*(const {stored}*)p.x[{tensor}]);")
            }
            (false, Some(_)) => writeln!(
                text,
                "    const auto x{i} = views::view<{stored}, {word}, {padded}>(p.x[{tensor}], p.x{i});"
            ),
        };
        let _ = write!(arguments, ", x{i}");
        match fixed & 1 << i {
            0 => tensor += 1,
            _ => constant += 1,
        }
    }
    for axis in 0..index.rank {
        let _ = write!(arguments, ", (i32)at[{axis}]");
    }
    arguments
}

/// The parameters of the entry.
fn params(text: &mut String, definition: &Definition, index: &Index, fixed: u32) {
    let constants = fixed.count_ones() as usize;
    let generators = definition.inputs.iter().filter(|(_, compute)| *compute == Compute::Random).count();
    let tensors = definition.inputs.len() - constants - generators;
    text.push_str("struct IndexParams {\n");
    let array = |name: &str, count: usize| match count {
        0 => String::new(),
        _ => format!("    u64 {name}[{count}];\n"),
    };
    text.push_str(&array("x", tensors));
    text.push_str(&array("y", definition.outputs.len()));
    text.push_str("    u64 count;\n    FaultSink sink;\n    u64 op;\n");
    text.push_str(&array("constants", constants));
    text.push_str(&array("generators", generators));
    text.push_str(&array("ahead", generators));
    let _ = writeln!(text, "    views::Out<{}> out;", index.rank);
    for (i, rank) in index.views.iter().enumerate().filter(|(i, _)| fixed & 1 << i == 0) {
        if let Some(rank) = rank {
            let _ = writeln!(text, "    views::Shape<{rank}> x{i};");
        }
    }
    text.push_str("};\n\n");
}
