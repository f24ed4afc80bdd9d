//! Values of kernels are copied.

use graphable::prelude::*;

#[kernel]
fn nudged(x: f32) -> f32 {
    let y = &x;
    *y + 1.0
}

fn main() {}
