//! A kernel of rows on a GPU: some threads of a warp for each short row, a block or a cluster of them for each long one.

use std::{any::TypeId, fmt::Write as _};

use smallvec::SmallVec;

use super::super::{
    constants::{Constants, fixed},
    cuda::{before, draws, element, map::number},
    definition::{Compute, Definition, Extent, Padded, Rows},
    instances::{Instance, Instances},
    random::draws::Draws,
    source::Functions,
};
use super::plan::{Packs, Plan, most_lanes};
use crate::{
    DType, Result,
    backend::{
        Launch, View,
        cuda::kernels::{Dims, Grid, Kernel, SourceFile, Submit, Walk},
    },
    base::rank::MAX_RANK,
};

/// The definition of rows on a GPU.
pub(in crate::kernel) const ROWS: &str = concat!(include_str!("rows.cuh"), include_str!("reductions.cuh"));

/// Random numbers of rows.
const NUMBERS: &str = include_str!("numbers.cuh");

/// The driver's limit is 2^31 - 1, of which clusters take up to eight each.
const MOST_BLOCKS: u64 = 1 << 27;

/// A kernel for one element type of floats, with numbers for some parameters, and one plan.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Variant {
    id: TypeId,
    float: DType,
    /// A bit for each parameter that is a number.
    fixed: u32,
    /// Number of padded dimensions.
    padded: usize,
    plan: Plan,
}

static INSTANCES: Instances<Variant> = Instances::new();

fn instance(definition: &Definition, rows: &Rows, variant: Variant) -> &'static Instance {
    INSTANCES.of(definition.name, variant, |variant| text(definition, rows, *variant))
}

/// The sources of a kernel whose floats are stored as `float`, for plans of each sort.
pub(in crate::kernel) fn samples(
    definition: &Definition,
    rows: &Rows,
    float: DType,
    arch: &str,
) -> impl Iterator<Item = &'static SourceFile> {
    let lanes = lanes(definition, rows, float);
    let (id, fixed, padded) = (definition.id, 0, usize::from(rows.indexed || draws(definition)));
    let is_number = |c: &char| c.is_ascii_digit();
    let arch: String = arch.chars().skip_while(|c| !is_number(c)).take_while(is_number).collect();
    let clusters = arch.parse::<u32>().is_ok_and(|arch| arch >= 90);
    let across = rows.outputs.iter().all(|extent| *extent == Extent::One);
    Plan::samples(lanes, rows, clusters)
        .into_iter()
        .filter(move |plan| across || matches!(plan, Plan::Along { .. }))
        .map(move |plan| &instance(definition, rows, Variant { id, float, fixed, padded, plan }).source)
}

/// Elements that are loaded at once: 16 bytes of the largest, but no more than there are registers for the lanes.
pub(in crate::kernel) fn lanes(definition: &Definition, rows: &Rows, float: DType) -> usize {
    let inputs = definition.inputs.iter().map(|(_, compute)| compute).zip(rows.inputs);
    let inputs = inputs.filter(|(compute, _)| **compute != Compute::Random);
    let all = inputs.chain(definition.outputs.iter().zip(rows.outputs));
    let sizes = all.filter(|(_, extent)| **extent == Extent::Row).map(|(c, _)| c.stored(float).size());
    (16 / sizes.max().unwrap_or(1)).min(most_lanes(rows))
}

/// Launches a kernel; `constants` is empty if no parameter is a number.
pub(in crate::kernel) fn launch(
    definition: &Definition,
    rows: &Rows,
    constants: &Constants,
    draws: &Draws,
    gpu: &mut dyn Submit,
    launch: &Launch,
) -> Result<()> {
    let [tensors, ..] = draws.split(definition, constants, &launch.inputs);
    match tensors.len() {
        0 | 1 => of::<1>(definition, rows, constants, draws, gpu, launch),
        2 => of::<2>(definition, rows, constants, draws, gpu, launch),
        3 | 4 => of::<4>(definition, rows, constants, draws, gpu, launch),
        5..=8 => of::<8>(definition, rows, constants, draws, gpu, launch),
        _ => of::<16>(definition, rows, constants, draws, gpu, launch),
    }
}

