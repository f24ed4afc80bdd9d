//! A kernel of indices has an index, with a name for each dimension.

use graphable::prelude::*;

#[kernel(index)]
fn turned(x: View<f32, 2>, i: i32, j: i32) -> f32 {
    x.at([j, i])
}

#[kernel(index)]
fn named(x: View<f32, 2>, place: [i32; 2]) -> f32 {
    x.at([place, place])
}

fn main() {}
