//! `fail/signatures/lone_method.rs`, by its help.

use graphable::prelude::*;

#[derive(Params)]
struct Layer {
    w: Param<f32>,
}

#[graphable]
impl Layer {
    fn decode(&self, #[host] x: &Tensor<f32>) -> Result<Tensor<f32>> {
        ops::mul(x, &self.w)
    }

    fn twice(&self, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let y = #[eager]
        ops::mul(x, &self.w)?;
        ops::mul(&y, &self.w)
    }
}
