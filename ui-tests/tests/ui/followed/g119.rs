//! `fail/kernels/row_in_closure.rs`, by its help.

use graphable::prelude::*;

#[kernel(rows)]
fn shares(x: Row<f32>) -> Row<f32> {
    let y = x.sum();
    x.map(|v| v / y)
}

fn main() {}
