//! A range with steps.

use graphable::prelude::*;

#[kernel]
fn evens(x: f32) -> f32 {
    let mut sum = x;
    for i in (0..8).step_by(2) {
        sum += i as f32;
    }
    sum
}

fn main() {}
