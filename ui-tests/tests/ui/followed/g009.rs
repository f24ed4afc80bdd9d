//! `fail/moves/nothing_to_pass.rs`, by its help.

use graphable::prelude::*;

fn look(x: &Tensor<'_, f32>) -> Result<()> {
    ops::neg(x).map(drop)
}
#[graphable]
fn decode(x: &Tensor<f32>, #[key] stop: bool) -> Result<Tensor<f32>> {
    #[eager]
    look(x)?;
    let a = ops::neg(x)?;
    #[eager]
    look(&a)?;
    let b = ops::exp(&a)?;
    if stop {
        return Ok(b);
    }
    ops::exp(&b)
}
