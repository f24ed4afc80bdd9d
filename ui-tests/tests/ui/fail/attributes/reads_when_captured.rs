//! What a captured region read would be the value of the recording in every replay.

use graphable::prelude::*;

#[graphable]
fn positive(x: &Tensor<f32>, mask: &Tensor<bool>) -> Result<Tensor<f32>> {
    let x = ops::neg(x)?;
    let (picked, _count) = #[eager(cx, support = UniformBatch)]
    {
        cx.synchronize()?;
        cx.masked_select(&x, mask)?.pad_to(4, 0.0)?
    };
    ops::neg(&picked)
}

fn main() {}
