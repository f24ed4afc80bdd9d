//! `fail/eager_values/derived.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let values = #[eager(cx)]
    cx.read(x)?;
    #[key]
    let first = values[0] as i32;
    ops::scale(x, first as f32)
}
#[graphable]
fn of_a_fixed_size(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let (rows, _count) = #[eager(cx)]
    cx.nonzero(x)?.pad_to(4, 0)?;
    ops::mul(x, &ops::cast::<_, f32>(&rows)?)
}
