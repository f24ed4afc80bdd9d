//! A closure must find what it meant.

use graphable::prelude::*;

#[derive(Params)]
struct Layer {
    a: Param<f32>,
    b: Param<f32>,
}

#[graphable]
fn decode(x: &Tensor<f32>, layer: &Layer) -> Result<Tensor<f32>> {
    let by = &layer.a;
    let project = |t: &Tensor<f32>| ops::mul(t, by);
    let a = #[eager]
    ops::neg(x)?;
    let by = &layer.b;
    let b = project(&a)?;
    ops::mul(&b, by)
}

fn main() {}
