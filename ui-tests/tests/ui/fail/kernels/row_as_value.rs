//! A row is not a value.

use graphable::prelude::*;

#[kernel(rows)]
fn shifted(x: Row<f32>, by: f32) -> Row<f32> {
    x + by
}

#[kernel(rows)]
fn chosen(x: Row<f32>, y: Row<f32>, first: bool) -> Row<f32> {
    if first { x } else { y }
}

fn main() {}
