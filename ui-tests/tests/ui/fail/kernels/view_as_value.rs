//! A view is not a value.

use graphable::prelude::*;

#[kernel]
fn half(x: f32) -> f32 {
    0.5 * x
}

#[kernel(index)]
fn shifted(x: View<f32, 2>, by: f32, [i, j]: [i32; 2]) -> f32 {
    x + by * (i + j) as f32
}

#[kernel(index)]
fn called(x: View<f32, 2>, [i, j]: [i32; 2]) -> f32 {
    half(x) * (i + j) as f32
}

#[kernel(index)]
fn again(x: View<f32, 1>, [i]: [i32; 1]) -> f32 {
    let y = x;
    i as f32
}

fn main() {}
