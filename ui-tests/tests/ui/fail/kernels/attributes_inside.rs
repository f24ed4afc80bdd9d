//! Attributes within a kernel.

use graphable::prelude::*;

#[kernel]
fn tuned(#[host] x: f32) -> f32 {
    x
}

#[kernel]
fn gated(x: f32) -> f32 {
    #[cfg(unix)]
    let y = x * 2.0;
    y
}

fn main() {}
