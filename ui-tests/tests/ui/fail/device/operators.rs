//! Operators of the host in a predicate.
use graphable::prelude::*;

#[graphable]
fn decode(p: &Scalar<bool>, q: &Scalar<bool>, n: &Scalar<u32>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut y = x.clone();
    #[device]
    if p && q {
        y = ops::neg(&y)?;
    }
    #[device]
    if p || ops::gt(n, 3)? {
        y = ops::neg(&y)?;
    }
    #[device]
    if !p {
        y = ops::neg(&y)?;
    }
    #[device]
    while n < 3 {
        y = ops::neg(&y)?;
    }
    #[device]
    if x.rank() == 2 {
        y = ops::neg(&y)?;
    }
    Ok(y)
}

fn main() {}
