//! The step reads; it is no parameter of a graph.

use graphable::prelude::*;

#[graphable]
fn decode(x: &Tensor<f32>, step: Step<'_>, #[key] n: usize) -> Result<Tensor<f32>> {
    let values = step.read(x)?;
    ops::scale(x, values[n])
}

fn main() {}
