//! A value that was read bounds no loop.

use graphable::prelude::*;

#[kernel(index)]
fn ragged(x: View<f32, 1>, ends: View<i32, 1>, [i]: [i32; 1]) -> f32 {
    let mut sum = 0.0;
    for k in 0..ends.at([i]) {
        sum += x.at([k]);
    }
    sum
}

fn main() {}
