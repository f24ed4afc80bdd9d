//! Boundaries in what the device decides.
use graphable::prelude::*;

#[graphable]
fn decode(p: &Scalar<bool>, k: &Scalar<u32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut y = x.clone();
    #[device]
    if p {
        y = #[eager]
        ops::neg(&y)?;
    } else {
        #[host]
        let n = y.rank();
        y = ops::scale(&y, n as f32)?;
    }
    #[device]
    while p {
        #[device]
        match k {
            0 => {
                y = #[piecewise]
                inner(&y)?;
            }
            _ => y = ops::neg(&y)?,
        }
    }
    let z = #[eager]
    {
        #[device]
        if p { ops::neg(&y)? } else { y }
    };
    Ok(z)
}

#[graphable]
fn inner(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let y = #[eager]
    ops::neg(x)?;
    ops::exp(&y)
}

fn main() {}
