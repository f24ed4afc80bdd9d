//! Each operation whose result's size depends on values.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, mask: &Tensor<bool>, #[key] n: usize) -> Result<Tensor<f32>> {
    let a = x.nonzero();
    let b = ops::masked_select(x, mask)?;
    let c = ops::unique(x)?;
    let d = ops::repeat_interleave(x, n)?;
    let e = ops::bincount(x)?;
    let f = x.argwhere();
    ops::scale(x, n as f32)
}

fn main() {}
