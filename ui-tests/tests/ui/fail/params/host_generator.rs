//! A generator is on the device: the host passes no data of it.

use graphable::prelude::*;

#[graphable]
fn from_the_host(x: &Tensor<f32>, #[host] rng: &Rng) -> Result<Tensor<f32>> {
    ops::dropout(rng, x, 0.1)
}

fn main() {}
