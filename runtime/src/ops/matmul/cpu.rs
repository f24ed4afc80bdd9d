//! Products of matrices.
//!
//! f32 operands are passed to `gemm` in place. f16 and bf16 are widened panel by panel, accumulated in f32
//! and rounded once. A few rows times a weight whose rows are contiguous (a decoding step) are bound by
//! reading the weight: the columns are split into slices, one per task.
//!
//! The split of the work depends only on shapes and strides, never on threads or addresses.

use half::{bf16, f16};
use rayon::prelude::*;

use crate::{
    DType,
    backend::{
        Launch,
        cpu::{
            Access,
            kernels::{
                float::input,
                gemm::{Mat, Mode, Sizes, multiply},
                real::{Real, Strided, gather, offset_at},
            },
        },
    },
};

mod integer;
#[cfg(test)]
mod tests;

/// Most rows for which slices of columns pay.
const THIN: usize = 16;
/// Results of one product that `gemm` computes by plain dot products, without packing.
const DOTS: usize = 256;
/// Elements of the right side that one task of a thin product reads.
const SLICE: usize = 1 << 16;
/// Elements of the right side that are widened at a time.
const PANEL: usize = 1 << 20;
/// Multiplications below which nothing is spread over threads.
const SERIAL: usize = 1 << 17;

/// [`op`](super::operation::op).
pub(super) fn matmul(access: &Access<'_>, launch: &Launch) {
    match launch.inputs[0].dtype {
        DType::F32 => real::<f32>(access, launch),
        DType::F16 => real::<f16>(access, launch),
        DType::Bf16 => real::<bf16>(access, launch),
        DType::I32 => whole::<i32>(access, launch),
        DType::U32 => whole::<u32>(access, launch),
        DType::U8 => whole::<u8>(access, launch),
        DType::I64 => whole::<i64>(access, launch),
        DType::I8 => whole::<i8>(access, launch),
        DType::F64 => whole::<f64>(access, launch),
        DType::Bool => unreachable!("bool has no arithmetic; ops refuses it"),
    }
}

fn real<T: Real>(access: &Access<'_>, launch: &Launch) {
    let bias = (launch.inputs.len() > 2).then(|| input::<T>(access, launch, 2));
    let out = access.slice_mut::<T>(&launch.outputs[0]);
    product(input::<T>(access, launch, 0), input::<T>(access, launch, 1), bias, out);
}

fn whole<T: integer::Whole>(access: &Access<'_>, launch: &Launch) {
    let view =
        |i: usize| Strided { data: access.slice::<T>(&launch.inputs[i]), layout: launch.inputs[i].layout };
    let bias = (launch.inputs.len() > 2).then(|| view(2));
    integer::product(view(0), view(1), bias, access.slice_mut::<T>(&launch.outputs[0]));
}

/// `[.., m, k] x [.., k, n]` with the batch dimensions that could not be folded into `m`.
struct Problem {
    m: usize,
    k: usize,
    n: usize,
    a_rs: usize,
    a_cs: usize,
    b_rs: usize,
    b_cs: usize,
    batch: Vec<usize>,
    a_batch: Vec<usize>,
    b_batch: Vec<usize>,
}

impl Problem {
    fn new<T>(a: &Strided<'_, T>, b: &Strided<'_, T>) -> Self {
        let rank = a.layout.rank();
        let lead = rank - 2;
        let (shape, strides) = (a.layout.shape(), a.layout.strides());
        let (b_shape, b_strides) = (b.layout.shape(), b.layout.strides());
        let mut problem = Self {
            m: shape[lead],
            k: shape[lead + 1],
            n: b_shape[lead + 1],
            a_rs: strides[lead],
            a_cs: strides[lead + 1],
            b_rs: b_strides[lead],
            b_cs: b_strides[lead + 1],
            batch: shape[..lead].to_vec(),
            a_batch: strides[..lead].to_vec(),
            b_batch: b_strides[..lead].to_vec(),
        };
        while problem.fold() {}
        problem
    }

    /// Makes the innermost batch dimension part of the rows, if all of it is multiplied by the same right
    /// side.
    fn fold(&mut self) -> bool {
        let Some((&size, &a_stride)) = self.batch.last().zip(self.a_batch.last()) else { return false };
        if size != 1 {
            if self.b_batch.last() != Some(&0) || (self.m != 1 && a_stride != self.m * self.a_rs) {
                return false;
            }
            if self.m == 1 {
                self.a_rs = a_stride;
            }
        }
        self.m *= size;
        self.batch.pop();
        self.a_batch.pop();
        self.b_batch.pop();
        true
    }

