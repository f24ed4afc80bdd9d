//! `fail/capture/macro_of_the_function.rs`, by its help.

use graphable::prelude::*;

#[graphable]
fn decode(#[key] n: usize, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let by = n + 1;
    macro_rules! scaled {
        ($t:expr, $given:expr) => {
            ops::scale($t, $given as f32)
        };
    }
    let a = #[eager]
    ops::neg(x)?;
    ops::neg(&scaled!(&a, by)?)
}
