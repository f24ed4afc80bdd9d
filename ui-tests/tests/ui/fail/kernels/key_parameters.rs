//! What a `#[key]` parameter of a kernel is not.

use graphable::prelude::*;

#[kernel]
fn first(#[key] x: f32, y: f32) -> f32 {
    x * y
}

#[kernel(rows)]
fn row(x: Row<f32>, #[key] weight: Row<f32>) -> f32 {
    x.zip(weight).map(|(v, w)| v * w).sum()
}

#[kernel(index)]
fn view(x: View<f32, 1>, #[key] table: View<f32, 1>, [i]: [i32; 1]) -> f32 {
    x.at([i]) * table.at([i])
}

#[kernel]
fn twice(x: f32, #[key] #[key] n: u32) -> f32 {
    x * n as f32
}

#[kernel]
fn named(x: f32, #[key = "n"] n: u32) -> f32 {
    x * n as f32
}

#[kernel]
fn changed(x: f32, #[key] mut n: u32) -> f32 {
    n += 1;
    let mut y = x;
    for _ in 0..n {
        y *= 2.0;
    }
    y
}

fn main() {}
