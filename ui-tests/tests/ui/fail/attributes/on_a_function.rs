//! What marks an expression, a parameter or a `let` stands on the function, above the attribute or below it.

use graphable::prelude::*;

#[eager]
#[graphable]
fn above(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::neg(x)
}

#[eager]
#[graphable]
fn twice(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    above(x)
}

#[graphable]
#[host]
fn below(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    ops::neg(x)
}

mod inner {
    use graphable::prelude::*;

    #[key]
    #[graphable]
    #[piecewise]
    pub fn both(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let y = #[eager]
        ops::exp(x)?;
        ops::neg(&y)
    }
}

fn main() {
    #[dims(4)]
    #[graphable]
    fn local(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        ops::neg(x)
    }
}