/// With at most `N` tensors, each with a last dimension that is its row, or of size 1.
fn of<const N: usize>(
    definition: &Definition,
    rows: &Rows,
    constants: &Constants,
    draws: &Draws,
    gpu: &mut dyn Submit,
    launch: &Launch,
) -> Result<()> {
    let (fixed, padded) = (fixed(constants), draws.padded);
    let parameters = rows.inputs.iter().enumerate();
    let extents = parameters.filter(|(i, _)| is_tensor(definition, fixed, *i)).map(|(_, extent)| *extent);
    let [tensors, generators, counts] = draws.split(definition, constants, &launch.inputs);
    let inputs = || tensors.iter().zip(extents.clone());
    let sized = inputs().find(|(_, extent)| *extent == Extent::Row);
    let Some((size, lead)) = sized.and_then(|(view, _)| view.layout.shape().split_last()) else {
        return Ok(());
    };
    let size = *size;
    let none = [0; MAX_RANK];
    let strides: [&[usize]; N] = std::array::from_fn(|i| match tensors.get(i) {
        Some(view) => &view.layout.strides()[..lead.len()],
        None => &none[..lead.len()],
    });
    let walk = Walk::new(lead, strides);
    let count = walk.count();

    let views = || tensors.iter().chain(&launch.outputs);
    let float = views().map(|view| view.dtype).find(|dtype| dtype.is_computed_in_f32()).unwrap_or(DType::F32);
    let lanes = lanes(definition, rows, float);
    let outputs = || launch.outputs.iter().zip(rows.outputs.iter().copied());
    let packed =
        inputs().chain(outputs()).all(|(view, extent)| extent == Extent::One || is_packed(view, lanes));
    let clusters = gpu.props().capability >= (9, 0);
    let plan = match rows.straight && count >= 16 && size > 1 && are_read_together(rows, lead, inputs()) {
        true => Plan::across(count as usize, size, rows, clusters),
        false => Plan::along(size, lanes, rows, clusters),
    };
    let variant = Variant { id: definition.id, float, fixed, padded: padded.axes().count(), plan };
    let instance = instance(definition, rows, variant);

    // Mirrors `RowParams`, all of whose fields are words.
    let mut words: SmallVec<[u64; 64]> = views().map(|view| view.addr).collect();
    let sink = gpu.faults();
    let way = match plan {
        Plan::Along { .. } => u64::from(packed && size > 0),
        Plan::Across { .. } => plan.run(size) as u64,
    };
    words.extend([count, size as u64, way, sink.fault, sink.claim, gpu.fault_op(definition.name).into()]);
    words.extend(constants.iter().flatten().map(|number| number.bits));
    words.extend(generators.iter().map(|view| view.addr));
    words.extend(draws.ahead.iter().map(|ahead| u64::from(*ahead)));
    words.extend(padding(padded, counts, lead));
    words.extend(tensors.iter().map(|view| view.layout.strides().last().map_or(0, |s| *s as u64)));
    let dims: [u64; 7] = bytemuck::cast::<Dims, _>(walk.dims());
    words.extend(dims);
    words.extend(walk.strides().into_iter().take(tensors.len()).flatten());
    let kernel = Kernel::plain(&instance.source, &instance.entry);
    gpu.submit_bytes(kernel, grid(plan, count), bytemuck::cast_slice(&words))
}

/// The words for each padded dimension of `lead`, of which `counts` are the real sizes.
fn padding(padded: Padded, counts: &[View], lead: &[usize]) -> impl Iterator<Item = u64> {
    padded.axes().zip(counts).flat_map(|(axis, count)| {
        let behind: usize = lead[axis + 1..].iter().product();
        [count.addr, behind as u64, lead[axis] as u64]
    })
}

/// Returns whether a parameter is a tensor, and neither a number nor a random number.
fn is_tensor(definition: &Definition, fixed: u32, parameter: usize) -> bool {
    fixed & 1 << parameter == 0 && !is_drawn(definition, parameter)
}

/// Returns whether a parameter is a random number, or a row of them.
fn is_drawn(definition: &Definition, parameter: usize) -> bool {
    definition.inputs.get(parameter).is_some_and(|(_, compute)| *compute == Compute::Random)
}

/// Returns whether rows that lie side by side are read together: no result is a row, and the places of one number lie side
/// by side in every tensor of rows.
fn are_read_together<'v>(
    rows: &Rows,
    lead: &[usize],
    mut inputs: impl Iterator<Item = (&'v View, Extent)>,
) -> bool {
    let beside = |(view, extent): (&View, Extent)| {
        let strides = view.layout.strides();
        let last = lead.iter().zip(strides).rev().find(|(size, _)| **size > 1).map(|(_, stride)| *stride);
        extent == Extent::One || last == Some(0) || last == Some(1) && strides.last() != Some(&1)
    };
    rows.outputs.iter().all(|extent| *extent == Extent::One) && inputs.all(beside)
}

