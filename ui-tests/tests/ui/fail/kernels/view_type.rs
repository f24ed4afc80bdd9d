//! A view has a type and a number of dimensions.

use graphable::prelude::*;

#[kernel(index)]
fn same(x: View<f32>, [i, j]: [i32; 2]) -> f32 {
    x.at([i, j])
}

#[kernel(index)]
fn scalar(x: View<f32, 0>, [i, j]: [i32; 2]) -> f32 {
    x.at([]) * (i + j) as f32
}

#[kernel(index)]
fn tensor(x: &Tensor<f32>, [i, j]: [i32; 2]) -> f32 {
    x.at([i, j])
}

#[kernel(index)]
fn row(x: Row<f32>, [i]: [i32; 1]) -> f32 {
    x.at(i)
}

#[kernel(index)]
fn double(x: View<f16, 1>, [i]: [i32; 1]) -> f32 {
    x.at([i]) as f32
}

fn main() {}
