//! `fail/mutation/fields.rs`, by its help.

use graphable::prelude::*;

#[derive(Params)]
struct Model {
    w: Param<f32>,
    calls: State<f32>,
}
#[graphable]
fn decode(x: &Tensor<f32>, model: &Model) -> Result<(Tensor<f32>, usize)> {
    let a = #[eager]
    ops::neg(x)?;
    let b = ops::mul(&a, &model.w)?;
    ops::store(&model.calls, &b)?;
    let calls = b.rank();
    Ok((b, calls))
}
