//! `fail/signatures/receiver.rs`, by its help.

use graphable::prelude::*;

#[derive(Params)]
struct Layer {
    w: Param<f32>,
}
#[graphable]
impl Layer {
    fn forward(&self, #[host] x: &Tensor<f32>) -> Result<Tensor<f32>> {
        ops::mul(x, &self.w)
    }
}
