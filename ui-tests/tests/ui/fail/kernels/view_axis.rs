//! Which dimension is known when a kernel is compiled.

use graphable::prelude::*;

#[kernel(index)]
fn last(x: View<f32, 2>, [i, j]: [i32; 2]) -> f32 {
    x.at([i, x.dim(2) - 1 - j])
}

#[kernel(index)]
fn any(x: View<f32, 2>, axis: i32, [i, j]: [i32; 2]) -> f32 {
    x.at([i, x.dim(axis) - 1 - j])
}

fn main() {}
