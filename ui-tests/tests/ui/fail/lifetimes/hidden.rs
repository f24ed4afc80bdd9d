//! A struct of tensors whose lifetime is not written.

use graphable::prelude::*;

#[derive(Clone, GraphOutput)]
struct Pair<'s> {
    x: Tensor<'s, f32>,
}

fn same<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::scale(x, 1.0)
}

#[graphable]
fn second(x: &Tensor<f32>, pair: &Pair) -> Result<Tensor<f32>> {
    #[eager]
    same(x)?;
    let h = ops::neg(&pair.x)?;
    #[eager]
    same(&h)?;
    ops::neg(x)
}

fn main() {}
