//! The signature of a trait's method is the trait's.

use graphable::prelude::*;

#[graphable]
trait Norm {
    fn norm(&self, #[host] x: &Tensor<f32>) -> Result<Tensor<f32>>;
}

#[derive(Params)]
struct Layer {
    w: Param<f32>,
}

#[graphable]
impl Norm for Layer {
    fn norm(&self, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let a = #[eager]
        ops::neg(x)?;
        ops::mul(&a, &self.w)
    }
}

fn main() {}
