//! Variables that are changed by something else than an assignment: numbers of the host, and tensors.
use graphable::prelude::*;

#[derive(Clone)]
struct Pair<'s> {
    l: Tensor<'s, f32>,
}

fn bump<'s>(y: &mut Tensor<'s, f32>) -> Result<()> {
    *y = ops::neg(y)?;
    Ok(())
}

#[graphable(helper)]
fn decode(p: &Scalar<bool>, pair: Pair, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let (mut k, mut pair) = (1.0, pair);
    let mut gain = 1.5;
    let mut left = 8u32;
    let mut y = x.clone();
    let mut z = ops::neg(x)?;
    #[device]
    if p {
        gain *= 2.0;
        left -= 1;
        y += x;
        y *= z;
        pair.l += z;
        k /= 2.0;
    }
    #[device]
    while p {
        bump(&mut y)?;
        std::mem::swap(&mut y, &mut z);
        let other = &mut z;
        bump(other)?;
    }
    ops::scale(&ops::add(&y, &pair.l)?, gain * left as f32 * k)
}

fn main() {}
