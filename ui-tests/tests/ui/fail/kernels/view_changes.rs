//! A view is read only.

use graphable::prelude::*;

#[kernel(index)]
fn cleared(mut x: View<f32, 1>, [i]: [i32; 1]) -> f32 {
    x.at([i])
}

#[kernel(index)]
fn assigned(x: View<f32, 1>, [i]: [i32; 1]) -> f32 {
    x = i as f32;
    0.0
}

#[kernel(index)]
fn stored(x: View<f32, 1>, [i]: [i32; 1]) -> f32 {
    x.set([i], 1.0)
}

fn main() {}
