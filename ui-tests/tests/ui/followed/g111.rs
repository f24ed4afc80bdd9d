//! `fail/kernels/half.rs`, by its help.

use graphable::prelude::*;

#[kernel]
fn halved(x: f32) -> f32 {
    x
}

fn main() {}
