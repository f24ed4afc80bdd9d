//! `fail/kernels/double_precision.rs`, by its help.

use graphable::prelude::*;

#[kernel]
fn scaled(x: f32) -> f32 {
    x * 0.1
}

fn main() {}
