//! Matrix products in kernels: those that the library does not support, and those of few rows, where
//! reading the right side is all the work and the library is not always the fastest.

use bytemuck::{Pod, Zeroable};

use super::thin::{
    few_rows,
    variant::{TEXT, Variant},
};
use crate::{
    DType, Error, Result,
    backend::{
        View,
        cuda::{
            DeviceProperties,
            kernels::{Grid, Kernel, ProductKernels, SourceFile, Submit, submit},
            problem::{A, B, BIAS, Problem, Y},
        },
    },
};

/// Matrix products that the library does not take.
static SOURCE: SourceFile =
    SourceFile::ours("matmul/matmul.cu", include_str!("matmul.cu")).split().with_header("thin.cuh", TEXT);

#[cfg(test)]
mod tests;

/// Mirrors `BATCH_RANK` of `matmul.cu`.
const BATCH_RANK: usize = 4;

/// Mirrors `Params` of `matmul.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Params {
    a: u64,
    w: u64,
    bias: u64,
    y: u64,
    partial: u64,
    m: u64,
    n: u64,
    k: u64,
    batches: u64,
    a_row: u64,
    a_col: u64,
    w_row: u64,
    w_col: u64,
    bias_row: u64,
    bias_col: u64,
    y_row: u64,
    y_col: u64,
    shape: [u64; BATCH_RANK],
    a_batch: [u64; BATCH_RANK],
    w_batch: [u64; BATCH_RANK],
    bias_batch: [u64; BATCH_RANK],
    y_batch: [u64; BATCH_RANK],
    batch_rank: u32,
    split: u32,
}

/// Most rows of `gemv_kn`.
const THIN: usize = 8;
/// Rows and columns of a tile.
const TILE: usize = 64;
/// Threads of a block, in all kernels.
const THREADS: u32 = 256;
/// Bytes of one load.
const LOAD: usize = 16;
/// Threads side by side along N in `gemv_kn`.
const ACROSS: usize = 8;
/// Most blocks along y and z.
const MOST_BLOCKS: usize = 65_535;

/// The kernel, and the split of its work: it depends on shapes, strides, alignment and the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Any strides.
    Tiled,
    /// Few rows, K contiguous on both sides.
    Rows(Variant),
    /// Few rows, N contiguous on the right side; K is shared by `split` blocks.
    Columns { split: usize },
}

impl Form {
    fn of(props: &DeviceProperties, p: &Problem) -> Self {
        let (batches, size) = (p.batches(), p.dtype.size());
        if batches > MOST_BLOCKS || p.is_empty() {
            return Self::Tiled;
        }
        if takes(p) {
            return Self::Rows(Variant::of(props.multiprocessors, p.dtype, p.m, p.n * batches));
        }
        if !p.dtype.is_computed_in_f32() || p.m > THIN || p.k == 0 {
            return Self::Tiled;
        }
        let b = p.strides[B];
        if unit(b.col, p.n) && lines_up(p, B, p.k, b.row) {
            let width = ACROSS * LOAD / size;
            let across = p.n.div_ceil(width);
            // Two blocks per multiprocessor, each with some work for all its threads.
            let wanted = (props.multiprocessors as usize * 2).div_ceil(across * batches);
            let split = wanted.min(p.k / 128).clamp(1, 64);
            if i32::try_from(across).is_ok() {
                return Self::Columns { split };
            }
        }
        Self::Tiled
    }
}

/// Returns whether a stride along `len` elements is that of neighbours.
fn unit(stride: usize, len: usize) -> bool {
    stride == 1 || len == 1
}

/// Returns whether every line of operand `i` starts where a vector load is possible; `across` is the stride between `lines`
/// lines.
fn lines_up(p: &Problem, i: usize, lines: usize, across: usize) -> bool {
    let whole = |stride: usize| (stride * p.dtype.size()).is_multiple_of(LOAD);
    p.addrs[i].is_multiple_of(LOAD as u64)
        && (lines == 1 || whole(across))
        && p.batch.iter().all(|dim| whole(dim.strides[i]))
}

/// Returns whether `gemv_nk` computes a product, whatever the library could do.
fn takes(p: &Problem) -> bool {
    let (a, b) = (p.strides[A], p.strides[B]);
    few_rows::takes(p.dtype, p.m, p.n, p.k)
        && unit(b.row, p.k)
        && unit(a.col, p.k)
        && lines_up(p, A, p.m, a.row)
        && lines_up(p, B, p.n, b.col)
}

/// The kernels of `matmul.cu`.
pub(in crate::ops) struct MatMulKernels;

impl ProductKernels for MatMulKernels {
    fn workspace_bytes(&self, props: &DeviceProperties, inputs: &[View], output: &View) -> u64 {
        workspace_bytes(props, inputs, output)
    }

    fn takes(&self, inputs: &[View], output: &View) -> bool {
        Problem::new(inputs, output).is_some_and(|p| takes(&p) && p.batches() <= MOST_BLOCKS)
    }

