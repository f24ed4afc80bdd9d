//! A kernel of rows on a GPU: a warp for each short row, a block for each long one.

use std::{any::TypeId, fmt::Write as _};

use smallvec::SmallVec;

use super::super::{
    cuda::{LANGUAGE, element},
    definition::{Definition, Extent, Padded, Rows},
    instances::{Instance, Instances},
    operation::Constants,
    source::Functions,
};
use crate::{
    DType, Result,
    backend::{
        Launch, View,
        cuda::kernels::{Dims, Grid, Kernel, SourceFile, Submit, Walk},
    },
    base::rank::MAX_RANK,
};

/// What rows are there.
const ROWS: &str = include_str!("rows.cuh");

/// Threads that a block has if each of its warps has a row of its own.
const THREADS: u32 = 256;

/// Lanes of a reduction.
const LANES: u32 = super::lang::LANES as u32;

/// Values that a thread keeps in registers.
const KEPT: usize = 96;

/// How rows are divided among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Plan {
    /// Threads of a row.
    threads: u32,
    /// Packs of a thread, all in registers; 0 if there are too many, so that each use reads them again.
    packs: u32,
    /// Elements of a pack.
    lanes: u32,
}

impl Plan {
    /// Plans that a kernel may be compiled for, one of each sort, for packs of `lanes`.
    fn samples(lanes: u32) -> [Self; 4] {
        [
            Self { threads: 32, packs: 2, lanes },
            Self { threads: LANES / lanes, packs: 2, lanes },
            Self { threads: LANES / lanes, packs: 0, lanes },
            Self { threads: THREADS, packs: 1, lanes: 1 },
        ]
    }

    /// The plan for rows of `size` elements, of which `held` rows are used more than once.
    fn new(size: usize, lanes: u32, held: usize) -> Self {
        let passes = |threads: u32| size.div_ceil((threads * lanes) as usize).max(1);
        let threads = if passes(32) <= 4 { 32 } else { (LANES / lanes).min(THREADS) };
        let packs = passes(threads).next_power_of_two();
        let kept = packs * lanes as usize * held;
        // Nothing is gained by keeping a long row that is not used again; of a short one, lanes without values are left out.
        let again = held > 0 || threads == 32;
        let packs = if again && kept <= KEPT { packs as u32 } else { 0 };
        Self { threads, packs, lanes }
    }

    /// Threads of a block.
    fn block(self) -> u32 {
        if self.threads == 32 { THREADS } else { self.threads }
    }
}

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
    INSTANCES.of(definition, variant, |variant| text(definition, rows, *variant))
}

/// The sources of a kernel whose floats are stored as `float`, for plans of each sort.
pub(in crate::kernel) fn samples(
    definition: &Definition,
    rows: &Rows,
    float: DType,
) -> impl Iterator<Item = &'static SourceFile> {
    let lanes = 16 / largest(definition, rows, float);
    let (id, fixed, padded) = (definition.id, 0, usize::from(rows.indexed));
    Plan::samples(lanes)
        .map(|plan| &instance(definition, rows, Variant { id, float, fixed, padded, plan }).source)
        .into_iter()
}

/// Bytes of the largest element of a row.
fn largest(definition: &Definition, rows: &Rows, float: DType) -> u32 {
    let inputs = definition.inputs.iter().map(|(_, compute)| compute).zip(rows.inputs);
    let all = inputs.chain(definition.outputs.iter().zip(rows.outputs));
    let sizes = all.filter(|(_, extent)| **extent == Extent::Row).map(|(c, _)| c.stored(float).size());
    sizes.max().unwrap_or(1) as u32
}

/// Launches a kernel; `constants` is empty if every parameter is a tensor.
pub(in crate::kernel) fn launch(
    definition: &Definition,
    rows: &Rows,
    constants: &Constants,
    padded: Padded,
    gpu: &mut dyn Submit,
    launch: &Launch,
) -> Result<()> {
    match launch.inputs.len() - padded.len() {
        0 | 1 => of::<1>(definition, rows, constants, padded, gpu, launch),
        2 => of::<2>(definition, rows, constants, padded, gpu, launch),
        3 | 4 => of::<4>(definition, rows, constants, padded, gpu, launch),
        5..=8 => of::<8>(definition, rows, constants, padded, gpu, launch),
        _ => of::<16>(definition, rows, constants, padded, gpu, launch),
    }
}

