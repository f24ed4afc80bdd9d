//! `fail/moves/checks.rs`, by its help.

use graphable::prelude::*;

fn look(x: &Tensor<'_, f32>) -> Result<()> {
    ops::neg(x).map(drop)
}
#[graphable]
fn behind_a_check(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    assert!(n < 4);
    let a = ops::neg(x)?;
    #[eager]
    look(x)?;
    ops::exp(&a)
}