    fn may_be_faster(&self, props: &DeviceProperties, inputs: &[View], output: &View) -> bool {
        is_thin(props, inputs, output)
    }

    fn launch(&self, gpu: &mut dyn Submit, inputs: &[View], output: &View, workspace: u64) -> Result<()> {
        launch(gpu, inputs, output, workspace)
    }
}

/// Returns true if a kernel for few rows supports this product.
fn is_thin(props: &DeviceProperties, inputs: &[View], output: &View) -> bool {
    Problem::new(inputs, output).is_some_and(|p| Form::of(props, &p) != Form::Tiled)
}

/// Workspace of [`launch`], in bytes.
fn workspace_bytes(props: &DeviceProperties, inputs: &[View], output: &View) -> u64 {
    let Some(p) = Problem::new(inputs, output) else { return 0 };
    match Form::of(props, &p) {
        Form::Columns { split } if split > 1 => (split * p.batches() * p.m * p.n * size_of::<f32>()) as u64,
        _ => 0,
    }
}

fn launch(gpu: &mut dyn Submit, inputs: &[View], output: &View, workspace: u64) -> Result<()> {
    let problem = Problem::new(inputs, output);
    let Some(p) = problem.filter(|p| p.batch.len() <= BATCH_RANK) else {
        return Err(Error::Argument {
            op: "matmul",
            reason: "the operands are not two matrices (or batches of them) of the result's rank".into(),
        });
    };
    if p.is_empty() {
        return Ok(());
    }
    let form = Form::of(gpu.props(), &p);
    let mut params = params(&p, workspace);
    let batches = p.batches() as u32;
    match form {
        Form::Tiled => {
            let tiles = p.m.div_ceil(TILE) * p.n.div_ceil(TILE) * p.batches();
            let kernel = Kernel::of(&SOURCE, p.dtype, "matmul_tiled");
            submit(gpu, kernel, Grid::line(tiles.min(i32::MAX as usize) as u32, THREADS), &params)
        }
        Form::Rows(variant) => {
            let blocks = variant.blocks(p.m, p.n) as u32;
            let kernel = Kernel::of(&SOURCE, p.dtype, variant.name);
            let grid = Grid { blocks: [blocks, batches, 1], threads: THREADS, shared: 0, cluster: 1 };
            submit(gpu, kernel, grid, &params)
        }
        Form::Columns { split } => {
            params.split = split as u32;
            let blocks = p.n.div_ceil(ACROSS * LOAD / p.dtype.size()) as u32;
            let kernel = thin(p.dtype, p.m, ["gemv_kn_1", "gemv_kn_2", "gemv_kn_4", "gemv_kn_8"]);
            let grid =
                Grid { blocks: [blocks, batches, split as u32], threads: THREADS, shared: 0, cluster: 1 };
            submit(gpu, kernel, grid, &params)?;
            if split == 1 {
                return Ok(());
            }
            let results = (p.batches() * p.m * p.n) as u64;
            let grid = Grid::line(gpu.props().blocks_for(results, THREADS), THREADS);
            submit(gpu, Kernel::of(&SOURCE, p.dtype, "gemv_sum"), grid, &params)
        }
    }
}

/// The smallest of the kernels for 1, 2, 4 and 8 rows that has enough.
fn thin(dtype: DType, m: usize, names: [&'static str; 4]) -> Kernel {
    let step = m.next_power_of_two().trailing_zeros() as usize;
    Kernel::of(&SOURCE, dtype, names[step.min(3)])
}

fn params(p: &Problem, workspace: u64) -> Params {
    let [a, b, bias, y] = p.strides;
    let mut out = Params {
        a: p.addrs[A],
        w: p.addrs[B],
        bias: p.addrs[BIAS],
        y: p.addrs[Y],
        partial: workspace,
        m: p.m as u64,
        n: p.n as u64,
        k: p.k as u64,
        batches: p.batches() as u64,
        a_row: a.row as u64,
        a_col: a.col as u64,
        w_row: b.row as u64,
        w_col: b.col as u64,
        bias_row: bias.row as u64,
        bias_col: bias.col as u64,
        y_row: y.row as u64,
        y_col: y.col as u64,
        shape: [1; BATCH_RANK],
        a_batch: [0; BATCH_RANK],
        w_batch: [0; BATCH_RANK],
        bias_batch: [0; BATCH_RANK],
        y_batch: [0; BATCH_RANK],
        batch_rank: p.batch.len() as u32,
        split: 1,
    };
    for (i, dim) in p.batch.iter().enumerate() {
        out.shape[i] = dim.size as u64;
        out.a_batch[i] = dim.strides[A] as u64;
        out.w_batch[i] = dim.strides[B] as u64;
        out.bias_batch[i] = dim.strides[BIAS] as u64;
        out.y_batch[i] = dim.strides[Y] as u64;
    }
    out
}
