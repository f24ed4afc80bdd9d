//! Kernels have no type for the bits of an `f64`.

use graphable::prelude::*;

#[kernel]
fn bits(x: f64) -> u32 {
    x.to_bits()
}

fn main() {}
