//! Where kernels have no random numbers, and what these are not.

use graphable::prelude::*;

#[kernel]
fn as_key(x: f32, #[key] r: Random) -> f32 {
    x + r.uniform()
}

#[kernel(rows)]
fn of_no_length(r: Row<Random>, x: f32) -> Row<f32> {
    r.map(|r| x + r.uniform())
}

#[kernel(rows)]
fn row_as_key(x: Row<f32>, #[key] r: Row<Random>) -> Row<f32> {
    x.zip(r).map(|(x, r)| x + r.uniform())
}

#[kernel(rows)]
fn returned_row(x: Row<f32>, r: Row<Random>) -> Row<Random> {
    x.zip(r).map(|(_, r)| r)
}

#[kernel(reduce)]
fn summed(x: Row<f32>, r: Row<Random>) -> f32 {
    r.sum() + x.sum()
}

#[kernel(index)]
fn of_views(x: View<f32, 1>, r: View<Random, 1>, [i]: [i32; 1]) -> f32 {
    x.at([i]) + r.at([i]).uniform()
}

#[kernel]
fn returned(x: f32, r: Random) -> (f32, Random) {
    (x, r)
}

#[kernel]
fn added(x: f32, r: Random) -> f32 {
    x + r
}

#[kernel]
fn doubled(x: f32, r: Random) -> f32 {
    x + (r * r).uniform()
}

#[kernel]
fn compared(x: f32, r: Random, s: Random) -> f32 {
    if r == s { x } else { 0.0 }
}

#[kernel]
fn converted(x: f32, r: Random) -> f32 {
    x + r as f32
}

#[kernel]
fn made(x: u32) -> f32 {
    (x as Random).uniform()
}

#[kernel]
fn of_a_float(x: f32) -> f32 {
    x.normal()
}

#[kernel]
fn drawn(x: f32, r: Random) -> f32 {
    x + r.random()
}

#[kernel]
fn misspelt(x: f32, r: Random) -> f32 {
    x + r.uniforn()
}

#[kernel]
fn late(#[key] n: u32, r: Random, x: f32) -> f32 {
    x + (r.below(n)) as f32
}

fn main() {}
