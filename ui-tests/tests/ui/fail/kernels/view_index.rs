//! An index has as many parts as the view has dimensions.

use graphable::prelude::*;

#[kernel(index)]
fn one(x: View<f32, 2>, [i, _]: [i32; 2]) -> f32 {
    x.at([i])
}

#[kernel(index)]
fn plain(x: View<f32, 1>, [i]: [i32; 1]) -> f32 {
    x.at(i)
}

#[kernel(index)]
fn middle(x: View<f32, 1>, [i]: [i32; 1]) -> f32 {
    x.at([0.5 * i as f32])
}

#[kernel(index)]
fn missing(x: View<f32, 1>, [i]: [i32; 1]) -> f32 {
    x.at_or([i])
}

#[kernel(index)]
fn zero(x: View<f32, 1>, [i]: [i32; 1]) -> f32 {
    x.at_or([i], 0)
}

fn main() {}
