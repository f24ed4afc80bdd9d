//! Methods too.

use graphable::prelude::*;

#[derive(Params)]
struct Layer {
    w: Param<f32>,
}

#[graphable]
impl Layer {
    fn forward(&self, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let a = #[eager]
        ops::neg(x)?;
        ops::mul(&a, &self.w)
    }
}

#[graphable]
fn decode(x: &Tensor<f32>, layer: &Layer) -> Result<Tensor<f32>> {
    let h = layer.forward(x)?;
    ops::neg(&h)
}

fn main() {}
