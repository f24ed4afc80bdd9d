//! A closure runs later, and more than once.

use graphable::prelude::*;

#[kernel(rows)]
fn offset(x: Row<f32>) -> Row<f32> {
    let mut base = x.max();
    if base < 0.0 {
        base = 0.0;
    }
    x.map(|v| v - base)
}

fn main() {}
