//! `fail/side_effects/logging.rs`, by its help.

use graphable::prelude::*;

fn block_on<F: Future>(_: F) -> f32 {
    1.0
}
async fn fetch() -> f32 {
    1.0
}
#[graphable]
fn decode(x: &Tensor<f32>, #[key] n: usize, #[host] by: &Scalar<f32>) -> Result<Tensor<f32>> {
    let h = #[eager]
    {
        ops::scale(x, block_on(fetch()))?
    };
    ops::mul(&ops::scale(&h, n as f32)?, by)
}
