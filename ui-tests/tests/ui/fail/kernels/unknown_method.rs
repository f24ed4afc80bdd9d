//! Methods of Rust that kernels do not have.

use graphable::prelude::*;

#[kernel]
fn shifted(x: f32, n: u32) -> f32 {
    x.sqr() + n.checked_add(1).unwrap_or(0) as f32
}

fn main() {}
