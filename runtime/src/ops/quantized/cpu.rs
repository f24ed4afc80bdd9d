//! Products with weights in blocks on the CPU, and rows of them.
//!
//! The work is split by columns of the result, that is, by rows of the weight, so that each block is read from memory once for
//! all rows of a panel. What a task computes depends on shapes alone; that results do not depend on tasks at all is a property
//! of [`multiply`].

use rayon::prelude::*;

use crate::{
    BlockFormat,
    backend::{
        Launch,
        cpu::{
            Access, Fault,
            kernels::{
                float::{by_float, input},
                quantized::{Level, Rows, multiply},
                real::{Real, Strided, gather},
                strided::chunks,
            },
        },
    },
    ops::gather::{Indices, PickCounts, picked_rows},
};

#[cfg(test)]
mod tests;

/// Rows of activations that are quantised, or gathered, at a time.
const PANEL: usize = 256;
/// A task computes a multiple of so many columns, as vectors of sums do.
const COLUMNS: usize = 16;
/// Bytes of weights that one task reads.
const SLICE: usize = 1 << 14;
/// Multiplications below which nothing is spread over threads.
const SERIAL: usize = 1 << 17;

pub(super) fn linear(access: &Access<'_>, launch: &Launch, format: BlockFormat) {
    by_float!(launch.inputs[0].dtype, product(access, launch, format));
}

fn product<T: Real>(access: &Access<'_>, launch: &Launch, format: BlockFormat) {
    let x = input::<T>(access, launch, 0);
    let weight = access.slice::<u8>(&launch.inputs[1]);
    let out = access.slice_mut::<T>(&launch.outputs[0]);
    let n = launch.outputs[0].layout.shape()[1];
    let bias = launch.inputs.get(2).map(|view| {
        let mut bias = vec![0.0; n];
        // It is the same for all rows.
        let along = view.layout.strides().last().copied().unwrap_or_default();
        gather(access.slice::<T>(view), 0, along, &mut bias);
        bias
    });
    // Devices are not asked for empty results.
    if n > 0 {
        let panels = Panels { format, weight, n, bias, level: Level::best() };
        out.chunks_mut(PANEL * n).enumerate().for_each(|(i, out)| panels.compute(i * PANEL, &x, out));
    }
}

/// A product, but for the activations.
struct Panels<'a> {
    format: BlockFormat,
    weight: &'a [u8],
    n: usize,
    bias: Option<Vec<f32>>,
    level: Level,
}

impl Panels<'_> {
    /// Multiplies rows of `x` from `first` on, as many as `out` has.
    fn compute<T: Real>(&self, first: usize, x: &Strided<'_, T>, out: &mut [T]) {
        let (&[_, k], &[row, column]) = (x.layout.shape(), x.layout.strides()) else {
            unreachable!("the input is a matrix")
        };
        let m = out.len() / self.n;
        let activations = Rows::new(self.format, m, k, |i, to| {
            gather(x.data, (first + i) * row, column, to);
        });
        let bytes = self.weight.len() / self.n;
        let width = (SLICE / bytes.max(1)).clamp(COLUMNS, 512).next_multiple_of(COLUMNS);
        let threads = m * k * self.n >= SERIAL;
        if m == 1 {
            let one = |buffer: &mut Vec<f32>, (i, to): (usize, &mut [T])| {
                self.slice(&activations, i * width, to.len(), buffer);
                T::store(buffer, to);
            };
            if threads {
                out.par_chunks_mut(width).enumerate().for_each_init(Vec::new, one);
            } else {
                let mut buffer = Vec::new();
                out.chunks_mut(width).enumerate().for_each(|item| one(&mut buffer, item));
            }
            return;
        }
        let compute = |i: usize| {
            let mut buffer = Vec::new();
            self.slice(&activations, i * width, width.min(self.n - i * width), &mut buffer);
            buffer
        };
        let slices = self.n.div_ceil(width);
        let results: Vec<Vec<f32>> = if threads {
            (0..slices).into_par_iter().map(compute).collect()
        } else {
            (0..slices).map(compute).collect()
        };
        for (row, out) in out.chunks_exact_mut(self.n).enumerate() {
            for (to, from) in out.chunks_mut(width).zip(&results) {
                T::store(&from[row * to.len()..][..to.len()], to);
            }
        }
    }

    /// Fills `to`, a matrix of all rows of activations, with columns `first..first + n` of the result.
    fn slice(&self, activations: &Rows, first: usize, n: usize, to: &mut Vec<f32>) {
        let bytes = self.weight.len() / self.n;
        // Every element is written.
        to.resize(activations.rows() * n, 0.0);
        multiply(self.level, self.format, &self.weight[first * bytes..][..n * bytes], activations, to);
        if let Some(bias) = &self.bias {
            for row in to.chunks_mut(n) {
                row.iter_mut().zip(&bias[first..]).for_each(|(to, bias)| *to += bias);
            }
        }
    }
}

pub(super) fn embedding(
    access: &Access<'_>,
    launch: &Launch,
    format: BlockFormat,
    counts: PickCounts,
) -> Result<(), Fault> {
    let table = &launch.inputs[1];
    let &[rows, bytes] = table.layout.shape() else { unreachable!("a table has two dimensions") };
    picked_rows(access, launch, Indices::new(launch, 0, counts), rows, |ids, rows| {
        by_float!(launch.outputs[0].dtype, copy_rows(access, launch, format, bytes, ids, rows));
    })
}

/// Copies the rows of the table at `ids`; those from `rows` on are zeros.
fn copy_rows<T: Real>(
    access: &Access<'_>,
    launch: &Launch,
    format: BlockFormat,
    bytes: usize,
    ids: &[u32],
    rows: usize,
) {
    let table = access.slice::<u8>(&launch.inputs[1]);
    let out = access.slice_mut::<T>(&launch.outputs[0]);
    let width = bytes / format.bytes() * format.elements();
    if out.is_empty() {
        return;
    }
    chunks(out, width, width, |i, out| match ids[i] as usize {
        row if row < rows => {
            let mut values = vec![0.0; width];
            format.dequantize_row(&table[row * bytes..][..bytes], &mut values);
            T::store(&values, out);
        }
        _ => out.fill(T::narrow(0.0)),
    });
}
