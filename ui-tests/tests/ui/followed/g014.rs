//! `fail/signatures/trait_method.rs`, by its help.

use graphable::prelude::*;

#[graphable]
trait Norm {
    fn norm(&self, x: &Tensor<f32>) -> Result<Tensor<f32>>;
}
#[derive(Params)]
struct Layer {
    w: Param<f32>,
}
#[graphable]
impl Layer {
    fn normed(&self, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let a = #[eager]
        ops::neg(x)?;
        ops::mul(&a, &self.w)
    }
}
#[graphable]
fn decode(l: &Layer, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[piecewise]
    l.normed(x)
}