/// Returns the blocks for `count` rows.
fn grid(plan: Plan, count: u64) -> Grid {
    let (of_block, blocks) = plan.of_block();
    let blocks = count.div_ceil(of_block as u64).clamp(1, MOST_BLOCKS) * blocks as u64;
    Grid::line(blocks as u32, plan.block() as u32)
}

/// Returns whether each row of a view consists of packs that can be loaded at once.
fn is_packed(view: &View, lanes: usize) -> bool {
    let layout = &view.layout;
    let mut dims = layout.shape().iter().zip(layout.strides()).rev();
    let Some((size, stride)) = dims.next() else { return false };
    let bytes = (lanes * view.dtype.size()) as u64;
    let whole = size.is_multiple_of(lanes) && *stride == 1 && view.addr.is_multiple_of(bytes);
    whole && dims.all(|(size, stride)| *size == 1 || stride.is_multiple_of(lanes))
}

/// The source of a variant, and the name of its entry.
fn text(definition: &Definition, rows: &Rows, variant: Variant) -> (String, String) {
    let Variant { fixed, padded, plan, .. } = variant;
    let mut functions = Functions::default();
    let name = functions.add(definition);
    let entry = format!("{name}_rows");
    let draws = draws(definition);
    let numbers = if draws { NUMBERS } else { "" };
    let mut text = format!("{}\n{ROWS}{numbers}\n{}\n", before(draws, functions.further), functions.text);
    let generators = (0..definition.inputs.len()).filter(|i| is_drawn(definition, *i)).count();
    let tensors = definition.inputs.len() - generators - fixed.count_ones() as usize;
    params(&mut text, tensors, definition.outputs.len(), fixed.count_ones(), generators, padded);
    let (of_block, blocks) = plan.of_block();
    let (row, arguments) = match plan {
        Plan::Along { threads, .. } => (format!("threadIdx.x / {threads}"), "(u32)p.size"),
        Plan::Across { rows, .. } => (format!("threadIdx.x % {rows}"), "(u32)p.size, (u32)p.way"),
    };
    let is_real = if padded > 0 { " && rows::is_real(p.padded, row)" } else { "" };
    let _ = write!(
        text,
        "template <class C> DEVICE void all_rows(const RowParams& p) {{\n    \
         C cx({arguments}, p.sink, (u32)p.op);\n    \
         const u64 step = (u64)(gridDim.x / {blocks}) * {of_block};\n    \
         for (u64 first = (u64)(blockIdx.x / {blocks}) * {of_block}; first < p.rows; first += step) {{\n        \
         u64 row = first;\n"
    );
    if of_block > 1 {
        // Threads without a row do what others do: they exchange values with them.
        let _ = write!(
            text,
            "        row += {row};\n        cx.is_there = row < p.rows;\n        \
             if (!cx.is_there) row = p.rows - 1;\n"
        );
    }
    let _ = write!(
        text,
        "        cx.is_real = cx.is_there{is_real};\n        \
         u64 at[{tensors}];\n        locate<{tensors}>(p.dims, p.strides, row, at);\n"
    );
    for k in 0..generators {
        let _ = writeln!(
            text,
            "        const lang::Generator g{k} = lang::generator(p.generators[{k}], p.ahead[{k}]);"
        );
    }
    if draws {
        let number = if padded > 0 { "rows::unpadded(p.padded, row)" } else { "row" };
        let _ = writeln!(text, "        const u64 number = {number};");
    }
    let _ = write!(text, "        {name}(cx");
    call(&mut text, definition, rows, variant);
    text.push_str(");\n    }\n    cx.end();\n}\n");
    launched(&mut text, plan, &entry, plan.resident(rows));
    (entry, text)
}

/// The entry; a multiprocessor should have room for `resident` blocks.
fn launched(text: &mut String, plan: Plan, entry: &str, resident: usize) {
    let (_, blocks) = plan.of_block();
    let cluster = if blocks > 1 { format!(" __cluster_dims__({blocks}, 1, 1)") } else { String::new() };
    let _ = write!(
        text,
        "extern \"C\" __global__ void __launch_bounds__({}, {resident}){cluster} {entry}(const __grid_constant__ RowParams p) {{ \
         in_order();\n    ",
        plan.block(),
    );
    let _ = match plan {
        Plan::Along { threads, blocks, packed, single } => {
            let of = |packs: Packs, is_packed: bool| {
                let Packs { count, lanes, held, whole } = packs;
                format!(
                    "all_rows<rows::Cx<{threads}, {count}, {lanes}, {blocks}, {held}, {whole}, {is_packed}>>(p);"
                )
            };
            write!(text, "if (p.way) {}\n    else {}\n}}\n", of(packed, true), of(single, false))
        }
        Plan::Across { rows, threads, blocks, at_once, values, .. } => {
            write!(
                text,
                "all_rows<rows::Columns<{rows}, {threads}, {blocks}, {at_once}, {values}>>(p);\n}}\n"
            )
        }
    };
}

