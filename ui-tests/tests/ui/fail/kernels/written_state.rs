//! A state that a kernel writes: one, by `set`, and nothing else.

use graphable::prelude::*;

#[kernel(index)]
fn returns(x: View<f32, 1>, to: &mut View<f32, 1>, [i]: [i32; 1]) -> f32 {
    to.set([i], x.at([i]));
}

#[kernel(index)]
fn ends(x: View<f32, 1>, to: &mut View<f32, 1>, [i]: [i32; 1]) {
    to.set([i], 0.0);
    x.at([i])
}

#[kernel(index)]
fn leaves(to: &mut View<f32, 1>, [i]: [i32; 1]) {
    to.set([i], 0.0);
    return 1.0;
}

#[kernel(index)]
fn reads(to: &mut View<f32, 1>, [i]: [i32; 1]) {
    to.at([i]);
}

#[kernel(index)]
fn two(a: &mut View<f32, 1>, b: &mut View<u32, 1>, [i]: [i32; 1]) {
    a.set([i], 0.0);
    b.set([i], 1);
}

#[kernel(index)]
fn another_type(to: &mut View<u32, 1>, [i]: [i32; 1]) {
    to.set([i], i as f32);
}

#[kernel(index)]
fn dimensions(to: &mut View<u32, 2>, [i]: [i32; 1]) {
    to.set([i], 1);
}

#[kernel(index)]
fn alone(to: &mut View<u32, 1>, [i]: [i32; 1]) {
    to.set([i]);
}

#[kernel(index)]
fn put(to: &mut View<u32, 1>, [i]: [i32; 1]) {
    to.put([i], 1);
}

#[kernel(index)]
fn borrowed(x: &View<u32, 1>, [i]: [i32; 1]) -> u32 {
    x.at([i])
}

#[kernel(index)]
fn mutable(mut to: &mut View<u32, 1>, [i]: [i32; 1]) {
    to.set([i], 1);
}

#[kernel]
fn element(x: f32, to: &mut View<f32, 1>) -> f32 {
    x
}

fn main() {}
