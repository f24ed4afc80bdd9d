//! Operators of integers on floats.

use graphable::prelude::*;

#[kernel]
fn masked(x: f32, n: u32) -> f32 {
    let low = x & 1.0;
    let negative = -n;
    x.count_ones() as f32 + low
}

fn main() {}
