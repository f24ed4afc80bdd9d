//! `fail/kernels/misspelt_method.rs`, by its help.

use graphable::prelude::*;

#[kernel]
fn rooted(x: f32) -> f32 {
    x.sqrt().round()
}

fn main() {}
