//! What a kernel calls is a kernel.

use graphable::prelude::*;

fn helper(x: f32) -> f32 {
    x
}

#[kernel]
fn wrapped(x: f32) -> f32 {
    helper(x)
}

fn main() {}
