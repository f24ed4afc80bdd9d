//! A macro means the variables that it names where it is defined, and a segment has its own.

use graphable::prelude::*;

#[graphable]
fn decode(#[key] n: usize, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let by = n + 1;
    macro_rules! scaled {
        ($t:expr) => {
            ops::scale($t, by as f32)
        };
    }
    let a = #[eager]
    ops::neg(x)?;
    ops::neg(&scaled!(&a)?)
}

fn main() {}
