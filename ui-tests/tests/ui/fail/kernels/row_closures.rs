//! Closures have no types of their own.

use graphable::prelude::*;

#[kernel(rows)]
fn halves(x: Row<f32>) -> Row<f32> {
    x.map(move |v: f32| -> f32 { 0.5 * v })
}

fn main() {}