/// The arguments of the kernel's function, for one row.
fn call(text: &mut String, definition: &Definition, rows: &Rows, Variant { float, fixed, .. }: Variant) {
    let (mut tensor, mut constant, mut generator) = (0, 0, 0);
    for (i, ((_, compute), extent)) in definition.inputs.iter().zip(rows.inputs).enumerate() {
        if *compute == Compute::Random {
            let _ = match extent {
                Extent::One => write!(text, ", lang::number<1>(g{generator}, number)"),
                Extent::Row => write!(text, ", rows::Drawn{{g{generator}, number * p.size}}"),
            };
            generator += 1;
            continue;
        }
        let stored = element(compute.stored(float));
        let _ = match (fixed & 1 << i != 0, extent) {
            (true, _) => write!(text, ", {}", number(*compute, constant)),
            (false, Extent::One) => {
                write!(text, ", lang::read(((const {stored}*)p.x[{tensor}])[at[{tensor}]])")
            }
            (false, Extent::Row) => {
                write!(text, ", rows::input<{stored}>(p.x[{tensor}], at[{tensor}], p.last[{tensor}])")
            }
        };
        match fixed & 1 << i {
            0 => tensor += 1,
            _ => constant += 1,
        }
    }
    for (i, (compute, extent)) in definition.outputs.iter().zip(rows.outputs).enumerate() {
        let stored = element(compute.stored(float));
        let _ = match extent {
            Extent::One => write!(text, ", rows::Value<{stored}>{{({stored}*)p.y[{i}] + row}}"),
            Extent::Row => write!(text, ", rows::Output<{stored}>{{({stored}*)p.y[{i}] + row * p.size}}"),
        };
    }
}

/// The parameters of the entry.
fn params(
    text: &mut String,
    tensors: usize,
    outputs: usize,
    constants: u32,
    generators: usize,
    padded: usize,
) {
    let constants = if constants > 0 { format!("    u64 constants[{constants}];\n") } else { String::new() };
    let generators = match generators {
        0 => String::new(),
        count => format!("    u64 generators[{count}];\n    u64 ahead[{count}];\n"),
    };
    let padded = if padded > 0 { format!("    rows::Padded padded[{padded}];\n") } else { String::new() };
    let _ = write!(
        text,
        "struct RowParams {{\n    u64 x[{tensors}];\n    u64 y[{outputs}];\n    u64 rows;\n    u64 size;\n    u64 way;\n    \
         FaultSink sink;\n    u64 op;\n{constants}{generators}{padded}    u64 last[{tensors}];\n    Dims dims;\n    \
         u64 strides[{tensors}][MAX_RANK];\n}};\n\n"
    );
}

#[cfg(test)]
mod tests {
    use crate::{
        kernel,
        kernel::definition::{Definition, Kernel as _, Kind},
    };

    #[kernel(rows)]
    fn sum(x: Row<f32>) -> f32 {
        x.sum()
    }

    #[kernel(rows)]
    fn one_way_or_the_other(x: Row<f32>) -> f32 {
        if x.at(0) > 0.0 { x.sum() } else { x.max() }
    }

    #[kernel(rows)]
    fn only_then(x: Row<f32>, flag: bool) -> bool {
        flag && x.sum() > 0.0
    }

    #[kernel(rows)]
    fn by_number(x: Row<f32>, n: i32) -> f32 {
        match n {
            0 => x.sum(),
            _ => 1.0,
        }
    }

    fn is_straight(definition: &Definition) -> bool {
        matches!(definition.kind, Kind::Rows(rows) if rows.straight)
    }

    #[test]
    fn rows_that_go_different_ways_share_no_warp() {
        assert!(is_straight(sum::DEFINITION));
        for definition in [one_way_or_the_other::DEFINITION, only_then::DEFINITION, by_number::DEFINITION] {
            assert!(!is_straight(definition), "{}", definition.text);
        }
    }
}
