//! The definition of a product, in plain Rust.

use super::{Activations, LANES, RUN, total};
use crate::{
    BlockFormat,
    quantized::{GROUP, Parts},
};

/// Rows of activations that are multiplied with a block at a time.
const ROWS: usize = 4;

/// [`multiply`](super::multiply).
pub(super) fn multiply(format: BlockFormat, weights: &[u8], activations: &Activations, to: &mut [f32]) {
    let columns = to.len() / activations.rows();
    let bytes = weights.len() / columns;
    for (first, to) in (0..).step_by(ROWS).zip(to.chunks_mut(ROWS * columns)) {
        let rows = to.len() / columns;
        for column in 0..columns {
            let sums = dots(format, &weights[column * bytes..][..bytes], activations, first, rows);
            for (row, sums) in sums.into_iter().enumerate().take(rows) {
                to[row * columns + column] = total(sums);
            }
        }
    }
}

/// The sums of the inner products of a row of blocks and so many rows of activations.
fn dots(
    format: BlockFormat,
    weight: &[u8],
    activations: &Activations,
    first: usize,
    rows: usize,
) -> [[f32; LANES]; ROWS] {
    let mut sums = [[0.0; LANES]; ROWS];
    let mut parts = Parts::new();
    let runs = format.elements() / RUN;
    for (i, block) in weight.chunks_exact(format.bytes()).enumerate() {
        parts.read(format, block);
        for (row, sums) in sums.iter_mut().enumerate().take(rows) {
            for run in 0..runs {
                let at = i * runs + run;
                add_run(format, &parts, run, activations, first + row, at, &mut sums[at % LANES]);
            }
        }
    }
    sums
}

/// Adds run `run` of a block with these parts, multiplied with a run of a row of activations.
fn add_run(
    format: BlockFormat,
    parts: &Parts,
    run: usize,
    activations: &Activations,
    row: usize,
    at: usize,
    sum: &mut f32,
) {
    let group = if format.has_small_groups() { GROUP } else { RUN };
    let integers = parts.integers[run * RUN..][..RUN].chunks_exact(group);
    let others: &[i8; RUN] = bytemuck::cast_ref(&activations.integers(row)[at]);
    let others = others.chunks_exact(group);
    let scale = activations.scale(row, at);
    for (i, (q, p)) in integers.zip(others).enumerate() {
        let place = (run * RUN + i * group) / GROUP;
        let product: i32 = q.iter().zip(p).map(|(&q, &p)| i32::from(q) * i32::from(p)).sum();
        let mut term = parts.scales[place] * scale * product as f32;
        if format.has_minima() {
            let p: i32 = p.iter().map(|&p| i32::from(p)).sum();
            term -= parts.minima[place] * (scale * p as f32);
        }
        *sum += term;
    }
}
