//! A loop over something else than a range.

use graphable::prelude::*;

#[kernel]
fn polynomial(x: f32) -> f32 {
    let mut sum = 0.0;
    for c in [0.5, 0.25, 0.125] {
        sum = sum * x + c;
    }
    sum
}

fn main() {}
