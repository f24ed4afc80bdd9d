//! Methods that rows do not have.

use graphable::prelude::*;

#[kernel(rows)]
fn mean(x: Row<f32>) -> f32 {
    x.mean()
}

#[kernel(rows)]
fn powers(x: Row<f32>) -> Row<f32> {
    x.exp()
}

#[kernel(rows)]
fn total(x: Row<f32>) -> f32 {
    x.iter().sum()
}

#[kernel(rows)]
fn largest(x: Row<f32>) -> f32 {
    x.maxx()
}

fn main() {}
