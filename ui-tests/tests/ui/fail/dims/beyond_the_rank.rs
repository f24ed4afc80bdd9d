//! The body contradicts the sizes in the signature.

use graphable::prelude::*;

#[graphable]
fn decode(
    #[dims(B, 64)] x: &Tensor<f32>,
    #[dims(B, 32)] y: &Tensor<f32>,
    #[dims(16, 48)] w: &Tensor<f32>,
) -> Result<Tensor<f32>> {
    let a = ops::softmax(x, 2)?;
    let b = ops::narrow(x, 1, 32, 48)?;
    let c = ops::add(x, y)?;
    let d = ops::linear(x, w)?;
    let e = ops::reshape(w, &[16, 16])?;
    ops::concat(&[&a, &b, &c, &d, &e], 0)
}

fn main() {}
