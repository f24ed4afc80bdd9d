//! Arms of different types.
use graphable::prelude::*;

#[graphable]
fn decode(p: &Scalar<bool>, k: &Scalar<u32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let y = #[device]
    if p {
        ops::neg(x)?
    } else {
        ops::cast::<f32, u32>(x)?
    };
    let z = #[device]
    match k {
        0 => (ops::neg(&y)?, ops::exp(&y)?),
        _ => ops::neg(&y)?,
    };
    ops::add(&y, &z.0)
}

#[graphable]
fn assigned(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut y = x.clone();
    #[device]
    if p {
        y = ops::cast::<f32, u32>(x)?;
    }
    ops::exp(&y)
}

fn main() {}
