//! Rows need `rows`.

use graphable::prelude::*;

#[kernel]
fn total(x: Row<f32>) -> f32 {
    x
}

fn main() {}
