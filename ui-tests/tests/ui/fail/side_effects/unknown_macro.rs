//! What an unknown macro does is not known.

use graphable::prelude::*;

#[allow(unused_macros)]
macro_rules! twice {
    ($e:expr) => {
        ops::scale($e, 2.0)
    };
}

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = #[eager]
    ops::neg(x)?;
    twice!(&h)
}

fn main() {}
