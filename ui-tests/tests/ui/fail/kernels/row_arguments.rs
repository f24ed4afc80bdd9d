//! Arguments of the methods of rows.

use graphable::prelude::*;

#[kernel]
fn half(x: f32) -> f32 {
    0.5 * x
}

#[kernel(rows)]
fn halves(x: Row<f32>) -> Row<f32> {
    x.map(half)
}

#[kernel(rows)]
fn product(x: Row<f32>) -> f32 {
    x.fold(1.0, |product, v| product * v)
}

#[kernel(rows)]
fn scaled(x: Row<f32>, scale: f32) -> Row<f32> {
    x.zip(scale).map(|(v, s)| v * s)
}

#[kernel(rows)]
fn weighted(x: Row<f32>, weight: Row<f32>) -> Row<f32> {
    x.zip(weight).map(|v, w| v * w)
}

fn main() {}
