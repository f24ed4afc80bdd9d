//! Forms of kernels that do not exist.

use graphable::prelude::*;

#[kernel(parallel)]
fn double(x: f32) -> f32 {
    2.0 * x
}

fn main() {}
