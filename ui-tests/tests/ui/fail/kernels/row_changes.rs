//! Rows are read.

use graphable::prelude::*;

#[kernel(rows)]
fn twice(mut x: Row<f32>) -> Row<f32> {
    let mut y = x.map(|v| v * v);
    y.map(|v| v * v)
}

fn main() {}
