//! The index is an array of `i32`, the last parameter.

use graphable::prelude::*;

#[kernel(index)]
fn turned(x: View<f32, 2>, [i, j]: [u32; 2]) -> f32 {
    x.at([j, i])
}

#[kernel(index)]
fn three(x: View<f32, 2>, [i, j]: [i32; 3]) -> f32 {
    x.at([j, i])
}

#[kernel(index)]
fn none(x: View<f32, 1>, []: [i32; 0]) -> f32 {
    x.at([0])
}

#[kernel(index)]
fn first([i]: [i32; 1], x: View<f32, 1>) -> f32 {
    x.at([i])
}

fn main() {}
