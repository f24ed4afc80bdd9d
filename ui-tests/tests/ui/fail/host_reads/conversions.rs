//! A tensor becomes no host value.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, by: &Scalar<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let a = *by as f32;
    let b = f32::from(by);
    let c: Vec<f32> = x.into();
    ops::scale(x, a + b + c[n])
}

fn main() {}
