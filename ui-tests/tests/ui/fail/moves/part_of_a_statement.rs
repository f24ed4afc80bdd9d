//! Only a region that is a statement, or the value of one, can leave its place.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, #[key] twice: bool) -> Result<Tensor<f32>> {
    let a = ops::neg(x)?;
    let b = if twice {
        #[eager(early)]
        ops::neg(x)?
    } else {
        ops::exp(x)?
    };
    let c = ops::add(&a, &b)?;
    #[eager(late)]
    ops::neg(&c)
}

fn main() {}
