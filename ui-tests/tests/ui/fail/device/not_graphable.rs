//! `#[device]` in a function that is no graph.
use graphable::prelude::*;

fn decode<'s>(p: &Scalar<'s, bool>, x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    #[device]
    if p { ops::neg(x) } else { ops::exp(x) }
}

fn main() {}
