//! Nor in an async block, nor in another region.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let later = async {
        #[eager]
        ops::exp(x)
    };
    drop(later);
    let a = #[eager]
    {
        let b = #[eager]
        ops::neg(x)?;
        ops::exp(&b)?
    };
    ops::neg(&a)
}

fn main() {}
