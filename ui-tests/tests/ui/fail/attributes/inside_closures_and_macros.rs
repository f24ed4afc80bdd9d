//! Boundaries where no statement of the function is: arguments of methods, macro calls; and misspelt there.

use graphable::prelude::*;

#[graphable]
fn in_a_map(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let all = (0..n).map(|_| #[eager] ops::exp(x)).collect::<Result<Vec<_>>>()?;
    ops::neg(&all[0])
}

#[graphable]
fn in_a_macro(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let all = vec![#[eager] ops::exp(x)?];
    ops::neg(&all[0])
}

#[graphable]
fn misspelt(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let all = (0..n).map(|_| #[eagr] ops::exp(x)).collect::<Result<Vec<_>>>()?;
    ops::neg(&all[0])
}

fn main() {}
