//! A part of a slice that a parameter refers to.
use graphable::prelude::*;

#[graphable(helper)]
fn first(all: &mut [Tensor<f32>], p: &Scalar<bool>) -> Result<()> {
    #[device]
    if p {
        all[0] = ops::neg(&all[0])?;
    }
    Ok(())
}

fn main() {}