/// With at most `N` tensors, each with a last dimension that is its row, or of size 1.
fn of<const N: usize>(
    definition: &Definition,
    rows: &Rows,
    constants: &Constants,
    padded: Padded,
    gpu: &mut dyn Submit,
    launch: &Launch,
) -> Result<()> {
    let fixed = constants.iter().enumerate().fold(0, |bits, (i, c)| bits | u32::from(c.is_some()) << i);
    let extents =
        rows.inputs.iter().enumerate().filter(|(i, _)| fixed & 1 << i == 0).map(|(_, extent)| *extent);
    let (tensors, counts) = launch.inputs.split_at(launch.inputs.len() - padded.len());
    let inputs = || tensors.iter().zip(extents.clone());
    let Some((sized, _)) = inputs().find(|(_, extent)| *extent == Extent::Row) else { return Ok(()) };
    let (lead, size) = match sized.layout.shape().split_last() {
        Some((size, lead)) => (lead, *size),
        None => return Ok(()),
    };
    let none = [0; MAX_RANK];
    let strides: [&[usize]; N] = std::array::from_fn(|i| match tensors.get(i) {
        Some(view) => &view.layout.strides()[..lead.len()],
        None => &none[..lead.len()],
    });
    let walk = Walk::new(lead, strides);
    let count = walk.count();

    let views = || tensors.iter().chain(&launch.outputs);
    let float = views().map(|view| view.dtype).find(|dtype| dtype.is_float()).unwrap_or(DType::F32);
    let lanes = 16 / largest(definition, rows, float);
    let outputs = || launch.outputs.iter().zip(rows.outputs.iter().copied());
    let packed =
        inputs().chain(outputs()).all(|(view, extent)| extent == Extent::One || is_packed(view, lanes));
    let plan = Plan::new(size, if packed { lanes } else { 1 }, rows.held);
    let variant = Variant { id: definition.id, float, fixed, padded: padded.len(), plan };
    let instance = instance(definition, rows, variant);

    // Mirrors `RowParams`, all of whose fields are words.
    let mut words: SmallVec<[u64; 64]> = views().map(|view| view.addr).collect();
    let sink = gpu.faults();
    words.extend([count, size as u64, sink.fault, sink.claim, gpu.fault_op(definition.name).into()]);
    words.extend(constants.iter().flatten().map(|number| u64::from(number.bits)));
    for (axis, count) in padded.axes().zip(counts) {
        let behind: usize = lead[axis + 1..].iter().product();
        words.extend([count.addr, behind as u64, lead[axis] as u64]);
    }
    words.extend(tensors.iter().map(|view| view.layout.strides().last().map_or(0, |s| *s as u64)));
    let dims: [u64; 7] = bytemuck::cast::<Dims, _>(walk.dims());
    words.extend(dims);
    words.extend(walk.strides().into_iter().take(tensors.len()).flatten());
    let grid =
        Grid::line(gpu.props().blocks_for(count * u64::from(plan.threads), plan.block()), plan.block());
    gpu.submit_bytes(Kernel::plain(&instance.source, &instance.entry), grid, bytemuck::cast_slice(&words))
}

/// Returns whether each row of a view begins where a pack can.
fn is_packed(view: &View, lanes: u32) -> bool {
    let lanes = lanes as usize;
    let layout = &view.layout;
    let mut dims = layout.shape().iter().zip(layout.strides()).rev();
    let Some((size, stride)) = dims.next() else { return false };
    let bytes = (lanes * view.dtype.size()) as u64;
    let whole = view.addr.is_multiple_of(bytes) && (*stride == 1 || *size == 1);
    whole && dims.all(|(size, stride)| *size == 1 || stride.is_multiple_of(lanes))
}

/// The source of a variant, and the name of its entry.
fn text(definition: &Definition, rows: &Rows, variant: Variant) -> (String, String) {
    let Variant { float, fixed, padded, plan: Plan { threads, packs, lanes }, .. } = variant;
    let mut functions = Functions::default();
    let name = functions.add(definition);
    let entry = format!("{name}_rows");
    let mut text = format!("#include \"common.cuh\"\n\n{LANGUAGE}\n{ROWS}\n{}\n", functions.text);
    let tensors = definition.inputs.len() - fixed.count_ones() as usize;
    params(&mut text, tensors, definition.outputs.len(), fixed.count_ones(), padded);
    let _ = write!(
        text,
        "extern \"C\" __global__ void __launch_bounds__({block}) {entry}(const __grid_constant__ RowParams p) {{ in_order();\n    \
         rows::Cx<{threads}, {packs}, {lanes}> cx((u32)p.size, p.sink, (u32)p.op);\n    \
         const u64 first = (u64)blockIdx.x * {groups} + threadIdx.x / {threads}, step = (u64)gridDim.x * {groups};\n    \
         for (u64 row = first; row < p.rows; row += step) {{\n        \
         u64 at[{tensors}];\n        locate<{tensors}>(p.dims, p.strides, row, at);\n{is_real}        {name}(cx",
        block = variant.plan.block(),
        groups = variant.plan.block() / threads,
        is_real = if padded > 0 { "        cx.is_real = rows::is_real(p.padded, row);\n" } else { "" },
    );
    let (mut tensor, mut constant) = (0, 0);
    for (i, ((_, compute), extent)) in definition.inputs.iter().zip(rows.inputs).enumerate() {
        let (ty, stored) = (compute.name(), element(compute.stored(float)));
        let _ = match (fixed & 1 << i != 0, extent) {
            (true, _) => write!(text, ", lang::Bits<{ty}>::of((u32)p.constants[{constant}])"),
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
    text.push_str(");\n    }\n}\n");
    (entry, text)
}

/// The parameters of the entry.
fn params(text: &mut String, tensors: usize, outputs: usize, constants: u32, padded: usize) {
    let constants = if constants > 0 { format!("    u64 constants[{constants}];\n") } else { String::new() };
    let padded = if padded > 0 { format!("    rows::Padded padded[{padded}];\n") } else { String::new() };
    let _ = write!(
        text,
        "struct RowParams {{\n    u64 x[{tensors}];\n    u64 y[{outputs}];\n    u64 rows;\n    u64 size;\n    \
         FaultSink sink;\n    u64 op;\n{constants}{padded}    u64 last[{tensors}];\n    Dims dims;\n    \
         u64 strides[{tensors}][MAX_RANK];\n}};\n\n"
    );
}
