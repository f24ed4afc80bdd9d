//! The methods that views do not have.

use graphable::prelude::*;

#[kernel(index)]
fn last(x: View<f32, 1>, [i]: [i32; 1]) -> f32 {
    x.at([x.len() - 1 - i])
}

#[kernel(index)]
fn total(x: View<f32, 2>, [i]: [i32; 1]) -> f32 {
    x.sum() + i as f32
}

#[kernel(index)]
fn padded(x: View<f32, 1>, [i]: [i32; 1]) -> f32 {
    x.get([i - 1], 0.0)
}

#[kernel(index)]
fn misspelt(x: View<f32, 1>, [i]: [i32; 1]) -> f32 {
    x.at_orr([i - 1], 0.0)
}

fn main() {}
