//! `fail/attributes/capability_hides_a_parameter.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[key]
    let n = #[eager(cx)]
    cx.read(x)?.len();
    assert!(n > 0);
    ops::exp(x)
}
