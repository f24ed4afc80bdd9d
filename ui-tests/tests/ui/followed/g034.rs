//! `fail/dims/size_as_number.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(#[dims(B, 64)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let n: usize = x.dim(1).get()?;
    ops::scale(x, 1.0 / n as f32)
}

#[graphable]
fn averaged(#[dims(B, 64)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut sum = ops::scale(x, 1.0 / x.dim(1).get()? as f32)?;
    for _ in 0..(x.dim(1) / 2).get()? {
        sum = ops::add(&sum, x)?;
    }
    Ok(sum)
}
