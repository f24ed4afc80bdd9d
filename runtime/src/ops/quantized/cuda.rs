//! Products with weights in blocks on a GPU, and rows of them: `quantized.cu`, and for few rows the kernel of
//! [`launch_blocks`], which reads each block once and multiplies its integers.
//!
//! For more rows the weight becomes floats of the activations' type, some columns of the product at a time, and the product is one of
//! floats. Which way a product is computed follows from the number of its rows.

use bytemuck::{Pod, Zeroable};

use super::linear::QuantizedLinear;
use crate::{
    BlockFormat, Result,
    backend::{
        Launch, View,
        cuda::kernels::{Grid, Kernel, Product, SourceFile, Submit, THREADS, submit},
    },
    ops::{
        gather::{Indices, PickCounts, Picks},
        matmul::{FEW_ROWS, MatMulKernels, launch_blocks, lines_up},
    },
    quantized::tiles::{self, TILE},
    value::layout::Layout,
};

#[cfg(test)]
mod tests;

/// The most bytes of a weight as floats. They stay in the second-level cache of large devices until they are multiplied.
const MOST_EXPANDED: usize = 32 << 20;
/// Columns that are expanded at a time are a multiple of this many.
const COLUMNS: usize = 256;
/// Alignment of the parts of a workspace.
const ALIGN: u64 = 256;
/// Threads of a warp.
const WARP: u32 = 32;
/// Elements of a row that a warp expands for the rows of a tile, as in `quantized.cu`: whole units of every format.
const SPAN: usize = 256;

/// Mirrors `ExpandParams` of `quantized.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct ExpandParams {
    w: u64,
    y: u64,
    rows: u64,
    k: u64,
    units: u32,
    spans: u32,
    tiles: u64,
}

/// Mirrors `RowsParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct RowsParams {
    w: u64,
    y: u64,
    n: u64,
    k: u64,
    units: u64,
    picks: Picks,
}
const _: () = assert!(size_of::<RowsParams>() == 336);

/// Mirrors `GatherParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct GatherParams {
    x: u64,
    y: u64,
    m: u64,
    k: u64,
    row: u64,
    col: u64,
}

/// The kernels of a format.
struct Kernels {
    source: &'static SourceFile,
    expand: &'static str,
    rows: &'static str,
}

macro_rules! kernels {
    ($($format:ident)*) => {
        /// The kernels of `format`, which are compiled apart from those of others.
        fn kernels(format: BlockFormat) -> Kernels {
            match format {
                $(BlockFormat::$format => {
                    static SOURCE: SourceFile =
                        SourceFile::ours("quantized/quantized.cu", include_str!("quantized.cu")).split()
                            .with_header("blocks.cuh", include_str!("blocks.cuh"))
                            .with_options(&[concat!("-DFORMAT=", stringify!($format))]);
                    Kernels {
                        source: &SOURCE,
                        expand: concat!("expand_", stringify!($format)),
                        rows: concat!("rows_", stringify!($format)),
                    }
                })*
            }
        }
    };
}
kernels! { Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL F8_E4M3 INT4 }

/// A product, in parts.
struct Parts {
    m: usize,
    k: usize,
    n: usize,
    /// Bytes of the activations beside each other; 0 if they are so already.
    contiguous: u64,
    /// Columns that are expanded at a time, and their bytes; 0 if the blocks are multiplied as they are.
    columns: usize,
    expanded: u64,
}

impl Parts {
    fn of(x: &View, y: &View) -> Self {
        let (&[m, k], &[_, n]) = (x.layout.shape(), y.layout.shape()) else {
            unreachable!("the operands are matrices")
        };
        let (size, strides) = (x.dtype.size(), x.layout.strides());
        let contiguous = match lines_up(x, [strides[1], strides[0]], [k, m]) {
            true => 0,
            false => ((m * k * size) as u64).next_multiple_of(ALIGN),
        };
        // Without elements there is nothing to expand.
        let columns = match m <= FEW_ROWS || k == 0 {
            true => 0,
            false => n.min((MOST_EXPANDED / (k * size)).next_multiple_of(COLUMNS)),
        };
        let expanded = ((columns * k * size) as u64).next_multiple_of(ALIGN);
        Self { m, k, n, contiguous, columns, expanded }
    }

    /// The first columns of the runs that are expanded.
    fn firsts(&self) -> impl Iterator<Item = usize> {
        (0..if self.columns == 0 { 0 } else { self.n }).step_by(self.columns.max(1))
    }

    /// The operands and the result of the product of some columns, whose weight as floats is at `weight`.
    fn product(
        &self,
        launch: [&View; 2],
        bias: Option<&View>,
        first: usize,
        weight: u64,
    ) -> Result<(Vec<View>, View)> {
        let [x, y] = launch;
        let n = self.columns.min(self.n - first);
        let part = |view: &View| -> Result<View> {
            let strides = view.layout.strides();
            let layout = Layout::strided(&[self.m, n], strides)?;
            Ok(View { addr: view.addr + (first * strides[1] * view.dtype.size()) as u64, layout, ..*view })
        };
        let weight =
            View { addr: weight, dtype: x.dtype, layout: Layout::strided(&[self.k, n], &[1, self.k])? };
        let mut inputs = vec![*x, weight];
        inputs.extend(bias.map(part).transpose()?);
        Ok((inputs, part(y)?))
    }
}

