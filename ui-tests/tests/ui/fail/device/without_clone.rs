//! What has no copy, in arms: a struct of which they assign a field, and a `&mut` that they pass on.
use graphable::prelude::*;

struct Net<'s> {
    h: Tensor<'s, f32>,
    by: Box<dyn Fn(f32) -> f32>,
}

fn update(net: &mut Net) -> Result<()> {
    net.h = ops::neg(&net.h)?;
    Ok(())
}

#[graphable(helper)]
fn fields(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut net = Net { h: x.clone(), by: Box::new(|v| v + 1.0) };
    #[device]
    if p {
        net.h = ops::scale(&net.h, (net.by)(2.0))?;
    }
    Ok(net.h)
}

#[graphable(helper)]
fn passed(p: &Scalar<bool>, net: &mut Net) -> Result<()> {
    #[device]
    if p {
        update(net)?;
    }
    Ok(())
}

fn main() {}
