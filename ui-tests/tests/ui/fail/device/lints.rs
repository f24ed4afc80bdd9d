//! What is refused in a segment is refused in a body as well.
use graphable::prelude::*;

#[graphable]
fn decode(#[host] p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut y = x.clone();
    #[device]
    if p {
        let n = y.item();
        y = ops::scale(&y + &y, n)?;
    }
    #[device]
    while p {
        if ops::gt(&y, 0.0)? {
            y = ops::neg(&y)?;
        }
        println!("{n}");
    }
    Ok(y)
}

fn main() {}
