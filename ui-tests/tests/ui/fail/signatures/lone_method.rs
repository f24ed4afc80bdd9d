//! The attribute is on methods, and not on their `impl`.

use graphable::prelude::*;

#[derive(Params)]
struct Layer {
    w: Param<f32>,
}

impl Layer {
    #[graphable]
    fn decode(&self, #[host] x: &Tensor<f32>) -> Result<Tensor<f32>> {
        ops::mul(x, &self.w)
    }
}

impl Layer {
    #[graphable]
    fn twice(&self, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let y = #[eager]
        ops::mul(x, &self.w)?;
        ops::mul(&y, &self.w)
    }
}

fn main() {}
