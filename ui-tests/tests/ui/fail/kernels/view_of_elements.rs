//! A kernel of elements sees no more than one of each.

use graphable::prelude::*;

#[kernel]
fn same(x: View<f32, 2>) -> f32 {
    x.at([0, 0])
}

fn main() {}
