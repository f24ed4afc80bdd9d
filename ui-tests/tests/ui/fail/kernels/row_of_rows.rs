//! A row has numbers.

use graphable::prelude::*;

#[kernel(rows)]
fn total(x: Row<Row<f32>>, y: Row<bf16>) -> f32 {
    x.sum()
}

fn main() {}
