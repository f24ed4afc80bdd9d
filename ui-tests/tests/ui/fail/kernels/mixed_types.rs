//! Rust converts nothing by itself, and neither does a kernel.

use graphable::prelude::*;

#[kernel]
fn scaled(y: f32, x: i32, by: u32) -> f32 {
    let m = x + by;
    y * x + 2 * y
}

fn main() {}
