//! `fail/kernels/closure.rs`, by its help.

use graphable::prelude::*;

#[kernel]
fn square(y: f32) -> f32 {
    y * y
}

#[kernel]
fn twice(x: f32) -> f32 {
    square(square(x))
}

fn main() {}
