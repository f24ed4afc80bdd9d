//! A view is read by a method.

use graphable::prelude::*;

#[kernel(index)]
fn turned(x: View<f32, 2>, [i, j]: [i32; 2]) -> f32 {
    x[[j, i]]
}

fn main() {}
