//! A graph method is called on a shared struct of parameters.

use graphable::prelude::*;

#[derive(Params)]
struct Layer {
    w: Param<f32>,
}

#[graphable]
impl Layer {
    fn by_value(self, #[host] x: &Tensor<f32>) -> Result<Tensor<f32>> {
        ops::mul(x, &self.w)
    }

    fn by_mut(&mut self, #[host] x: &Tensor<f32>) -> Result<Tensor<f32>> {
        ops::mul(x, &self.w)
    }

    fn boxed(self: Box<Self>, #[host] x: &Tensor<f32>) -> Result<Tensor<f32>> {
        ops::mul(x, &self.w)
    }
}

fn main() {}
