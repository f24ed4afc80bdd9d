//! An element has no row.

use graphable::prelude::*;

#[kernel(rows)]
fn total(x: Row<f32>) -> f32 {
    x.sum()
}

#[kernel]
fn share(x: f32) -> f32 {
    x / total(x)
}

fn main() {}
