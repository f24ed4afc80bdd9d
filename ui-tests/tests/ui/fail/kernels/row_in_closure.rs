//! A reduction for each value would be one of all values for each.

use graphable::prelude::*;

#[kernel(rows)]
fn shares(x: Row<f32>) -> Row<f32> {
    x.map(|v| v / x.sum())
}

fn main() {}