    fn batches(&self) -> usize {
        self.batch.iter().product()
    }

    /// Multiplications of one batch.
    fn work(&self) -> usize {
        self.m.saturating_mul(self.k).saturating_mul(self.n)
    }
}

/// The bias in f32: one row, which all rows share.
type Bias<'a> = Option<&'a [f32]>;

/// `out = a x b + bias`; `out` is contiguous.
pub(in crate::ops) fn product<T: Real>(
    a: Strided<'_, T>,
    b: Strided<'_, T>,
    bias: Option<Strided<'_, T>>,
    out: &mut [T],
) {
    if out.is_empty() {
        return;
    }
    let p = Problem::new(&a, &b);
    let bias = bias.map(|view| {
        let mut row = vec![0.0; p.n];
        gather(view.data, 0, view.layout.strides()[view.layout.rank() - 1], &mut row);
        row
    });
    let bias = bias.as_deref();
    if p.k == 0 {
        for row in out.chunks_mut(p.n) {
            match bias {
                Some(bias) => T::store(bias, row),
                None => row.fill(T::narrow(0.0)),
            }
        }
        return;
    }
    let one = |batch: usize, out: &mut [T], threads: bool| {
        let a = &a.data[offset_at(batch, &p.batch, &p.a_batch)..];
        let b = &b.data[offset_at(batch, &p.batch, &p.b_batch)..];
        if p.m == 1 || (p.m <= THIN && p.b_rs == 1) {
            thin(&p, a, b, bias, out, threads);
        } else {
            wide(&p, a, b, bias, out, threads);
        }
    };
    let (batches, work) = (p.batches(), p.work());
    if batches == 1 || work >= 1 << 22 {
        for (i, out) in out.chunks_mut(p.m * p.n).enumerate() {
            one(i, out, work >= SERIAL);
        }
    } else if batches * work < SERIAL {
        for (i, out) in out.chunks_mut(p.m * p.n).enumerate() {
            one(i, out, false);
        }
    } else {
        let group = (SERIAL / 2 / work).max(1);
        out.par_chunks_mut(p.m * p.n).enumerate().with_min_len(group).for_each(|(i, out)| one(i, out, false));
    }
}

/// Few rows: one product per slice of columns.
fn thin<T: Real>(p: &Problem, a: &[T], b: &[T], bias: Bias<'_>, out: &mut [T], threads: bool) {
    let rows = widened(a, (p.m, p.a_rs), (p.k, p.a_cs));
    let a = Mat { data: &rows, rs: p.k, cs: 1 };
    // Rows of a transposed weight are contiguous, so slices may be narrow; columns of a plain one are read
    // across rows, where a slice should span several cache lines.
    let width = if p.b_rs == 1 { (SLICE / p.k).clamp(16.min(DOTS / p.m), DOTS / p.m) } else { 512 };
    let slice = |first: usize, to: &mut [f32], workspace: &mut Vec<f32>| {
        let n = to.len() / p.m;
        let b = right_side(p, b, first, n, workspace);
        preset(to, n, bias.map(|bias| &bias[first..first + n]));
        let mode = Mode { add: bias.is_some(), scale: 1.0, threads: false };
        multiply(Sizes { m: p.m, k: p.k, n }, to, n, a, b, mode);
    };
    if p.m == 1 {
        let one =
            |(workspace, row): &mut (Vec<f32>, Vec<f32>), (i, to): (usize, &mut [T])| match T::as_f32_mut(to)
            {
                Some(to) => slice(i * width, to, workspace),
                None => {
                    row.resize(to.len(), 0.0);
                    slice(i * width, row, workspace);
                    T::store(row, to);
                }
            };
        if threads {
            out.par_chunks_mut(width).enumerate().for_each_init(Default::default, one);
        } else {
            let mut workspace = Default::default();
            out.chunks_mut(width).enumerate().for_each(|item| one(&mut workspace, item));
        }
        return;
    }
    let compute = |workspace: &mut Vec<f32>, i: usize| {
        let n = width.min(p.n - i * width);
        let mut to = vec![0.0; p.m * n];
        slice(i * width, &mut to, workspace);
        to
    };
    let slices = p.n.div_ceil(width);
    let results: Vec<Vec<f32>> = if threads {
        (0..slices).into_par_iter().map_init(Vec::new, compute).collect()
    } else {
        let mut workspace = Vec::new();
        (0..slices).map(|i| compute(&mut workspace, i)).collect()
    };
    for (row, out) in out.chunks_exact_mut(p.n).enumerate() {
        for (to, from) in out.chunks_mut(width).zip(&results) {
            T::store(&from[row * to.len()..(row + 1) * to.len()], to);
        }
    }
}

