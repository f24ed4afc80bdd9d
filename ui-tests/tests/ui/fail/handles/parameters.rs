//! Handles stay with the caller.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, step: &Step<'_>, #[key] n: usize) -> Result<Tensor<f32>> {
    let zeros = ops::zeros::<f32>(step.scope(), &[n])?;
    ops::add(x, &zeros)
}

#[graphable]
fn encode(x: &Tensor<f32>, rt: &mut Runtime, cx: &Eager, device: &Device, #[key] n: usize) -> Result<Tensor<f32>> {
    ops::scale(x, n as f32)
}

#[graphable]
fn attend(x: &Tensor<f32>, cx: &Capturable, #[key] n: usize) -> Result<Tensor<f32>> {
    ops::scale(x, n as f32)
}

fn main() {}
