//! A struct that is assigned as a whole derives `Carried`, and `Clone`.
use graphable::prelude::*;

struct Plain<'s> {
    x: Tensor<'s, f32>,
}

#[derive(Carried)]
struct WithoutClone<'s> {
    x: Tensor<'s, f32>,
}

#[graphable(helper)]
fn value(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let chosen = #[device]
    if p { Plain { x: x.clone() } } else { Plain { x: ops::neg(x)? } };
    Ok(chosen.x)
}

#[graphable(helper)]
fn rounds(p: &Scalar<bool>, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut state = WithoutClone { x: x.clone() };
    #[device]
    while p {
        state = WithoutClone { x: ops::neg(&state.x)? };
    }
    Ok(state.x)
}

fn main() {}
