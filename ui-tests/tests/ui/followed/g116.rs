//! `fail/kernels/mixed_types.rs`, by its help.

use graphable::prelude::*;

#[kernel]
fn scaled(y: f32, x: i32, by: u32) -> f32 {
    let m = x + by as i32;
    y * x as f32 + 2.0 * y + m as f32
}

fn main() {}
