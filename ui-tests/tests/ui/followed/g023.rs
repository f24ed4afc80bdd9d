//! `fail/eager_values/float_key.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[key]
    let negative: bool = #[eager(cx)]
    {
        cx.item(x)? < 0.0
    };
    if negative { ops::neg(x) } else { ops::exp(x) }
}
