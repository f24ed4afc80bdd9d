//! `fail/kernels/generic.rs`, by its help.

use graphable::prelude::*;

#[kernel]
fn double(x: f32) -> f32 {
    x + x
}

fn main() {}
