//! What a macro binds in a segment is not seen behind it.

use graphable::prelude::*;

#[allow(unused_macros)]
macro_rules! bind {
    ($name:ident, $e:expr) => {
        let $name = $e;
    };
}

#[graphable]
fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    bind!(h, ops::neg(x)?);
    let a = #[eager]
    ops::exp(x)?;
    ops::add(&a, &h)
}

fn main() {}
