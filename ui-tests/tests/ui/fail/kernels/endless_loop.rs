//! Nothing says that it ends.

use graphable::prelude::*;

#[kernel]
fn root(x: f32) -> f32 {
    let mut y = x;
    loop {
        y = 0.5 * (y + x / y);
        if (y * y - x).abs() < 1e-6 {
            return y;
        }
    }
}

fn main() {}
