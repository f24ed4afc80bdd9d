//! The lifetimes that rustc suggests for a function without the attribute: one for the reference and the tensor.

use graphable::prelude::*;

#[graphable]
fn halved<'a>(x: &'a Tensor<'a, f32>) -> Result<Tensor<'a, f32>> {
    ops::scale(x, 0.5)
}

#[graphable]
fn products<'s>(
    #[host] scale: &'s Scalar<'s, f32>,
    #[dims(B, 4)] x: &'s Tensor<f32>,
    y: &Tensor<f32>,
) -> Result<(Vec<Tensor<'s, f32>>, [u32; 2])> {
    let scaled = ops::mul(x, scale)?;
    #[eager]
    ();
    Ok((vec![ops::mul(&scaled, y)?], [1, 2]))
}

#[graphable]
fn kept(x: &'static Tensor<f32>, state: &State<f32>) -> Result<()> {
    ops::store(state, x)
}

fn main() {}
