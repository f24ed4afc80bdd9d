//! The definition of a product, in plain Rust.

use super::{Activations, LANES, NEIGHBOURS, ROWS, RUN, total};
use crate::{
    BlockFormat,
    quantized::{GROUP, Parts},
};

/// [`dot`](super::dot).
pub(super) fn dot(
    format: BlockFormat,
    weight: &[u8],
    activations: &Activations,
    first: usize,
    to: &mut [f32],
) {
    let mut sums = [[[0.0; LANES]; 2]; ROWS];
    let mut parts = Parts::new();
    let runs = format.elements() / RUN;
    for (i, block) in weight.chunks_exact(format.bytes()).enumerate() {
        parts.read(format, block);
        for (row, sums) in sums.iter_mut().enumerate().take(to.len()) {
            for run in 0..runs {
                let sums = &mut sums[(i * runs + run) % 2];
                add_run(format, &parts, run, activations, (first + row, i * runs + run), sums);
            }
        }
    }
    to.iter_mut().zip(&sums).for_each(|(to, sums)| *to = total(sums));
}

/// Adds run `run` of a block with these parts, multiplied with a run of a row of activations.
fn add_run(
    format: BlockFormat,
    parts: &Parts,
    run: usize,
    activations: &Activations,
    (row, at): (usize, usize),
    sums: &mut [f32; LANES],
) {
    let integers = parts.integers[run * RUN..][..RUN].chunks_exact(NEIGHBOURS);
    let neighbours = activations.integers(row)[at * RUN..][..RUN].chunks_exact(NEIGHBOURS);
    let scale = activations.scales(row)[at];
    for (lane, (q, p)) in integers.zip(neighbours).enumerate() {
        let group = run * (RUN / GROUP) + lane * NEIGHBOURS / GROUP;
        let product: i32 = q.iter().zip(p).map(|(&q, &p)| i32::from(q) * i32::from(p)).sum();
        let mut term = parts.scales[group] * scale * product as f32;
        if format.has_minima() {
            term -= parts.minima[group] * scale * activations.sums(row)[at * LANES + lane];
        }
        sums[lane] += term;
    }
}