/// Many rows: f32 in place, the others by panels of columns.
fn wide<T: Real>(p: &Problem, a: &[T], b: &[T], bias: Bias<'_>, out: &mut [T], threads: bool) {
    let mode = Mode { add: bias.is_some(), scale: 1.0, threads };
    if let (Some(a), Some(b)) = (T::as_f32(a), T::as_f32(b))
        && let Some(out) = T::as_f32_mut(out)
    {
        preset(out, p.n, bias);
        let (a, b) = (Mat { data: a, rs: p.a_rs, cs: p.a_cs }, Mat { data: b, rs: p.b_rs, cs: p.b_cs });
        multiply(Sizes { m: p.m, k: p.k, n: p.n }, out, p.n, a, b, mode);
        return;
    }
    let left = widened(a, (p.m, p.a_rs), (p.k, p.a_cs));
    let width = (PANEL / p.k).clamp(64, 4096).min(p.n);
    let (mut right, mut sums) = (Vec::new(), vec![0.0; p.m * width]);
    for first in (0..p.n).step_by(width) {
        let n = width.min(p.n - first);
        let b = right_side(p, b, first, n, &mut right);
        let sums = &mut sums[..p.m * n];
        preset(sums, n, bias.map(|bias| &bias[first..first + n]));
        multiply(Sizes { m: p.m, k: p.k, n }, sums, n, Mat { data: &left, rs: p.k, cs: 1 }, b, mode);
        for (row, from) in out.chunks_exact_mut(p.n).zip(sums.chunks_exact(n)) {
            T::store(from, &mut row[first..first + n]);
        }
    }
}

/// The value to which the product is added: the bias in each row, if there is one.
fn preset(out: &mut [f32], n: usize, bias: Bias<'_>) {
    if let Some(bias) = bias {
        out.chunks_exact_mut(n).for_each(|row| row.copy_from_slice(bias));
    }
}

/// Returns columns `first..first + n` of the right side in f32: in place, or copied to `workspace`.
fn right_side<'a, T: Real>(
    p: &Problem,
    b: &'a [T],
    first: usize,
    n: usize,
    workspace: &'a mut Vec<f32>,
) -> Mat<'a> {
    let b = &b[first * p.b_cs..];
    if let Some(data) = T::as_f32(b) {
        return Mat { data, rs: p.b_rs, cs: p.b_cs };
    }
    workspace.resize(p.k * n, 0.0);
    // Along the smaller stride, so that memory is read in order.
    if p.b_rs <= p.b_cs {
        widen(b, (n, p.b_cs), (p.k, p.b_rs), workspace);
        Mat { data: workspace, rs: 1, cs: p.k }
    } else {
        widen(b, (p.k, p.b_rs), (n, p.b_cs), workspace);
        Mat { data: workspace, rs: n, cs: 1 }
    }
}

/// A matrix, given as `(size, stride)` of its dimensions, contiguous and in f32.
fn widened<T: Real>(from: &[T], rows: (usize, usize), columns: (usize, usize)) -> Vec<f32> {
    let mut out = vec![0.0; rows.0 * columns.0];
    widen(from, rows, columns, &mut out);
    out
}

fn widen<T: Real>(from: &[T], rows: (usize, usize), columns: (usize, usize), out: &mut [f32]) {
    let one = |(i, row): (usize, &mut [f32])| gather(from, i * rows.1, columns.1, row);
    if out.len() < SERIAL {
        out.chunks_exact_mut(columns.0).enumerate().for_each(one);
    } else {
        out.par_chunks_exact_mut(columns.0).enumerate().with_min_len(16).for_each(one);
    }
}
