//! `#[device]` where the device has nothing to decide.
use graphable::prelude::*;

#[device]
#[graphable]
fn decode(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut y = x.clone();
    #[device]
    for _ in 0..3 {
        y = ops::neg(&y)?;
    }
    #[device]
    loop {
        y = ops::neg(&y)?;
        break;
    }
    #[device]
    {
        y = ops::neg(&y)?;
    }
    #[device]
    y = if p { ops::neg(x)? } else { ops::exp(x)? };
    #[device]
    let z = ops::neg(&y)?;
    let pair = vec![#[device] if p { ops::neg(x)? } else { ops::exp(x)? }];
    #[device]
    #[device]
    if p {
        y = z;
    }
    ops::add(&y, &pair[0])
}

fn main() {}
