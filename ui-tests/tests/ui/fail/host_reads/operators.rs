//! Operations are functions, since they can fail.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, y: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let a = x + y;
    let b = -x;
    let mut c = ops::scale(x, n as f32)?;
    c *= 2.0;
    let d = x >= y;
    ops::add(&a, &b)
}

fn main() {}
