//! `fail/lifetimes/borrowed_for_its_step.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn halved<'a>(x: &Tensor<f32>) -> Result<Tensor<'a, f32>> {
    ops::scale(x, 0.5)
}

#[graphable]
fn products<'s>(
    #[host] scale: &Scalar<f32>,
    #[dims(B, 4)] x: &Tensor<f32>,
    y: &Tensor<f32>,
) -> Result<(Vec<Tensor<'s, f32>>, [u32; 2])> {
    let scaled = ops::mul(x, scale)?;
    #[eager]
    ();
    Ok((vec![ops::mul(&scaled, y)?], [1, 2]))
}

#[graphable]
fn kept(x: &Tensor<f32>, state: &State<f32>) -> Result<()> {
    ops::store(state, x)
}