/// The workspace of a product.
pub(super) fn workspace(
    op: &QuantizedLinear,
    gpu: &mut dyn Submit,
    inputs: &[View],
    output: &View,
) -> Result<u64> {
    let parts = Parts::of(&inputs[0], output);
    let x = beside(&inputs[0], &parts, ALIGN)?;
    let mut most = 0;
    for first in parts.firsts() {
        // The addresses are as aligned as those of the launch; nothing is measured, as there are no weights yet.
        let (inputs, output) = parts.product([&x, output], inputs.get(2), first, ALIGN)?;
        let product = Product::new(&inputs, &output, &MatMulKernels, op.numerics);
        most = most.max(gpu.product_workspace(product, false)?);
    }
    Ok(parts.contiguous + parts.expanded + most)
}

/// The activations, beside each other at `at` if they are not so already.
fn beside(x: &View, parts: &Parts, at: u64) -> Result<View> {
    match parts.contiguous {
        0 => Ok(*x),
        _ => Ok(View { addr: at, layout: Layout::contiguous(&[parts.m, parts.k])?, ..*x }),
    }
}

pub(super) fn linear(op: &QuantizedLinear, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
    let (inputs, output) = (&launch.inputs, &launch.outputs[0]);
    let parts = Parts::of(&inputs[0], output);
    let x = beside(&inputs[0], &parts, launch.workspace)?;
    if parts.contiguous > 0 && parts.m * parts.k > 0 {
        copy(op.format, gpu, &inputs[0], &x)?;
    }
    if parts.columns == 0 {
        let mut launch = launch.clone();
        launch.inputs[0] = x;
        return launch_blocks(gpu, &launch, op.format, op.early);
    }
    let expanded = launch.workspace + parts.contiguous;
    for first in parts.firsts() {
        let (views, y) = parts.product([&x, output], inputs.get(2), first, expanded)?;
        expand(op.format, gpu, &inputs[1], first, &views[1])?;
        let product = Product::new(&views, &y, &MatMulKernels, op.numerics);
        gpu.product(product, expanded + parts.expanded)?;
    }
    Ok(())
}

/// Copies a matrix of any strides to one that is contiguous.
fn copy(format: BlockFormat, gpu: &mut dyn Submit, from: &View, to: &View) -> Result<()> {
    let (&[m, k], &[row, col]) = (from.layout.shape(), from.layout.strides()) else {
        unreachable!("the input is a matrix")
    };
    let [m, k, row, col] = [m, k, row, col].map(|number| number as u64);
    let params = GatherParams { x: from.addr, y: to.addr, m, k, row, col };
    let grid = Grid::line(gpu.props().blocks_for(m * k, THREADS), THREADS);
    submit(gpu, Kernel::of(kernels(format).source, from.dtype, "contiguous"), grid, &params)
}

/// Writes the rows of the weight from `first` on that `to`, `[K, N]`, has the columns for.
fn expand(format: BlockFormat, gpu: &mut dyn Submit, weight: &View, first: usize, to: &View) -> Result<()> {
    let &[k, rows] = to.layout.shape() else { unreachable!("a weight is a matrix") };
    // At most `MOST_EXPANDED`, and some columns: numbers of 32 bits are enough.
    let (units, spans) = (tiles::units(format, k) as u32, k.div_ceil(SPAN) as u32);
    let tiles = rows.div_ceil(TILE) as u64;
    // There are bytes of whole tiles before `first`, which is a multiple of their rows.
    let before = tiles::bytes(format, [first, k]).unwrap_or_default() as u64;
    let (rows, k) = (rows as u64, k as u64);
    let params = ExpandParams { w: weight.addr + before, y: to.addr, rows, k, units, spans, tiles };
    let kernels = kernels(format);
    let grid =
        Grid::line(gpu.props().blocks_for(tiles * u64::from(spans) * u64::from(WARP), THREADS), THREADS);
    submit(gpu, Kernel::of(kernels.source, to.dtype, kernels.expand), grid, &params)
}

pub(super) fn embedding(
    gpu: &mut dyn Submit,
    launch: &Launch,
    format: BlockFormat,
    counts: PickCounts,
) -> Result<()> {
    let (ids, table, y) = (&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]);
    let Some(&k) = y.layout.shape().last() else { unreachable!("a row has a dimension") };
    let picks = Picks::new(gpu, launch.op.name(), Indices::new(launch, 0, counts), table.layout.shape()[0]);
    let (n, units) = (ids.layout.count() as u64, tiles::units(format, k) as u64);
    let params = RowsParams { w: table.addr, y: y.addr, n, k: k as u64, units, picks };
    let kernels = kernels(format);
    let grid = Grid::line(gpu.props().blocks_for(n * units * 4, THREADS), THREADS);
    submit(gpu, Kernel::of(kernels.source, y.dtype, kernels.rows), grid, &params)
}
