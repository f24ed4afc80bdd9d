//! A struct of tensors says that it is one.

use graphable::prelude::*;

struct Pair<'s> {
    a: Tensor<'s, f32>,
    b: Tensor<'s, f32>,
}

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let pair = Pair { a: ops::neg(x)?, b: ops::exp(x)? };
    let a = #[eager]
    ops::exp(&pair.a)?;
    ops::add(&a, &pair.b)
}

fn main() {}
