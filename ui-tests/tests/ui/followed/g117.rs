//! `fail/kernels/untyped_float.rs`, by its help.

use graphable::prelude::*;

#[kernel]
fn chosen(n: u32) -> u32 {
    let limit = 0.5f32;
    if 0.3 > limit { n } else { 0 }
}

fn main() {}
